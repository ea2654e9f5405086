"""Log in at the log's Kafka with what is valid at that moment; aiokafka itself would keep the first password.

aiokafka has no extension point for passwords. Its clients make every connection with one function, which this module
replaces.
"""

import asyncio
from collections.abc import Mapping
from typing import Any

from aiokafka import client, conn
from aiokafka.abc import AbstractTokenProvider
from aiokafka.conn import AIOKafkaConnection, OAuthAuthenticator, create_conn
from aiokafka.errors import AuthenticationFailedError, KafkaConnectionError, SaslAuthenticationFailed

from drover.logins import PASSWORD, TOKENS, ChangingSecret, TokenError, TokenRefusedError, TokenSource, kerberos_errors


class NoTokenError(KafkaConnectionError):  # type: ignore[misc]  # aiokafka ships no types
    """There is no token for this connection now; the next one tries again."""


class TokenDeniedError(AuthenticationFailedError):  # type: ignore[misc]  # aiokafka ships no types
    """The token endpoint refuses our credentials."""


class NoTicketError(AuthenticationFailedError):  # type: ignore[misc]  # aiokafka ships no types
    """Kerberos gives no ticket for the broker; the message says why."""


class _Tokens(AbstractTokenProvider):  # type: ignore[misc]  # aiokafka ships no types
    """A source of tokens as aiokafka wants it."""

    def __init__(self, source: TokenSource) -> None:
        self._source = source

    async def token(self) -> str:
        """Return a token. Raises `NoTokenError` or `TokenDeniedError`, which the client takes for its own."""
        try:
            return await asyncio.to_thread(self._source.token)
        except TokenRefusedError as error:
            raise TokenDeniedError(str(error)) from error
        except TokenError as error:
            raise NoTokenError(str(error)) from error


class _Bearer(OAuthAuthenticator):  # type: ignore[misc]  # aiokafka ships no types
    """OAUTHBEARER that fails when the broker refuses the token; aiokafka's own mistakes the refusal for success."""

    async def step(self, payload: bytes | None) -> Any:
        """Return what to send next, None at the end. Raises `SaslAuthenticationFailed` if the broker objects."""
        if payload:
            raise SaslAuthenticationFailed(f"the broker refuses the token: {payload.decode(errors='replace')}")
        return await super().step(payload)


def aiokafka_options(security: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keyword arguments of an aiokafka client for these security options."""
    options = dict(security)
    if TOKENS in options:
        options[TOKENS] = _Tokens(options[TOKENS])
    return options


async def connect(host: str, port: int, **options: Any) -> AIOKafkaConnection:
    """Connect to a broker with the password that is valid now. Raises `KafkaError` or `OSError`, like aiokafka."""
    password = options.get(PASSWORD)
    if isinstance(password, ChangingSecret):
        options[PASSWORD] = await asyncio.to_thread(password.now)
    try:
        return await create_conn(host, port, **options)
    except kerberos_errors(options.get("sasl_mechanism")) as error:
        raise NoTicketError(str(error)) from error


# For every client of this process.
client.create_conn = connect
conn.OAuthAuthenticator = _Bearer
