"""How to reach one Kafka: `[log.security]` and `[clusters.NAME.security]`, and what the clients are told of them."""

import ipaddress
import logging
import os
import urllib.parse
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from drover.errors import ConfigurationError
from drover.extras import Extra, require
from drover.logins import PASSWORD, TOKENS, ChangingSecret, Secret, TokenSource
from drover.settings.credentials import (
    ClientCertificate,
    SettingNames,
    read_authorities,
    read_secret,
    unusable,
)

if TYPE_CHECKING:
    from ssl import SSLContext

Protocol = Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"]
Mechanism = Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER", "AWS_MSK_IAM", "GSSAPI"]
WITH_PASSWORD = frozenset({"PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"})
# The settings that have a meaning with one mechanism only, by the beginning of their names.
_OWN_SETTINGS = {"sasl_oauth_": {"OAUTHBEARER"}, "sasl_aws_": {"AWS_MSK_IAM"}, "sasl_kerberos_": {"GSSAPI"}}
# What AWS's own programs read.
_REGION_VARIABLES = ("AWS_REGION", "AWS_DEFAULT_REGION")
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Security:
    """How to reach one Kafka; names are those of the Kafka clients, except for the files that hold a password.

    A broker's certificate must match its host name. SASL without TLS shows passwords and tokens to the network, so it
    must be allowed explicitly. Files are read for the first connection, and again once they have changed.
    """

    security_protocol: Protocol = "PLAINTEXT"
    """whether the connection is encrypted, and whether the client logs in with SASL"""
    sasl_mechanism: Mechanism | None = None
    """how the client logs in"""
    sasl_plain_username: str | None = None
    """Drover's user, for PLAIN and SCRAM"""
    sasl_plain_password: str | None = field(default=None, repr=False)
    """the user's password; better in a file or a variable"""
    sasl_plain_password_file: str | None = None
    """a file that holds the password and nothing else"""
    ssl_cafile: str | None = None
    """the authorities to trust, PEM or PKCS #12; default: those that the machine trusts"""
    ssl_certfile: str | None = None
    """Drover's own certificate, PEM or PKCS #12, if the brokers ask for one"""
    ssl_keyfile: str | None = None
    """its key, PEM, unless the certificate's file holds it"""
    ssl_key_password: str | None = field(default=None, repr=False)
    """the password of an encrypted key, or of PKCS #12"""
    ssl_key_password_file: str | None = None
    """a file that holds that password and nothing else"""
    allow_plaintext_sasl: bool = False
    """whether SASL may be used without TLS"""
    ssl_ca_password: str | None = field(default=None, repr=False)
    """the password of `ssl_cafile`, if that is PKCS #12"""
    ssl_ca_password_file: str | None = None
    """a file that holds that password and nothing else"""
    sasl_oauth_token_endpoint: str | None = None
    """where OAUTHBEARER gets tokens for an id and a secret (OAuth's client credentials); an https URL"""
    sasl_oauth_client_id: str | None = None
    """Drover's id at the token endpoint"""
    sasl_oauth_client_secret: str | None = field(default=None, repr=False)
    """its secret; better in a file or a variable"""
    sasl_oauth_client_secret_file: str | None = None
    """a file that holds the secret and nothing else"""
    sasl_oauth_scope: str | None = None
    """the scope to ask the token endpoint for"""
    sasl_oauth_cafile: str | None = None
    """the authorities to trust for the token endpoint, PEM; default: those that the machine trusts"""
    sasl_oauth_token_file: str | None = None
    """a file with a token for OAUTHBEARER, which another program renews"""
    sasl_oauth_token_command: tuple[str, ...] = ()
    """a command that prints a token for OAUTHBEARER, with its arguments"""
    sasl_aws_region: str | None = None
    """the region of the MSK cluster, for AWS_MSK_IAM; default: that of the environment"""
    sasl_kerberos_service_name: str | None = None
    """the brokers' name in Kerberos, for GSSAPI; default: kafka"""

    def __post_init__(self) -> None:
        """Refuse combinations that are unusable, or that expose a password."""
        if self.security_protocol == "SASL_PLAINTEXT" and not self.allow_plaintext_sasl:
            raise ValueError(
                "SASL without TLS sends the password in the clear; "
                "use security_protocol = SASL_SSL, or set allow_plaintext_sasl = true"
            )
        for setting in ("sasl_plain_password", "ssl_key_password", "ssl_ca_password", "sasl_oauth_client_secret"):
            if getattr(self, setting) and getattr(self, f"{setting}_file"):
                raise ValueError(f"{setting} and {setting}_file are both set: choose one")
        if self.uses_sasl:
            self._check_sasl()
        elif self._sasl_settings():
            raise ValueError(f"SASL settings have no effect with security_protocol = {self.security_protocol}")
        self._check_tls()

    def _check_sasl(self) -> None:
        mechanism = self.sasl_mechanism
        has_user = self.sasl_plain_username is not None
        has_password = bool(self.sasl_plain_password or self.sasl_plain_password_file)
        if mechanism is None or (mechanism in WITH_PASSWORD and not (has_user and has_password)):
            raise ValueError(
                f"{self.security_protocol} needs sasl_mechanism, sasl_plain_username and sasl_plain_password "
                "(or sasl_plain_password_file)"
            )
        if mechanism not in WITH_PASSWORD and (has_user or has_password):
            raise ValueError(f"sasl_plain_username and its password have no effect with sasl_mechanism = {mechanism}")
        for beginning, mechanisms in _OWN_SETTINGS.items():
            for setting in self._sasl_settings():
                if setting.startswith(beginning) and mechanism not in mechanisms:
                    raise ValueError(f"{setting} has no effect with sasl_mechanism = {mechanism}")
        if mechanism == "OAUTHBEARER":
            self._check_tokens()
        if mechanism == "AWS_MSK_IAM" and self.aws_region is None:
            raise ValueError(f"sasl_aws_region is not set, and neither is {_REGION_VARIABLES[0]}")

    def _check_tokens(self) -> None:
        ways = ("sasl_oauth_token_endpoint", "sasl_oauth_token_file", "sasl_oauth_token_command")
        chosen = [way for way in ways if getattr(self, way)]
        if len(chosen) != 1:
            raise ValueError(f"OAUTHBEARER needs exactly one of {', '.join(ways)}")
        of_endpoint = [
            setting
            for setting in self._sasl_settings()
            if setting.startswith(("sasl_oauth_client_", "sasl_oauth_scope", "sasl_oauth_cafile"))
        ]
        endpoint = self.sasl_oauth_token_endpoint
        if endpoint is None:
            if of_endpoint:
                raise ValueError(f"{of_endpoint[0]} has no effect without sasl_oauth_token_endpoint")
            return
        if self.sasl_oauth_client_id is None or not (
            self.sasl_oauth_client_secret or self.sasl_oauth_client_secret_file
        ):
            raise ValueError(
                "sasl_oauth_token_endpoint needs sasl_oauth_client_id and sasl_oauth_client_secret "
                "(or sasl_oauth_client_secret_file)"
            )
        if not _keeps_secrets(endpoint):
            raise ValueError(
                "sasl_oauth_token_endpoint must be an https URL, because the secret is sent there; http is for this "
                "machine only"
            )

    def _check_tls(self) -> None:
        key_password = self.ssl_key_password or self.ssl_key_password_file
        ca_password = self.ssl_ca_password or self.ssl_ca_password_file
        passwords = key_password or ca_password
        if not self.uses_tls and (self.ssl_cafile or self.ssl_certfile or self.ssl_keyfile or passwords):
            raise ValueError(f"TLS files have no effect with security_protocol = {self.security_protocol}")
        if self.ssl_keyfile and not self.ssl_certfile:
            raise ValueError("ssl_keyfile has no effect without ssl_certfile")
        if key_password and not self.ssl_certfile:
            raise ValueError("ssl_key_password has no effect without ssl_certfile")
        if ca_password and not self.ssl_cafile:
            raise ValueError("ssl_ca_password has no effect without ssl_cafile")

    def _sasl_settings(self) -> list[str]:
        """Return the names of the SASL settings that are set."""
        return [name for name in self.__dataclass_fields__ if name.startswith("sasl_") and getattr(self, name)]

    @property
    def uses_sasl(self) -> bool:
        """Whether the client logs in with SASL."""
        return self.security_protocol.startswith("SASL_")

    @property
    def uses_tls(self) -> bool:
        """Whether the connection is encrypted."""
        return self.security_protocol.endswith("SSL")

    @property
    def aws_region(self) -> str | None:
        """The region of the MSK cluster, from its setting or AWS's own variables."""
        return self.sasl_aws_region or next(filter(None, map(os.environ.get, _REGION_VARIABLES)), None)

    @property
    def kerberos_service_name(self) -> str:
        """The brokers' name in Kerberos."""
        return self.sasl_kerberos_service_name or "kafka"

    def client_options(self, section: str) -> dict[str, Any]:
        """Return the options for the clients; reads the files.

        They are keyword arguments of aiokafka and of kafka-python, except that passwords from files and sources of
        tokens are those of `drover.logins`, which `drover.journal.login` and `drover.cluster.login` hand over. Raises
        `ConfigurationError` for an unusable file; `section` names these settings in the message.
        """
        options: dict[str, Any] = {"security_protocol": self.security_protocol}
        if self.uses_sasl:
            options |= self._login(section)
        if self.uses_tls:
            options["ssl_context"] = self._reloading_context(section)
        return options

    def _login(self, section: str) -> dict[str, Any]:
        match self.sasl_mechanism:
            case "OAUTHBEARER" | "AWS_MSK_IAM":
                # Amazon MSK takes its tokens by OAUTHBEARER, too.
                return {"sasl_mechanism": "OAUTHBEARER", TOKENS: self._token_source(section)}
            case "GSSAPI":
                require(Extra.GSSAPI, f"{section}.sasl_mechanism = GSSAPI")
                return {"sasl_mechanism": "GSSAPI", "sasl_kerberos_service_name": self.kerberos_service_name}
            case _:
                return {
                    "sasl_mechanism": self.sasl_mechanism,
                    "sasl_plain_username": self.sasl_plain_username,
                    PASSWORD: self._changing_password(section),
                }

    def _changing_password(self, section: str) -> Secret:
        password = self.sasl_password(section)
        if self.sasl_plain_password_file is None:
            return password
        return ChangingSecret(password, _Latest(lambda: self.sasl_password(section), password).read)

    def _token_source(self, section: str) -> TokenSource:
        from drover.settings import tokens  # noqa: PLC0415 - costs start-up time and few need it

        if self.sasl_mechanism == "AWS_MSK_IAM":
            return tokens.aws_tokens(section, str(self.aws_region))
        if self.sasl_oauth_token_file is not None:
            return tokens.TokenFile(f"{section}.sasl_oauth_token_file", self.sasl_oauth_token_file)
        if self.sasl_oauth_token_command:
            return tokens.KeptTokens(tokens.TokenCommand(self.sasl_oauth_token_command).issue)
        latest = _Latest(lambda: self.oauth_secret(section), self.oauth_secret(section))
        return tokens.KeptTokens(
            tokens.ClientCredentials(
                str(self.sasl_oauth_token_endpoint),
                str(self.sasl_oauth_client_id),
                latest.read,
                self.sasl_oauth_scope,
                self.sasl_oauth_cafile,
            ).issue
        )

    def sasl_password(self, section: str) -> Secret:
        """Return the password, from its setting or its file. Raises `ConfigurationError`."""
        password = read_secret(section, "sasl_plain_password", self.sasl_plain_password, self.sasl_plain_password_file)
        assert password is not None, "checked when the settings were made"
        return password

    def oauth_secret(self, section: str) -> Secret:
        """Return the secret for the token endpoint, from its setting or its file. Raises `ConfigurationError`."""
        text, file = self.sasl_oauth_client_secret, self.sasl_oauth_client_secret_file
        secret = read_secret(section, "sasl_oauth_client_secret", text, file)
        assert secret is not None, "checked when the settings were made"
        return secret

    def authorities(self, section: str) -> str | None:
        """Return the certificates of `ssl_cafile` as PEM, None without one. Raises `ConfigurationError`."""
        if self.ssl_cafile is None:
            return None
        password = read_secret(section, "ssl_ca_password", self.ssl_ca_password, self.ssl_ca_password_file)
        return read_authorities(section, self.ssl_cafile, password)

    def client_certificate(self, section: str) -> ClientCertificate | None:
        """Return Drover's own certificate, if it has one. Raises `ConfigurationError` for an unusable password file."""
        if self.ssl_certfile is None:
            return None
        password = read_secret(section, "ssl_key_password", self.ssl_key_password, self.ssl_key_password_file)
        return ClientCertificate(SettingNames(section), self.ssl_certfile, self.ssl_keyfile, password)

    def _reloading_context(self, section: str) -> "SSLContext":
        from drover.settings.tls import ReloadingContext  # noqa: PLC0415 - costs start-up time and few need it

        named = (
            *(self.ssl_cafile, self.ssl_ca_password_file, self.ssl_certfile, self.ssl_keyfile),
            self.ssl_key_password_file,
        )
        return ReloadingContext(lambda: self._tls_context(section), [file for file in named if file is not None])

    def _tls_context(self, section: str) -> "SSLContext":
        import ssl  # noqa: PLC0415 - costs start-up time and few need it

        authorities = self.authorities(section)
        try:
            # Checks the certificate and the host name. Only the file's authorities are trusted, not those of this
            # machine.
            context = ssl.create_default_context(cadata=authorities)
        except OSError as error:  # what ssl raises for senseless files
            raise unusable(section, "ssl_cafile", str(self.ssl_cafile), str(error)) from error
        certificate = self.client_certificate(section)
        if certificate is not None:
            certificate.load_into(context)
        return context


class _Latest:
    """A secret that is read each time; one that cannot be read is logged once, and the last one stays valid."""

    def __init__(self, read: Callable[[], Secret], first: Secret) -> None:
        self._read, self._last = read, first
        self._is_warned = False

    def read(self) -> Secret:
        try:
            self._last = self._read()
            self._is_warned = False
        except ConfigurationError as error:
            if not self._is_warned:
                self._is_warned = True
                _log.warning("new connections use the password that was read before: %s", error)
        return self._last


def _keeps_secrets(url: str) -> bool:
    """Whether what is sent there can be read by nobody on the way."""
    try:
        parts = urllib.parse.urlsplit(url)
        host = parts.hostname or ""
    except ValueError:
        return False
    if parts.scheme == "https":
        return bool(host)
    if parts.scheme != "http":
        return False
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
