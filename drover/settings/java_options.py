"""The connection settings as properties of Kafka's Java client, for programs that use that client, such as Spark."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from drover.errors import ConfigurationError
from drover.logins import kerberos_principal
from drover.settings.security import Security

PLAIN_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"
OAUTH_MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
OAUTH_HANDLER = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler"
KERBEROS_MODULE = "com.sun.security.auth.module.Krb5LoginModule"
AWS_MODULE = "software.amazon.msk.auth.iam.IAMLoginModule"
AWS_HANDLER = "software.amazon.msk.auth.iam.IAMClientCallbackHandler"
JAAS = "sasl.jaas.config"
# What Kerberos' own library reads, and Java does not.
_KERBEROS_FILE, _KEY_TABLE = "KRB5_CONFIG", "KRB5_CLIENT_KTNAME"


@dataclass(frozen=True, slots=True)
class JavaNeeds:
    """System properties, Java modules and jars without which the Kafka client of a JVM cannot log in.

    `modules` are those of Java that not every runtime has, `jar_sets` the names of locked sets of jars.
    """

    system_properties: Mapping[str, str] = field(default_factory=dict)
    modules: tuple[str, ...] = ()
    jar_sets: tuple[str, ...] = ()


def java_needs(security: Security) -> JavaNeeds:
    """Return the needs of the login in these settings."""
    match security.sasl_mechanism:
        case "GSSAPI":
            # Kerberos' library takes a list of files there, and Java the first.
            file = os.environ.get(_KERBEROS_FILE, "").split(":")[0]
            properties = {"java.security.krb5.conf": file} if file else {}
            return JavaNeeds(properties, modules=("jdk.security.jgss",))
        case "AWS_MSK_IAM":
            # Read where the name of a broker does not hold its region.
            return JavaNeeds({"aws.region": str(security.aws_region)}, jar_sets=("msk",))
        case _:
            return JavaNeeds()


def java_client_options(security: Security, section: str) -> dict[str, str]:
    """Return the Java client's properties for these settings; reads the files.

    Raises `ConfigurationError` for an unusable file, and for a way to log in that this client does not have; `section`
    names these settings in the message. Every key is passed in PKCS #8, unencrypted, because the Java client reads no
    other form. `java_needs` says what the process needs beside them.
    """
    options: dict[str, str] = {"security.protocol": security.security_protocol}
    if security.uses_sasl:
        options |= _login(security, section)
    authorities = security.authorities(section)
    if authorities is not None:
        options |= {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": authorities}
    own = security.client_certificate(section)
    if own is not None:
        chain, key = own.texts()
        options |= {"ssl.keystore.type": "PEM", "ssl.keystore.certificate.chain": chain, "ssl.keystore.key": key}
    return options


def _login(security: Security, section: str) -> dict[str, str]:
    mechanism = str(security.sasl_mechanism)
    match mechanism:
        case "OAUTHBEARER":
            return {"sasl.mechanism": mechanism, **_token(security, section)}
        case "AWS_MSK_IAM":
            return {
                "sasl.mechanism": mechanism,
                JAAS: jaas(AWS_MODULE, {}),
                "sasl.client.callback.handler.class": AWS_HANDLER,
            }
        case "GSSAPI":
            return {
                "sasl.mechanism": mechanism,
                JAAS: jaas(KERBEROS_MODULE, _ticket(section)),
                "sasl.kerberos.service.name": security.kerberos_service_name,
            }
        case _:
            module = PLAIN_MODULE if mechanism == "PLAIN" else SCRAM_MODULE
            user = {
                "username": security.sasl_plain_username or "",
                "password": str(security.sasl_password(section)),
            }
            return {"sasl.mechanism": mechanism, JAAS: jaas(module, user)}


def _ticket(section: str) -> dict[str, str]:
    """Return where the ticket comes from: the key table of the environment, else the ticket cache."""
    key_table = os.environ.get(_KEY_TABLE, "").removeprefix("FILE:")
    if not key_table or not Path(key_table).exists():
        return {"useTicketCache": "true", "doNotPrompt": "true"}
    # Not both: Kafka's client would renew the ticket of the cache with kinit, and end when that does not work.
    return {
        "useKeyTab": "true",
        "storeKey": "true",
        "doNotPrompt": "true",
        "keyTab": str(Path(key_table).absolute()),
        "principal": kerberos_principal(section),
    }


def _token(security: Security, section: str) -> dict[str, str]:
    handler = {"sasl.login.callback.handler.class": OAUTH_HANDLER}
    url = "sasl.oauthbearer.token.endpoint.url"
    if security.sasl_oauth_token_file is not None:
        file = Path(os.path.abspath(security.sasl_oauth_token_file))  # noqa: PTH100 - follows no link: these are renewed
        return {JAAS: jaas(OAUTH_MODULE, {}), url: file.as_uri(), **handler}
    if security.sasl_oauth_token_endpoint is None:
        raise ConfigurationError(
            f"{section}.sasl_oauth_token_command: Kafka's Java client, which Spark uses, runs no command: let a "
            "program write tokens to a file, and name it in sasl_oauth_token_file"
        )
    client = {
        "clientId": security.sasl_oauth_client_id or "",
        "clientSecret": str(security.oauth_secret(section)),
    }
    if security.sasl_oauth_scope is not None:
        client["scope"] = security.sasl_oauth_scope
    if security.sasl_oauth_cafile is not None:
        # The client reads the trust store of the endpoint from its login.
        client |= {
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(Path(security.sasl_oauth_cafile).absolute()),
        }
    return {JAAS: jaas(OAUTH_MODULE, client), url: security.sasl_oauth_token_endpoint, **handler}


def jaas(module: str, options: Mapping[str, str]) -> str:
    """Return the value of `sasl.jaas.config` for a login module."""
    return " ".join([module, "required", *(f"{name}={_quoted(value)}" for name, value in options.items())]) + ";"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
