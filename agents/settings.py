"""The settings of a worker's membership in the consumer group of the command topics."""

from dataclasses import dataclass

from drover.journal.connection import LogConnection


@dataclass(frozen=True, slots=True)
class GroupSettings:
    """Group settings; the request timeout must be at least the session's and above the rebalance's, for JoinGroup.

    `instance_id` would make the member static; see docs/decisions/0003-group-membership.md for why it stays None.
    """

    connection: LogConnection
    group: str
    client_id: str
    session_timeout_s: float = 10.0
    heartbeat_interval_s: float = 2.0
    rebalance_timeout_s: float = 12.0
    request_timeout_s: float = 15.0
    max_poll_interval_s: float = 120.0
    max_poll_records: int = 1000
    fetch_wait_ms: int = 500
    instance_id: str | None = None
