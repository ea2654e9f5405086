"""The file of `--command-config`: properties of Kafka's Java clients, as the settings of one cluster.

Only properties that say how to connect are known. Any other one is refused by its name and line, because a client that
ignored it would not do what its owner expects.
"""

import io
import re
import urllib.parse
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import javaproperties

from drover.errors import ConfigurationError
from drover.settings.java_options import (
    AWS_HANDLER,
    AWS_MODULE,
    JAAS,
    KERBEROS_MODULE,
    OAUTH_HANDLER,
    OAUTH_MODULE,
    PLAIN_MODULE,
    SCRAM_MODULE,
)
from drover.settings.trusted_files import read_trusted

_HANDLERS = {OAUTH_HANDLER, "org.apache.kafka.common.security.oauthbearer.secured.OAuthBearerLoginCallbackHandler"}
_JAAS = re.compile(
    r"\s*(?P<module>[\w.$]+)\s+(?:required|requisite|sufficient|optional)\b(?P<options>.*);\s*", re.DOTALL
)
_JAAS_OPTION = re.compile(r"""\s*([\w.]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)'|([^\s"';]+))""", re.DOTALL)
# What the options of a login module are called in the settings.
_USER = {"username": "sasl_plain_username", "password": "sasl_plain_password"}
_CLIENT = {
    "clientId": "sasl_oauth_client_id",
    "clientSecret": "sasl_oauth_client_secret",
    "scope": "sasl_oauth_scope",
}
_MODULES: Mapping[str, Mapping[str, str | None]] = {
    PLAIN_MODULE: _USER,
    SCRAM_MODULE: _USER,
    OAUTH_MODULE: _CLIENT,
    AWS_MODULE: {},
    # A ticket is found as Kerberos itself finds it.
    KERBEROS_MODULE: {
        "useTicketCache": None,
        "renewTGT": None,
        "doNotPrompt": None,
        "serviceName": "sasl_kerberos_service_name",
    },
}
_REMEDIES = {
    "ssl.endpoint.identification.algorithm": "a broker's certificate must name its host; nothing turns this off",
    "ssl.keystore.key": "write the key to a file, and name it in ssl.keystore.location",
    "ssl.keystore.certificate.chain": "write it to a file with its key, and name that in ssl.keystore.location",
    "ssl.truststore.certificates": "write them to a file, and name it in ssl.truststore.location",
    "keyTab": "name the key table in the variable KRB5_CLIENT_KTNAME, as Kerberos itself reads it",
    "awsProfileName": "name the profile in the variable AWS_PROFILE",
}


@dataclass(slots=True)
class _Reader:
    """The properties of a file; each is taken once, and what is left then is unsupported."""

    file: Path
    values: dict[str, str]
    lines: dict[str, int]
    problems: list[str] = field(default_factory=list)

    def take(self, name: str) -> str | None:
        """Return the value of a property that is supported; None if it is not set or empty."""
        return self.values.pop(name, "").strip() or None

    def problem(self, name: str, why: str) -> None:
        """Record what is wrong with a property; never with its value, which may be a password."""
        self.problems.append(f"{self.file}, line {self.lines[name]}: {name} {why}")

    def choose(self, name: str, wanted: tuple[str, ...]) -> str | None:
        """Return the value of a property that must be one of these words; they are in upper case."""
        value = self.take(name)
        if value is not None and value.upper() not in wanted:
            self.problem(name, f"must be one of {', '.join(wanted)}")
        return None if value is None else value.upper()


def read_client_properties(file: Path) -> dict[str, Any]:
    """Return the settings of a cluster: `security`, and `bootstrap` if the file names it; reads the file only.

    Raises `ConfigurationError` that names every property that is wrong or unsupported, with its line.
    """
    reader = _Reader(file, *_parsed(file))
    cluster: dict[str, Any] = {}
    if (bootstrap := reader.take("bootstrap.servers")) is not None:
        cluster["bootstrap"] = bootstrap
    security: dict[str, Any] = {}
    protocol = reader.choose("security.protocol", ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"))
    if protocol is not None:
        security["security_protocol"] = protocol
    if protocol in {"SASL_PLAINTEXT", "SASL_SSL"}:
        security |= _login(reader)
    if protocol in {"SSL", "SASL_SSL"}:
        security |= _tls(reader)
    for name in reader.values:
        reader.problem(name, _unsupported(name, protocol))
    if reader.problems:
        raise ConfigurationError("; ".join(reader.problems))
    return cluster | {"security": security}


def _parsed(file: Path) -> tuple[dict[str, str], dict[str, int]]:
    """Read as Java does: Latin-1, and the last value of a name counts."""
    values: dict[str, str] = {}
    lines: dict[str, int] = {}
    try:
        content = read_trusted(file, "the properties file")
        number = 1
        for part in javaproperties.parse(io.BytesIO(content)):
            if isinstance(part, javaproperties.KeyValue):
                values[part.key], lines[part.key] = part.value, number
            number += len(part.source.splitlines())
    except OSError as error:
        raise ConfigurationError(
            f"the file {file} cannot be read ({error.strerror}); name another with --command-config"
        ) from error
    except javaproperties.InvalidUEscapeError as error:
        raise ConfigurationError(f"{file}, line {number}: {error}") from error
    return values, lines


def _unsupported(name: str, protocol: str | None) -> str:
    if name in _REMEDIES:
        return f"is not supported: {_REMEDIES[name]}"
    if name.startswith(("sasl.", "ssl.")):
        return f"is not supported, or has no effect with security.protocol={protocol or 'PLAINTEXT'}: leave it out"
    return "is not supported: leave it out, since only properties that say how to connect have a meaning here"


def _login(reader: _Reader) -> dict[str, Any]:
    mechanism = reader.choose(
        "sasl.mechanism", ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER", "AWS_MSK_IAM", "GSSAPI")
    )
    # Kafka's clients take GSSAPI where nothing is said.
    security: dict[str, Any] = {"sasl_mechanism": mechanism or "GSSAPI"}
    if (name := reader.take("sasl.kerberos.service.name")) is not None:
        security["sasl_kerberos_service_name"] = name
    security |= _jaas(reader)
    security |= _tokens(reader)
    return security


def _tokens(reader: _Reader) -> dict[str, Any]:
    login, client = "sasl.login.callback.handler.class", "sasl.client.callback.handler.class"
    for name, handlers in ((login, _HANDLERS), (client, {AWS_HANDLER})):
        handler = reader.values.get(name)
        if handler is not None and handler.strip() in handlers:
            reader.take(name)
    security: dict[str, Any] = {}
    url = reader.take("sasl.oauthbearer.token.endpoint.url")
    if url is not None and url.startswith("file:"):
        security["sasl_oauth_token_file"] = urllib.parse.unquote(urllib.parse.urlsplit(url).path)
    elif url is not None:
        security["sasl_oauth_token_endpoint"] = url
    for name, setting in (
        ("sasl.oauthbearer.client.credentials.client.id", "sasl_oauth_client_id"),
        ("sasl.oauthbearer.client.credentials.client.secret", "sasl_oauth_client_secret"),
        ("sasl.oauthbearer.scope", "sasl_oauth_scope"),
    ):
        if (value := reader.take(name)) is not None:
            security[setting] = value
    return security


def _jaas(reader: _Reader) -> dict[str, Any]:
    text = reader.take(JAAS)
    if text is None:
        return {}
    entry = _JAAS.fullmatch(text)
    if entry is None:
        reader.problem(JAAS, 'is not a login module with its options, such as `MODULE required username="me";`')
        return {}
    module = entry["module"]
    if module not in _MODULES:
        reader.problem(JAAS, f"names the login module {module}, which is not supported")
        return {}
    options = dict(_jaas_options(reader, entry["options"]))
    security: dict[str, Any] = {}
    for option, value in options.items():
        if option not in _MODULES[module]:
            reader.problem(JAAS, f"has the option {option}, which is not supported{_hint(option)}")
        elif (setting := _MODULES[module][option]) is not None:
            security[setting] = value
    return security


def _hint(option: str) -> str:
    return f": {_REMEDIES[option]}" if option in _REMEDIES else ""


def _jaas_options(reader: _Reader, text: str) -> Iterator[tuple[str, str]]:
    place = 0
    while text[place:].strip():
        option = _JAAS_OPTION.match(text, place)
        if option is None:
            reader.problem(JAAS, 'has options that are not of the form name="value"')
            return
        quoted = option[2] if option[2] is not None else option[3]
        yield option[1], option[4] if quoted is None else re.sub(r"\\(.)", r"\1", quoted, flags=re.DOTALL)
        place = option.end()


def _tls(reader: _Reader) -> dict[str, Any]:
    if reader.values.get("ssl.endpoint.identification.algorithm", "").strip().lower() == "https":
        reader.take("ssl.endpoint.identification.algorithm")
    security: dict[str, Any] = {}
    for store in ("ssl.truststore", "ssl.keystore"):
        form = reader.choose(f"{store}.type", ("PEM", "PKCS12"))
        file = reader.take(f"{store}.location")
        if file is not None:
            # The file itself shows its form; Java takes JKS where nothing is said.
            security["ssl_cafile" if store == "ssl.truststore" else "ssl_certfile"] = file
        elif form is not None:
            reader.problem(f"{store}.type", f"has no effect without {store}.location")
    if (password := reader.take("ssl.truststore.password")) is not None:
        security["ssl_ca_password"] = password
    of_store, of_key = reader.take("ssl.keystore.password"), reader.take("ssl.key.password")
    if of_store is not None and of_key is not None and of_store != of_key:
        reader.problem("ssl.key.password", "differs from ssl.keystore.password: PKCS #12 has one password for both")
    if of_store is not None or of_key is not None:
        security["ssl_key_password"] = of_store or of_key
    return security
