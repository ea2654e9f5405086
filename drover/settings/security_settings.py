"""How to reach a Kafka: the sections `[log.security]` and `[clusters.NAME.security]`, as values."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from drover.settings.client_certificate import ClientCertificate, SettingNames, check_authorities
from drover.settings.secret import Secret, read_secret, unusable

if TYPE_CHECKING:
    from ssl import SSLContext

Protocol = Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"]
Mechanism = Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]


@dataclass(frozen=True, slots=True)
class Security:
    """How to reach one Kafka; the names are those of the Kafka clients, except for the file that holds the password.

    The authorities are PEM; Drover's own certificate and key are PEM or PKCS #12, and a key that is encrypted needs its
    password. A broker's certificate must name the host that it is reached by. SASL without TLS sends the password in
    the clear, so it must be allowed explicitly.
    """

    __pydantic_config__: ClassVar[Mapping[str, Any]] = {"extra": "forbid"}

    security_protocol: Protocol = "PLAINTEXT"
    sasl_mechanism: Mechanism | None = None
    sasl_plain_username: str | None = None
    sasl_plain_password: str | None = field(default=None, repr=False)
    sasl_plain_password_file: str | None = None
    ssl_cafile: str | None = None
    ssl_certfile: str | None = None
    ssl_keyfile: str | None = None
    ssl_key_password: str | None = field(default=None, repr=False)
    ssl_key_password_file: str | None = None
    allow_plaintext_sasl: bool = False

    def __post_init__(self) -> None:
        """Refuse combinations that no client could use, or that give a password away."""
        if self.security_protocol == "SASL_PLAINTEXT" and not self.allow_plaintext_sasl:
            raise ValueError(
                "SASL without TLS sends the password readable over the network; "
                "use security_protocol = SASL_SSL, or set allow_plaintext_sasl = true"
            )
        password = self.sasl_plain_password or self.sasl_plain_password_file
        if self.uses_sasl and None in {self.sasl_mechanism, self.sasl_plain_username, password}:
            raise ValueError(
                f"{self.security_protocol} needs sasl_mechanism, sasl_plain_username and sasl_plain_password "
                "(or sasl_plain_password_file)"
            )
        for setting in ("sasl_plain_password", "ssl_key_password"):
            if getattr(self, setting) and getattr(self, f"{setting}_file"):
                raise ValueError(f"{setting} and {setting}_file are both set: choose one")
        if not self.uses_sasl and (self.sasl_mechanism or self.sasl_plain_username or password):
            raise ValueError(f"SASL settings have no effect with security_protocol = {self.security_protocol}")
        key_password = self.ssl_key_password or self.ssl_key_password_file
        if not self.uses_tls and (self.ssl_cafile or self.ssl_certfile or self.ssl_keyfile or key_password):
            raise ValueError(f"TLS files have no effect with security_protocol = {self.security_protocol}")
        if self.ssl_keyfile and not self.ssl_certfile:
            raise ValueError("ssl_keyfile has no effect without ssl_certfile")
        if key_password and not self.ssl_certfile:
            raise ValueError("ssl_key_password has no effect without ssl_certfile")

    @property
    def uses_sasl(self) -> bool:
        """Whether the client authenticates with a name and a password."""
        return self.security_protocol.startswith("SASL_")

    @property
    def uses_tls(self) -> bool:
        """Whether the connection is encrypted."""
        return self.security_protocol.endswith("SSL")

    def client_options(self, section: str) -> dict[str, Any]:
        """Return the keyword arguments that both clients, aiokafka and kafka-python, are opened with; reads the files.

        Raises `ConfigurationError` for a file that cannot be used; `section` is what it calls these settings.
        """
        options: dict[str, Any] = {"security_protocol": self.security_protocol}
        if self.uses_sasl:
            options |= {
                "sasl_mechanism": self.sasl_mechanism,
                "sasl_plain_username": self.sasl_plain_username,
                "sasl_plain_password": self.sasl_password(section),
            }
        if self.uses_tls:
            options["ssl_context"] = self._tls_context(section)
        return options

    def sasl_password(self, section: str) -> Secret:
        """Return the password, from its file if that is where it is. Raises `ConfigurationError`."""
        password = read_secret(section, "sasl_plain_password", self.sasl_plain_password, self.sasl_plain_password_file)
        assert password is not None, "checked when the settings were made"
        return password

    def client_certificate(self, section: str) -> ClientCertificate | None:
        """Return Drover's own certificate, if it has one. Raises `ConfigurationError` for a password's file."""
        if self.ssl_certfile is None:
            return None
        password = read_secret(section, "ssl_key_password", self.ssl_key_password, self.ssl_key_password_file)
        return ClientCertificate(SettingNames(section), self.ssl_certfile, self.ssl_keyfile, password)

    def _tls_context(self, section: str) -> "SSLContext":
        import ssl  # noqa: PLC0415 - costs start-up time and few need it

        if self.ssl_cafile is not None:
            check_authorities(section, "ssl_cafile", self.ssl_cafile)
        try:
            # It checks the certificate and the host's name. Only the file's authorities count, not those
            # that this machine trusts for the web.
            context = ssl.create_default_context(cafile=self.ssl_cafile)
        except OSError as error:  # what ssl raises for unreadable and for senseless files
            raise unusable(section, "ssl_cafile", str(self.ssl_cafile), str(error)) from error
        certificate = self.client_certificate(section)
        if certificate is not None:
            certificate.load_into(context)
        return context
