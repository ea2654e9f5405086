"""Log in at managed clusters with what is valid at that moment; kafka-python itself would keep the first password.

kafka-python's extension point for SASL mechanisms gets the options of a client for each connection.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from kafka.errors import SaslAuthenticationFailedError
from kafka.net.sasl import register_sasl_mechanism
from kafka.net.sasl.gssapi import SaslMechanismGSSAPI
from kafka.net.sasl.oauth import AbstractTokenProvider
from kafka.net.sasl.plain import SaslMechanismPlain
from kafka.net.sasl.scram import SaslMechanismScram

from drover.logins import PASSWORD, TOKENS, ChangingSecret, TokenError, TokenSource, kerberos_errors


class NoCredentialsError(SaslAuthenticationFailedError):  # type: ignore[misc]  # kafka-python ships no types
    """There is nothing to show to the broker, and the message says why: no token, or no Kerberos ticket."""


class _Tokens(AbstractTokenProvider):  # type: ignore[misc]  # kafka-python ships no types
    """A source of tokens as kafka-python wants it."""

    def __init__(self, source: TokenSource) -> None:
        super().__init__()
        self._source = source

    def token(self) -> str:
        """Return a token. Raises `NoCredentialsError`."""
        try:
            return self._source.token()
        except TokenError as error:
            raise NoCredentialsError(f"cannot be shown a token ({error})") from error


class _Plain(SaslMechanismPlain):  # type: ignore[misc]  # kafka-python ships no types
    """PLAIN with the password that is valid now."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**_with_password_now(options))


class _Scram(SaslMechanismScram):  # type: ignore[misc]  # kafka-python ships no types
    """SCRAM with the password that is valid now."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**_with_password_now(options))


class _Kerberos(SaslMechanismGSSAPI):  # type: ignore[misc]  # kafka-python ships no types
    """GSSAPI whose failures say so."""

    def __init__(self, **options: Any) -> None:
        with _tickets():
            super().__init__(**options)

    def receive(self, auth_bytes: bytes) -> None:
        """Take in what the broker answers. Raises `NoCredentialsError`."""
        with _tickets():
            super().receive(auth_bytes)


@contextmanager
def _tickets() -> Iterator[None]:
    try:
        yield
    except kerberos_errors("GSSAPI") as error:
        raise NoCredentialsError(f"cannot be shown a Kerberos ticket ({error})") from error


def kafka_python_options(security: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keyword arguments of a kafka-python client for these security options."""
    options = dict(security)
    if TOKENS in options:
        options[TOKENS] = _Tokens(options[TOKENS])
    return options


def _with_password_now(options: Mapping[str, Any]) -> dict[str, Any]:
    password = options.get(PASSWORD)
    return {**options, PASSWORD: password.now() if isinstance(password, ChangingSecret) else password}


# For every client of this process.
register_sasl_mechanism("GSSAPI", _Kerberos, overwrite=True)
register_sasl_mechanism("PLAIN", _Plain, overwrite=True)
register_sasl_mechanism("SCRAM-SHA-256", _Scram, overwrite=True)
register_sasl_mechanism("SCRAM-SHA-512", _Scram, overwrite=True)
