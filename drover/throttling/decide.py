"""Deciding to delete throttles that another tool has left."""

from collections.abc import Iterable

from drover.capability.decision import Decision, Facts, refuse
from drover.throttling.evolve import without
from drover.throttling.state import ThrottlingState, TopicThrottle
from events.commands import RestoreThrottles, StrayEntries
from events.records import ThrottleEvent
from events.refusals import RefusalCode
from events.throttles import NO_ENTRIES, BrokerThrottleAdopted, Entries, Rates, TopicThrottleAdopted


def decide_restore_throttles(command: RestoreThrottles, state: ThrottlingState, _facts: Facts) -> Decision:
    """Take what is not Drover's own into the ledger, from which it is released: read once more, then deleted.

    What Drover has set itself it puts back itself; a rate that has changed since it was seen stays.
    """
    own = [f"broker {one.broker}" for one in command.brokers if one.broker in state.broker_throttles]
    events: list[ThrottleEvent] = [
        BrokerThrottleAdopted(
            cluster=state.name,
            broker=one.broker,
            found=Rates(one.leader, one.follower),
            by=command.by,
            reason=command.reason,
        )
        for one in command.brokers
        if one.broker not in state.broker_throttles
    ]
    for one in command.topics:
        found = _of_others(one, state.topic_throttles.get(one.topic, TopicThrottle()))
        if found == NO_ENTRIES:
            own.append(f"topic {one.topic}")
            continue
        events.append(
            TopicThrottleAdopted(cluster=state.name, topic=one.topic, found=found, by=command.by, reason=command.reason)
        )
    if not events:
        detail = f"the throttles of {_listed(own)} are Drover's own: it puts them back when no move needs them"
        return refuse(RefusalCode.DROVERS_OWN_THROTTLE, detail)
    left_out = (f"the throttles of {_listed(own)} are Drover's own and stay until no move needs them",) if own else ()
    return Decision(events=tuple(events), remarks=left_out)


def _of_others(one: StrayEntries, known: TopicThrottle) -> Entries:
    """Return the entries that are not Drover's: neither there, nor being added or removed."""
    asked = Entries(tuple(sorted(set(one.leader))), tuple(sorted(set(one.follower))))
    for own in (known.present, known.add, known.remove):
        asked = without(asked, own)
    return asked


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names)
