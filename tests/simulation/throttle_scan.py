"""What moves in flight need, by a look at all of them: what the index is held to."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from drover.events.throttles import Entries
from drover.state.cluster import ClusterState
from drover.state.phase import Phase
from drover.state.reassignment import Reassignment

_THROTTLED_PHASES = frozenset(
    {Phase.PREPARED, Phase.INTENDED, Phase.COPYING, Phase.ROLLING_BACK, Phase.CANCEL_INTENDED, Phase.CANCELLING}
)


@dataclass(frozen=True, slots=True)
class Wanted:
    """One rate per broker, and entries per topic, for the incarnation in `topic_ids`."""

    rates: Mapping[int, int] = field(default_factory=dict)
    entries: Mapping[str, Entries] = field(default_factory=dict)
    topic_ids: Mapping[str, str] = field(default_factory=dict)


def wanted(state: ClusterState) -> Wanted:
    """Say what the moves in flight need; where plans disagree a broker gets the lowest rate asked (X14)."""
    rates: dict[int, int] = {}
    leader: dict[str, set[str]] = {}
    follower: dict[str, set[str]] = {}
    newest: dict[str, Reassignment] = {}
    for key in state.moves.in_flight:
        reassignment = state.reassignments[key]
        rate = state.rate_of(reassignment.plan)
        step = reassignment.step
        if rate is None or step is None or not step.adding or reassignment.phase not in _THROTTLED_PHASES:
            continue
        for broker in (*step.expected, *step.adding):
            rates[broker] = min(rate, rates.get(broker, rate))
        leader.setdefault(key.topic, set()).update(f"{key.partition}:{broker}" for broker in step.expected)
        follower.setdefault(key.topic, set()).update(f"{key.partition}:{broker}" for broker in step.adding)
        if newest.setdefault(key.topic, reassignment).number < reassignment.number:
            newest[key.topic] = reassignment
    entries = {topic: Entries(tuple(sorted(leader[topic])), tuple(sorted(follower[topic]))) for topic in sorted(leader)}
    return Wanted(dict(sorted(rates.items())), entries, {topic: newest[topic].topic_id for topic in entries})
