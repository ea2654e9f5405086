"""What a client shows to a Kafka each time it connects: a password or a token, which may change while it runs.

The settings make these values; `drover.journal.login` and `drover.cluster.login` hand them to the two clients.
"""

import importlib
from collections.abc import Callable
from typing import Protocol, Self

from drover.errors import ConfigurationError, DroverError

# The options in which the settings hand these values to the two clients; both clients call them so.
PASSWORD = "sasl_plain_password"  # noqa: S105 - the name of an option
TOKENS = "sasl_oauth_token_provider"


class TokenError(DroverError):
    """There is no token now: the endpoint, the command or the file does not give one; a retry may help."""


class TokenRefusedError(TokenError):
    """Whoever gives tokens refuses us: the operator must correct a setting."""


class Secret(str):
    """A password whose `repr` is hidden in output, logs and error messages."""

    __slots__ = ()

    def __repr__(self) -> str:
        """Hide the password, because the clients log their options."""
        return "'***'"


class ChangingSecret(Secret):
    """A password that may change; as text it is the one that was valid when this value was made.

    `read` returns the password that is valid now, and never fails: it falls back on the last one that could be read.
    """

    # A subclass of str cannot have slots of its own.
    _read: Callable[[], str]

    def __new__(cls, text: str, read: Callable[[], str]) -> Self:
        """Make the value."""
        made = super().__new__(cls, text)
        made._read = read
        return made

    def now(self) -> str:
        """Return the password that is valid now."""
        return self._read()


class TokenSource(Protocol):
    """Gives bearer tokens, from any thread; it blocks for a bounded time."""

    def token(self) -> str:
        """Return a token that is valid for some time yet. Raises `TokenError`."""
        ...


def kerberos_errors(mechanism: object) -> tuple[type[Exception], ...]:
    """Return what Kerberos' library raises where this SASL mechanism uses it, which no client takes for its own."""
    return (importlib.import_module("gssapi.exceptions").GSSError,) if mechanism == "GSSAPI" else ()


def kerberos_principal(section: str) -> str:
    """Return the name as which Kerberos' library logs in now; it may ask the KDC for a ticket.

    Raises `ConfigurationError`, which names the settings `section`, where there is no ticket.
    """
    gssapi = importlib.import_module("gssapi")
    try:
        return str(gssapi.Credentials(usage="initiate").name)
    except kerberos_errors("GSSAPI") as error:
        raise ConfigurationError(f"{section}: there is no Kerberos ticket ({error})") from error
