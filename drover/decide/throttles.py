"""Decide to delete throttles that another tool has left behind."""

from collections.abc import Sequence

from drover.decide.decision import Decision, Facts, refuse
from drover.events.commands import RestoreThrottles
from drover.events.leftover_throttles import LeftoverEntries
from drover.events.records import ThrottleEvent
from drover.events.refusals import RefusalCode
from drover.events.throttles import NO_ENTRIES, BrokerThrottleAdopted, Entries, Rates, TopicThrottleAdopted
from drover.fold.throttles import without
from drover.state.throttles import ThrottlingState, TopicThrottle
from drover.unreachable import LISTENER_REMEDY


def decide_restore_throttles(command: RestoreThrottles, state: ThrottlingState, facts: Facts) -> Decision:
    """Take what is not Drover's own into the ledger, from which it is released: read once more, then deleted.

    What Drover has set itself it puts back itself; a rate that has changed since it was seen stays. A broker that is
    not alive is left out, since it may never come back: nothing waits for it.
    """
    if command.brokers and not facts.live_brokers:
        detail = f"{state.name} has not been looked at yet: send the command again under a new id"
        return refuse(RefusalCode.CLUSTER_UNAVAILABLE, detail)
    own = [f"broker {one.broker}" for one in command.brokers if one.broker in state.broker_throttles]
    unlisted = [one.broker for one in command.brokers if one.broker not in facts.live_brokers]
    away = [f"broker {broker}" for broker in unlisted if broker not in facts.unreachable]
    unreachable = [f"broker {broker}" for broker in unlisted if broker in facts.unreachable]
    events: list[ThrottleEvent] = [
        BrokerThrottleAdopted(
            cluster=state.name,
            broker=one.broker,
            found=Rates(one.leader, one.follower),
            by=command.by,
            reason=command.reason,
        )
        for one in command.brokers
        if one.broker not in state.broker_throttles and one.broker in facts.live_brokers
    ]
    for one in command.topics:
        found = _of_others(one, state.topic_throttles.get(one.topic, TopicThrottle()))
        if found == NO_ENTRIES:
            own.append(f"topic {one.topic}")
            continue
        events.append(
            TopicThrottleAdopted(cluster=state.name, topic=one.topic, found=found, by=command.by, reason=command.reason)
        )
    remarks = (
        *_said(own, "Drover's own, which it puts back when no move needs them"),
        *_said(away, "not alive; ask again when it is back"),
        *_said(unreachable, f"unreachable; {LISTENER_REMEDY}, and ask again"),
    )
    if not events:
        return refuse(RefusalCode.DROVERS_OWN_THROTTLE if own else RefusalCode.UNKNOWN_BROKER, "; ".join(remarks))
    return Decision(events=tuple(events), remarks=remarks)


def _of_others(one: LeftoverEntries, known: TopicThrottle) -> Entries:
    """Return the entries that are not Drover's: neither there, nor being added or removed."""
    asked = Entries(tuple(sorted(set(one.leader))), tuple(sorted(set(one.follower))))
    for own in (known.present, known.add, known.remove):
        asked = without(asked, own)
    return asked


def _said(names: Sequence[str], what: str) -> tuple[str, ...]:
    return (f"{', '.join(names)}: {what}",) if names else ()
