"""The slice of the state that is the throttle ledger."""

from dataclasses import dataclass

from msgspec import Struct

from drover.state.declared import ClusterSlice, items_by_key, items_not_default, recorded
from events.throttles import NO_ENTRIES, Entries, Rates


class BrokerThrottle(Struct, frozen=True, omit_defaults=True):
    """One broker in the ledger.

    `baseline` is what was set before Drover; `intended` what Drover last decided to write, `pending` whether that
    write's outcome is still owed, `release` whether it puts the baseline back.
    """

    baseline: Rates
    intended: Rates
    pending: bool
    release: bool


class TopicThrottle(Struct, frozen=True):
    """One topic in the ledger: the entries that Drover has put there, and what it is adding and removing now.

    `left` says that Drover left the topic alone as it is; `topic_id` is the incarnation that it last wrote to or left
    alone.
    """

    present: Entries = NO_ENTRIES
    add: Entries = NO_ENTRIES
    remove: Entries = NO_ENTRIES
    pending: bool = False
    left: bool = False
    topic_id: str = ""


@dataclass(eq=False)
class ThrottlingState(ClusterSlice):
    """The throttles that Drover has set on brokers and topics, and the values that it found there."""

    broker_throttles: dict[int, BrokerThrottle] = recorded(
        "broker_throttles", factory=dict, content=items_by_key, told_as=("broker throttle", "set", "put back")
    )
    topic_throttles: dict[str, TopicThrottle] = recorded(
        "topic_throttles", factory=dict, content=items_not_default, told_as=("topic throttle", "set", "put back")
    )
