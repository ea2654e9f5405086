"""Why the log's Kafka did not do what was asked, in one sentence with the remedy.

aiokafka logs why it cannot connect and then raises only that it cannot. Nobody should have to read a log to learn that
a password is wrong, so the connection is tried once more by hand, on the way to the error message.
"""

import ssl

from aiokafka.conn import create_conn
from aiokafka.errors import (
    AuthenticationFailedError,
    ClusterAuthorizationFailedError,
    GroupAuthorizationFailedError,
    KafkaError,
    SaslAuthenticationFailed,
    TopicAuthorizationFailedError,
    UnsupportedSaslMechanismError,
)

from drover.errors import LogAccessError, LogUnavailableError
from drover.journal.connection import LogConnection

TIMEOUT_MS = 2_000
AUTHORIZATION_ERRORS = (
    ClusterAuthorizationFailedError,
    GroupAuthorizationFailedError,
    TopicAuthorizationFailedError,
)
_AUTHENTICATION_ERRORS = (AuthenticationFailedError, SaslAuthenticationFailed, UnsupportedSaslMechanismError)


def unreachable(connection: LogConnection, error: Exception) -> LogUnavailableError:
    """Say that the log's Kafka did not do what was asked, and what to look at."""
    reason = str(error) or type(error).__name__
    if isinstance(error, AUTHORIZATION_ERRORS):
        return LogAccessError(
            f"the log's Kafka at {connection.bootstrap} does not allow {connection.user} what was asked ({reason}): "
            "`drover acls` prints the ACLs that are needed"
        )
    return LogUnavailableError(
        f"the log's Kafka at {connection.bootstrap} did not answer ({reason}): check that it runs and that "
        "`[log] bootstrap` and `[log.security]` are right"
    )


async def could_not_connect(connection: LogConnection, error: Exception) -> LogUnavailableError:
    """Say why a client of the log could not start; `error` is what it raised."""
    for address in connection.bootstrap.split(","):
        host, _, port = address.rpartition(":")
        try:
            opened = await create_conn(
                host.strip("[]"), int(port), request_timeout_ms=TIMEOUT_MS, **connection.security
            )
        except _AUTHENTICATION_ERRORS:
            return LogAccessError(
                f"the log's Kafka at {address} refuses the user {connection.user} or the password: check "
                "sasl_plain_username, the password and sasl_mechanism in `[log.security]`"
            )
        except ssl.SSLCertVerificationError as refusal:
            return LogAccessError(
                f"the certificate of the log's Kafka at {address} is not to be trusted ({refusal.verify_message}): "
                "check ssl_cafile in `[log.security]`"
            )
        except ssl.SSLError as refusal:
            return LogAccessError(
                f"the log's Kafka at {address} does not speak TLS as asked ({refusal.reason}): check "
                "security_protocol in `[log.security]`"
            )
        except (OSError, KafkaError):
            continue  # not there, or silent: the next one may tell
        opened.close()
        break
    return unreachable(connection, error)
