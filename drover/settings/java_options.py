"""The connection settings as properties of Kafka's Java client, for programs that use that client, such as Spark."""

from pathlib import Path

from drover.settings.credentials import check_authorities
from drover.settings.settings import Security

_LOGIN = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}


def java_client_options(security: Security, section: str) -> dict[str, str]:
    """Return the Java client's properties for these settings; reads the files.

    Raises `ConfigurationError` for an unusable file; `section` names these settings in the message. Every key is passed
    in PKCS #8, unencrypted, because the Java client reads no other form.
    """
    options: dict[str, str] = {"security.protocol": security.security_protocol}
    if security.uses_sasl:
        password = str(security.sasl_password(section))
        assert security.sasl_mechanism is not None, "checked when the settings were made"
        login = _LOGIN[security.sasl_mechanism]
        user = _quoted(security.sasl_plain_username or "")
        options |= {
            "sasl.mechanism": security.sasl_mechanism,
            "sasl.jaas.config": f"{login} required username={user} password={_quoted(password)};",
        }
    if security.ssl_cafile:
        check_authorities(section, "ssl_cafile", security.ssl_cafile)
        options |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(Path(security.ssl_cafile).absolute())}
    own = security.client_certificate(section)
    if own is not None:
        chain, key = own.texts()
        options |= {"ssl.keystore.type": "PEM", "ssl.keystore.certificate.chain": chain, "ssl.keystore.key": key}
    return options


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
