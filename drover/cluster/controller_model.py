"""What KRaft's controller of Kafka 4.3.1 computes for one partition: alter, cancel, completion and leader selection.

Pure arithmetic on frozen values, restated from Kafka's own unit tests and from a live 4.3.1 cluster, odd states
included. It knows no topics, no brokers' lives and no time: `drover.cluster.model` owns those.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from enum import Enum


class Election(Enum):
    """How a leader is looked for when a partition changes."""

    NORMAL = "normal"
    PREFERRED = "preferred"
    UNCLEAN = "unclean"


@dataclass(frozen=True, slots=True)
class Partition:
    """One partition as the controller holds it; `leader` is None when nobody leads.

    `replicas` is the merged list while moving; `adding` and `removing` are ascending. `elr` holds the eligible leader
    replicas: those that left an ISR smaller than min ISR and still have every committed record. `recovering` says that
    the last election was unclean.
    """

    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    leader: int | None
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()
    leader_epoch: int = 0
    elr: tuple[int, ...] = ()
    recovering: bool = False

    @property
    def moving(self) -> bool:
        """Whether ListPartitionReassignments shows the partition."""
        return bool(self.adding or self.removing)

    @property
    def original(self) -> tuple[int, ...]:
        """The list that the move began with as Kafka knows it: its members, in merged order."""
        return without(self.replicas, self.adding)


@dataclass(frozen=True, slots=True)
class Reversal:
    """What a cancel leads to; `unclean` when no in-sync member of the original list is left."""

    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    unclean: bool


def without(brokers: Iterable[int], gone: Iterable[int]) -> tuple[int, ...]:
    """Return the brokers that are not gone, in their order."""
    unwanted = frozenset(gone)
    return tuple(broker for broker in brokers if broker not in unwanted)


def delta(
    current: tuple[int, ...], target: tuple[int, ...]
) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """Return (merged replicas, adding, removing) of a move from the merged list `current` to `target`."""
    removing = tuple(sorted(without(current, target)))
    adding = tuple(sorted(without(target, current)))
    return target + removing, adding, removing


def completes(partition: Partition) -> bool:
    """Tell whether the move is over, by the rule of 4.3.1.

    Every added replica must be in the ISR that remains. Only if the target is smaller than the original list must the
    whole target be in it. A broker in both `adding` and `removing` can therefore never complete.
    """
    target = without(partition.replicas, partition.removing)
    remaining_isr = frozenset(without(partition.isr, partition.removing))
    if not partition.moving or not target or not remaining_isr:
        return False
    if not remaining_isr.issuperset(partition.adding):
        return False
    shrinks = len(target) < len(partition.original)
    return not shrinks or remaining_isr.issuperset(target)


def reversal(partition: Partition) -> Reversal:
    """Compute a cancel: the added replicas go, in merged order; the first one left becomes the ISR if it is empty."""
    replicas = partition.original
    isr = without(partition.isr, partition.adding)
    if isr:
        return Reversal(replicas, isr, unclean=False)
    return Reversal(replicas, replicas[:1], unclean=True)


def elect(
    current_leader: int | None,
    replicas: tuple[int, ...],
    isr: tuple[int, ...],
    election: Election,
    electable: Callable[[int], bool],
) -> tuple[int | None, bool]:
    """Choose a leader from the safe brokers `isr` and tell whether the choice is unclean (it may lack records)."""

    def valid(broker: int | None) -> bool:
        return broker is not None and broker in isr and electable(broker)

    if election is Election.PREFERRED and valid(replicas[0]):
        return replicas[0], False
    if valid(current_leader):
        return current_leader, False
    clean = next((broker for broker in replicas if valid(broker)), None)
    if clean is not None or election is not Election.UNCLEAN:
        return clean, False
    unclean = next((broker for broker in replicas if electable(broker)), None)
    return unclean, unclean is not None


def settle(
    before: Partition,
    wanted: Partition,
    electable: Callable[[int], bool],
    election: Election = Election.NORMAL,
    *,
    min_isr: int = 1,
) -> Partition:
    """Turn a wished change into the next state, as the controller's change builder does; equal to `before` = no record.

    Completes the move if it is over, elects, and bumps the leader epoch when the leader changes or when a replica
    that was there before is gone.
    """
    after = wanted
    if completes(after):
        after = replace(
            after,
            replicas=without(after.replicas, after.removing),
            isr=without(after.isr, after.removing),
            adding=(),
            removing=(),
        )
    elr = eligible_leaders(before, after, min_isr)
    leader, unclean = elect(before.leader, after.replicas, after.isr or elr, election, electable)
    if leader is not None and leader not in after.isr:
        after = replace(after, isr=(leader,))
    lost_replica = not frozenset(after.replicas).issuperset(before.replicas)
    bumped = leader != before.leader or lost_replica
    return replace(
        after,
        leader=leader,
        elr=() if unclean else eligible_leaders(before, after, min_isr),
        recovering=before.recovering or unclean,
        leader_epoch=before.leader_epoch + (1 if bumped else 0),
    )


def eligible_leaders(before: Partition, after: Partition, min_isr: int) -> tuple[int, ...]:
    """Compute the eligible leader replicas (KIP-966) that go with the ISR of `after`."""
    if len(after.isr) >= min(min_isr, len(after.replicas)):
        return ()
    candidates = dict.fromkeys(before.elr + before.isr)
    return tuple(broker for broker in candidates if broker in after.replicas and broker not in after.isr)


def altered(
    partition: Partition, target: tuple[int, ...], electable: Callable[[int], bool], *, min_isr: int = 1
) -> Partition:
    """Apply an alter with a validated list.

    Adding and removing are overwritten only by something non-empty, so a re-target to a superset changes nothing and
    a re-target to the original set leaves brokers in both lists (both seen live).
    """
    replicas, adding, removing = delta(partition.replicas, target)
    wanted = replace(
        partition,
        replicas=replicas,
        adding=adding or partition.adding,
        removing=removing or partition.removing,
    )
    return settle(partition, wanted, electable, min_isr=min_isr)


def cancelled(
    partition: Partition, electable: Callable[[int], bool], *, unclean_allowed: bool = False, min_isr: int = 1
) -> Partition | None:
    """Apply a cancel to a moving partition; None when it would need an unclean election that is not allowed."""
    back = reversal(partition)
    if back.unclean and not unclean_allowed:
        return None
    wanted = replace(partition, replicas=back.replicas, isr=back.isr, adding=(), removing=())
    election = Election.UNCLEAN if unclean_allowed else Election.NORMAL
    return settle(partition, wanted, electable, election, min_isr=min_isr)
