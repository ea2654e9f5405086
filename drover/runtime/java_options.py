"""How to reach a Kafka, in the words of Kafka's own Java client: for programs that bring that client, such as Spark."""

from pathlib import Path

from drover.errors import ConfigurationError
from drover.runtime.settings import Security

_LOGIN = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}


def java_client_options(security: Security, section: str) -> dict[str, str]:
    """Return the Java client's properties for these settings; reads the files.

    Raises `ConfigurationError` for a file that cannot be used; `section` is what it calls these settings. A key must be
    PKCS #8 (`BEGIN PRIVATE KEY`), which is all that the Java client reads.
    """
    options: dict[str, str] = {"security.protocol": security.security_protocol}
    if security.uses_sasl:
        # Reading it as the Python clients do also checks it.
        password = str(security.client_options(section)["sasl_plain_password"])
        assert security.sasl_mechanism is not None, "checked when the settings were made"
        login = _LOGIN[security.sasl_mechanism]
        user = _quoted(security.sasl_plain_username or "")
        options |= {
            "sasl.mechanism": security.sasl_mechanism,
            "sasl.jaas.config": f"{login} required username={user} password={_quoted(password)};",
        }
    if security.ssl_cafile:
        options |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(Path(security.ssl_cafile).absolute())}
    if security.ssl_certfile:
        certificate = _text(section, "ssl_certfile", security.ssl_certfile)
        key = _text(section, "ssl_keyfile", security.ssl_keyfile) if security.ssl_keyfile else certificate
        options |= {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.certificate.chain": certificate,
            "ssl.keystore.key": key,
        }
    return options


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _text(section: str, setting: str, file: str) -> str:
    try:
        return Path(file).read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(
            f"{section}.{setting}: the file {file} cannot be used ({error}); name another"
        ) from error
