"""Error messages for a failing Kafka of the log: the reason and the remedy in one sentence.

aiokafka only logs the reason why it cannot connect, and raises an exception without it. To find the reason for the
message, such as a wrong password, this module connects once more by hand.
"""

import ssl

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
from drover.journal.login import NoTicketError, NoTokenError, TokenDeniedError, aiokafka_options, connect
from drover.reasons import reason_of

TIMEOUT_MS = 2_000
AUTHORIZATION_ERRORS = (
    ClusterAuthorizationFailedError,
    GroupAuthorizationFailedError,
    TopicAuthorizationFailedError,
)
_AUTHENTICATION_ERRORS = (AuthenticationFailedError, SaslAuthenticationFailed, UnsupportedSaslMechanismError)


def unreachable(connection: LogConnection, error: Exception) -> LogUnavailableError:
    """Return the error for a failed request to the log's Kafka, with the settings to check."""
    reason = reason_of(error)
    if isinstance(error, AUTHORIZATION_ERRORS):
        return LogAccessError(
            f"the log's Kafka at {connection.bootstrap} does not authorize {connection.user} ({reason}): "
            "`drover acls` prints the ACLs that Drover needs"
        )
    return LogUnavailableError(
        f"the log's Kafka at {connection.bootstrap} did not answer ({reason}): check that it runs and that "
        "`[log] bootstrap` and `[log.security]` are right"
    )


async def could_not_connect(connection: LogConnection, error: Exception) -> LogUnavailableError:
    """Return the error for a client of the log that could not start; `error` is the client's exception."""
    for address in connection.bootstrap.split(","):
        host, _, port = address.rpartition(":")
        try:
            opened = await connect(
                host.strip("[]"), int(port), request_timeout_ms=TIMEOUT_MS, **aiokafka_options(connection.security)
            )
        except TokenDeniedError as denial:
            return LogAccessError(f"there is no token for the log's Kafka: {denial.args[0]}; check `[log.security]`")
        except NoTokenError as missing:
            return LogUnavailableError(f"there is no token for the log's Kafka: {missing.args[0]}")
        except NoTicketError as missing:
            return LogAccessError(f"there is no Kerberos ticket for the log's Kafka at {address}: {missing.args[0]}")
        except _AUTHENTICATION_ERRORS:
            return LogAccessError(f"the log's Kafka at {address} refuses {_login(connection)} in `[log.security]`")
        except ssl.SSLCertVerificationError as refusal:
            return LogAccessError(
                f"the certificate of the log's Kafka at {address} is not trusted ({refusal.verify_message}): "
                "check ssl_cafile in `[log.security]`"
            )
        except ssl.SSLError as refusal:
            return LogAccessError(
                f"the log's Kafka at {address} does not speak TLS ({refusal.reason}): check security_protocol in "
                "`[log.security]`"
            )
        except (OSError, KafkaError):
            continue  # unreachable or silent: try the next address
        opened.close()
        break
    return unreachable(connection, error)


def _login(connection: LogConnection) -> str:
    """Return what a Kafka that refuses us was shown, and the settings to check."""
    match connection.security.get("sasl_mechanism"):
        case "OAUTHBEARER":
            return "the token: check its issuer, audience and scope, and sasl_mechanism"
        case "GSSAPI":
            return "our Kerberos ticket: check sasl_kerberos_service_name and sasl_mechanism"
        case _:
            settings = "sasl_plain_username, the password and sasl_mechanism"
            return f"the user {connection.user} or the password: check {settings}"
