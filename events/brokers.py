"""Events about brokers: the deprioritised list (KIP-491) and failures (KIP-46)."""

from events.base import Event
from events.leadership import ListedBroker


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
    """A broker failed; `failed_at_ms` is the first time anybody saw it and is never moved by later reports (R46-1)."""

    broker: int
    failed_at_ms: int
    by: str
    reason: str


class BrokerReturnRecorded(Event, frozen=True, kw_only=True, omit_defaults=True, tag="broker-return-recorded"):
    """A failed broker is back: its failure is forgotten and its timer stops (R46-2)."""

    broker: int
    failed_at_ms: int
    returned_at_ms: int
    by: str
    reason: str
