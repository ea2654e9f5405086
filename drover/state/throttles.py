"""The slice of the state with the throttle ledger."""

from dataclasses import dataclass
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from drover.events.throttles import NO_ENTRIES, NO_RATES, Entries, Rates
from drover.state.declared import ClusterSlice, items_by_key, items_not_default, recorded


class Interference(Struct, frozen=True, gc=False, omit_defaults=True):
    """Changes by others to the rates that Drover had set on a broker.

    `theirs` are the rates that somebody else set, None on a side that is Drover's. `times_deleted` counts how often
    somebody deleted a rate of Drover's. `at_ms` (log time) says when either was last found.
    """

    theirs: Rates
    times_deleted: int
    at_ms: int


class ConfigRefusal(Struct, frozen=True, gc=False, omit_defaults=True):
    """Kafka's refusal of the last write: its code, its message, and its start (ms since the epoch, log time)."""

    code: int
    message: str | None
    since_ms: int


class BrokerThrottle(Struct, frozen=True, gc=False, omit_defaults=True):
    """One broker in the ledger.

    `baseline` are the rates from before Drover; `intended` those that Drover last decided to write, or that others have
    set since; `pending` says that the outcome of a write is still open, `release` that the write puts the baseline
    back. `refusal` is Kafka's refusal of that write, which changed nothing and is tried again.
    """

    baseline: Rates
    intended: Rates
    pending: bool
    release: bool
    others: Interference | None = None
    refusal: ConfigRefusal | None = None

    @property
    def theirs(self) -> Rates:
        """The rates that somebody else has set over Drover's, None on a side that is Drover's."""
        return NO_RATES if self.others is None else self.others.theirs

    def wanted(self, rate: int | None) -> Rates:
        """Return the rates to set while moves need `rate`, or once no move needs one (None); others' rates stay."""
        ours, theirs = self.baseline if rate is None else Rates(rate, rate), self.theirs
        return Rates(
            leader=ours.leader if theirs.leader is None else theirs.leader,
            follower=ours.follower if theirs.follower is None else theirs.follower,
        )

    def changed_to(self, rates: Rates, rate: int | None, at_ms: int) -> "BrokerThrottle":
        """Return the entry after others have changed the rates to `rates` while moves need `rate`.

        A rate with another value than `rate` is theirs from now on. After they have deleted a rate of their own, there
        is no baseline left to put back.
        """
        leader = _Side(self.baseline.leader, self.intended.leader, self.theirs.leader).changed_to(rates.leader, rate)
        follower = _Side(self.baseline.follower, self.intended.follower, self.theirs.follower).changed_to(
            rates.follower, rate
        )
        times_deleted = 0 if self.others is None else self.others.times_deleted
        others = Interference(
            theirs=Rates(leader.theirs, follower.theirs),
            times_deleted=times_deleted + (leader.is_deleted or follower.is_deleted),
            at_ms=at_ms,
        )
        return replace(self, baseline=Rates(leader.baseline, follower.baseline), intended=rates, others=others)


class _Side(NamedTuple):
    """One of a broker's two rates: the ledger's three values of it, and whether others have deleted Drover's."""

    baseline: int | None
    intended: int | None
    theirs: int | None
    is_deleted: bool = False

    def changed_to(self, present: int | None, rate: int | None) -> "_Side":
        """Return the side after its rate was seen to be `present`."""
        if present == self.intended:
            return self
        if present is None:
            was_theirs = self.theirs is not None
            return _Side(None if was_theirs else self.baseline, None, None, is_deleted=not was_theirs)
        return _Side(self.baseline, present, None if present == rate else present)


class TopicThrottle(Struct, frozen=True, gc=False):
    """One topic in the ledger: the entries that Drover has added, and those that it is adding and removing now.

    `left` says that Drover leaves the topic alone for now, including its own entries; `topic_id` is the incarnation
    that it last wrote to or left alone. `times_deleted` counts how often others deleted Drover's entries, the last time
    at `deleted_ms` (log time). `refusal` is as in `BrokerThrottle`: the entries of `add` are not set.
    """

    present: Entries = NO_ENTRIES
    add: Entries = NO_ENTRIES
    remove: Entries = NO_ENTRIES
    pending: bool = False
    left: bool = False
    topic_id: str = ""
    times_deleted: int = 0
    deleted_ms: int = 0
    refusal: ConfigRefusal | None = None


@dataclass(eq=False)
class ThrottlingState(ClusterSlice):
    """The throttles that Drover has set on brokers and topics, and the values that were there before."""

    broker_throttles: dict[int, BrokerThrottle] = recorded(
        "broker_throttles", factory=dict, content=items_by_key, described_as=("broker throttle", "set", "put back")
    )
    topic_throttles: dict[str, TopicThrottle] = recorded(
        "topic_throttles", factory=dict, content=items_not_default, described_as=("topic throttle", "set", "put back")
    )
