"""The input of a heal plan beside the inventory: the state of brokers and partitions in the log."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from drover.events.partitions import TopicPartition
from drover.state.cluster import ClusterState
from drover.state.destinations import destinations


@dataclass(frozen=True, slots=True)
class BrokersToHeal:
    """Brokers that are `due` for replacement or `away`, and partitions that are `moving`.

    `destinations` are the brokers that Drover's moves lead to. `spared` brokers get a replica only where no other may
    take it.
    """

    due: tuple[int, ...]
    away: frozenset[int]
    spared: frozenset[int] = frozenset()
    moving: frozenset[TopicPartition] = frozenset()
    destinations: Mapping[TopicPartition, tuple[int, ...]] = field(default_factory=dict)


def gather_brokers_to_heal(
    state: ClusterState, due: tuple[int, ...], away: Collection[int], moving: Collection[TopicPartition] = ()
) -> BrokersToHeal:
    """Gather it from the state; `moving` are partitions that the cluster shows to be moving."""
    return BrokersToHeal(
        due=due,
        away=frozenset(away),
        spared=state.listed_everywhere | state.held_destinations | state.plans_emptying.keys() | _only_left(state),
        moving=frozenset((*state.reassignments, *state.queue, *state.unmanaged, *moving)),
        destinations=destinations(state),
    )


def _only_left(state: ClusterState) -> frozenset[int]:
    """Return the brokers that moves only take replicas from: a plan that does not say so may be draining them."""
    losing: set[int] = set()
    gaining: set[int] = set()
    for entry in state.reassignments.values():
        if not entry.is_cancelled:
            losing.update(set(entry.original) - set(entry.target))
            gaining.update(set(entry.target) - set(entry.original))
    return frozenset(losing - gaining)
