"""What both clusters can be seen to show of a script's topics, in one form that can be compared."""

from collections.abc import Mapping
from dataclasses import dataclass

from drover.cluster.throttle_lists import FOLLOWER_REPLICAS, LEADER_REPLICAS, parse_entries
from drover.testing.model import ClusterModel


@dataclass(frozen=True, slots=True)
class Sight:
    """One partition: its lists in order, ISR and ELR as sets, and the move that ListPartitionReassignments shows.

    No leader epoch in ZooKeeper mode, where every request to a replica may raise it.
    """

    replicas: tuple[int, ...]
    isr: frozenset[int]
    leader: int | None
    leader_epoch: int | None
    elr: frozenset[int]
    last_known_leader: int | None
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()

    def __str__(self) -> str:
        parts = [f"R{list(self.replicas)} I{sorted(self.isr)} L{self.leader} epoch {self.leader_epoch}"]
        if self.adding or self.removing:
            parts.append(f"adding {list(self.adding)} removing {list(self.removing)}")
        if self.elr or self.last_known_leader is not None:
            parts.append(f"ELR {sorted(self.elr)} last leader {self.last_known_leader}")
        return " ".join(parts)


@dataclass(frozen=True, slots=True)
class TopicSight:
    """A topic's partitions by number, and its throttled replica lists."""

    partitions: Mapping[int, Sight]
    throttled: tuple[frozenset[str], frozenset[str]] = (frozenset(), frozenset())


Sights = Mapping[str, TopicSight | None]
"""By topic letter; None says that there is no such topic."""


def of_model(model: ClusterModel, prefix: str, letters: tuple[str, ...]) -> Sights:
    """Look at the model."""
    return {letter: _topic(model, prefix + letter) for letter in letters}


def _topic(model: ClusterModel, name: str) -> TopicSight | None:
    topic = model.topics.get(name)
    if topic is None:
        return None
    partitions = {
        number: Sight(
            replicas=state.replicas,
            isr=frozenset(state.isr),
            leader=state.leader,
            leader_epoch=None if model.traits.zookeeper_mode else state.leader_epoch,
            elr=frozenset(state.elr),
            last_known_leader=state.last_known_leader,
            adding=state.adding,
            removing=state.removing,
        )
        for number, state in sorted(topic.partitions.items())
    }
    leaders, followers = (
        frozenset(parse_entries(topic.configs.get(key, ""))) for key in (LEADER_REPLICAS, FOLLOWER_REPLICAS)
    )
    return TopicSight(partitions, (leaders, followers))


def difference(model: Sights, real: Sights) -> list[str]:
    """Say where two sights differ, one line each; empty when they agree."""
    lines: list[str] = []
    for letter in sorted(model.keys() | real.keys()):
        ours, theirs = model.get(letter), real.get(letter)
        if ours is None or theirs is None:
            if ours is not theirs:
                lines.append(f"topic {letter}: the model {_presence(ours)}, Kafka {_presence(theirs)}")
            continue
        if ours.throttled != theirs.throttled:
            lines.append(f"topic {letter}: throttled model {_lists(ours)}, Kafka {_lists(theirs)}")
        for number in sorted(ours.partitions.keys() | theirs.partitions.keys()):
            mine, its = ours.partitions.get(number), theirs.partitions.get(number)
            if mine != its:
                lines.append(f"{letter}-{number}: model {mine}; Kafka {its}")
    return lines


def _presence(topic: TopicSight | None) -> str:
    return "has none" if topic is None else "has it"


def _lists(topic: TopicSight) -> str:
    return " and ".join(",".join(sorted(entries)) or "nothing" for entries in topic.throttled)
