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
    """Take throttles that are not Drover's own into the ledger, from which they are read once more and then deleted.

    Drover puts back its own throttles when their moves end. A rate that has changed since it was seen stays. A broker
    that is not alive is left out, since it may never come back.
    """
    if command.brokers and not facts.live_brokers:
        detail = f"{state.name} has not been looked at yet: send the command again under a new id"
        return refuse(RefusalCode.CLUSTER_UNAVAILABLE, detail)
    own = [f"broker {rates.broker}" for rates in command.brokers if rates.broker in state.broker_throttles]
    unlisted = [rates.broker for rates in command.brokers if rates.broker not in facts.live_brokers]
    away = [f"broker {broker}" for broker in unlisted if broker not in facts.unreachable]
    unreachable = [f"broker {broker}" for broker in unlisted if broker in facts.unreachable]
    events: list[ThrottleEvent] = [
        BrokerThrottleAdopted(
            cluster=state.name,
            broker=rates.broker,
            found=Rates(rates.leader, rates.follower),
            by=command.by,
            reason=command.reason,
        )
        for rates in command.brokers
        if rates.broker not in state.broker_throttles and rates.broker in facts.live_brokers
    ]
    for leftover in command.topics:
        topic = leftover.topic
        entries = _of_others(leftover, state.topic_throttles.get(topic, TopicThrottle()))
        if entries == NO_ENTRIES:
            own.append(f"topic {topic}")
            continue
        events.append(
            TopicThrottleAdopted(cluster=state.name, topic=topic, found=entries, by=command.by, reason=command.reason)
        )
    remarks = (
        *_said(own, "Drover's own, which it puts back when no move needs them"),
        *_said(away, "not alive; ask again when it is back"),
        *_said(unreachable, f"unreachable; {LISTENER_REMEDY}, and ask again"),
    )
    if not events:
        return refuse(RefusalCode.DROVERS_OWN_THROTTLE if own else RefusalCode.UNKNOWN_BROKER, "; ".join(remarks))
    return Decision(events=tuple(events), remarks=remarks)


def _of_others(leftover: LeftoverEntries, throttle: TopicThrottle) -> Entries:
    """Return the entries that are not Drover's: neither there, nor being added or removed."""
    asked = Entries(tuple(sorted(set(leftover.leader))), tuple(sorted(set(leftover.follower))))
    for own in (throttle.present, throttle.add, throttle.remove):
        asked = without(asked, own)
    return asked


def _said(names: Sequence[str], explanation: str) -> tuple[str, ...]:
    return (f"{', '.join(names)}: {explanation}",) if names else ()
