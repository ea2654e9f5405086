"""Events about brokers: the deprioritised list (KIP-491) and failures (KIP-46)."""

from drover.events.base import Event
from drover.events.leadership import ListedBroker


class BlacklistSet(Event, frozen=True, kw_only=True, omit_defaults=True, tag="blacklist-set"):
    """The complete list of brokers that should not lead, in the order given (R491-1), and the list it replaces.

    `entries` say more about some of them; a broker without an entry is listed for all topics until a command ends that.
    What follows from the list is decided later, by what the cluster shows.
    """

    brokers: tuple[int, ...]
    previous_brokers: tuple[int, ...]
    by: str
    reason: str
    entries: tuple[ListedBroker, ...] = ()


class BrokerFailureRecorded(Event, frozen=True, kw_only=True, omit_defaults=True, tag="broker-failure-recorded"):
    """A broker was reported as failed at `failed_at_ms`, which later reports never move (R46-1).

    It counts only while the broker is not seen alive.
    """

    broker: int
    failed_at_ms: int
    by: str
    reason: str


class BrokerReturnRecorded(Event, frozen=True, kw_only=True, omit_defaults=True, tag="broker-return-recorded"):
    """A broker that was reported as failed is back: the report is forgotten and its timer stops (R46-2).

    `by` is `drover` where the broker was seen alive for long enough, and nobody reported its return.
    """

    broker: int
    failed_at_ms: int
    returned_at_ms: int
    by: str
    reason: str
