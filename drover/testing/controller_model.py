"""The controller's computations for one partition: alter, cancel, completion and leader election.

Pure arithmetic on frozen values, restated from Kafka's own unit tests and from live clusters, odd states included.
Where versions differ it goes by traits (`drover.traits`). Topics, the lives of brokers and time are in
`drover.testing.model`.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from enum import Enum

from drover.events.traits import Completion, Retarget, Traits
from drover.traits import LATEST

NO_LEADER = -1


class Election(Enum):
    """The kind of a leader election."""

    NORMAL = "normal"
    PREFERRED = "preferred"
    UNCLEAN = "unclean"


@dataclass(frozen=True, slots=True)
class Partition:
    """One partition as the controller holds it; `leader` is None without a leader.

    `replicas` is the merged list while moving; with KRaft `adding` and `removing` are ascending. `elr` holds the
    eligible leader replicas (KIP-966), ascending: those that left an ISR smaller than min ISR and still have every
    committed record.
    `last_known_leader` is the leader before there was none, -1 if that is unknown. `recovering` says that the last
    election was unclean.
    """

    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    leader: int | None
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()
    leader_epoch: int = 0
    elr: tuple[int, ...] = ()
    recovering: bool = False
    last_known_leader: int | None = None

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
    """The result of a cancel; `unclean` when no in-sync member of the original list is left."""

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


def redirected(
    partition: Partition, target: tuple[int, ...]
) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """Return (merged replicas, adding, removing) as in ZooKeeper mode: as if no other move had ever begun.

    `adding` and `removing` keep the order of the lists that they come from.
    """
    original = partition.original
    removing = without(original, target)
    return target + removing, without(target, original), removing


def completes(partition: Partition, completion: Completion = LATEST.completion) -> bool:
    """Whether the move is over; see `Completion`.

    Where the added replicas decide, a broker in both `adding` and `removing` can never complete, since it leaves the
    ISR that remains.
    """
    target = without(partition.replicas, partition.removing)
    remaining_isr = frozenset(without(partition.isr, partition.removing))
    if not partition.moving or not target or not remaining_isr:
        return False
    if completion is Completion.TARGET:
        return remaining_isr.issuperset(target)
    if not remaining_isr.issuperset(partition.adding):
        return False
    shrinks = completion is Completion.ADDED_UNLESS_SHRINKING and len(target) < len(partition.original)
    return not shrinks or remaining_isr.issuperset(target)


def reversal(partition: Partition) -> Reversal:
    """Compute a cancel: the added replicas go, in merged order; the first one left becomes the ISR if it is empty."""
    replicas = partition.original
    isr = without(partition.isr, partition.adding)
    if isr:
        return Reversal(replicas, isr, unclean=False)
    return Reversal(replicas, replicas[:1], unclean=True)


@dataclass(frozen=True, slots=True)
class Rules:
    """The inputs of the controller besides the partition itself.

    `min_isr` is the effective one: the topic's, but at most the number of replicas of its partition 0. `crashed` is a
    broker that has just come back without a clean shutdown: it may have lost records, and is not eligible any more.
    `traits` are those of the controller's version.
    """

    min_isr: int = 1
    crashed: int | None = None
    traits: Traits = LATEST

    @property
    def with_elr(self) -> bool:
        """Whether the feature `eligible.leader.replicas.version` is on."""
        return self.traits.with_elr


USUAL = Rules()


def settle(
    before: Partition,
    wanted: Partition,
    electable: Callable[[int], bool],
    election: Election = Election.NORMAL,
    rules: Rules = USUAL,
) -> Partition:
    """Turn a wanted change into the next state, as the controller's change builder does; equal to `before` = no record.

    Completes the move if it is over, elects, and bumps the leader epoch when the leader changes or when the
    list loses a replica. Without ELR the last member of an ISR stays in it, dead or not.
    """
    after = _completed(wanted, rules.traits.completion)
    elr = _eligible_leaders(before, after.isr, rules)
    leader, unclean = _elect(before, replace(after, elr=elr), electable, election, with_elr=rules.with_elr)
    isr = after.isr
    if leader != before.leader and leader is not None and (unclean or leader in elr):
        isr, elr = (leader,), () if unclean else without(elr, [leader])
    if not isr and not rules.with_elr:
        isr = before.isr
    lost_replica = not frozenset(after.replicas).issuperset(before.replicas)
    bumped = leader != before.leader or lost_replica
    return replace(
        after,
        isr=isr,
        leader=leader,
        elr=elr,
        last_known_leader=_last_known_leader(before, leader, rules, bumped=bumped),
        recovering=before.recovering or unclean,
        leader_epoch=before.leader_epoch + (1 if bumped else 0),
    )


def _completed(wanted: Partition, completion: Completion) -> Partition:
    if not completes(wanted, completion):
        return wanted
    return replace(
        wanted,
        replicas=without(wanted.replicas, wanted.removing),
        isr=without(wanted.isr, wanted.removing),
        adding=(),
        removing=(),
    )


def _eligible_leaders(before: Partition, isr: tuple[int, ...], rules: Rules) -> tuple[int, ...]:
    """Compute the eligible leader replicas beside an ISR; as in Kafka, replicas that a move removed stay in them."""
    if not rules.with_elr or len(isr) >= rules.min_isr:
        return ()
    candidates = frozenset(before.elr + before.isr).difference(isr, () if rules.crashed is None else [rules.crashed])
    return tuple(sorted(candidates))


def _elect(
    before: Partition, after: Partition, electable: Callable[[int], bool], election: Election, *, with_elr: bool
) -> tuple[int | None, bool]:
    """Return a leader for `after`, and whether the election is unclean (the leader may lack records)."""
    safe = after.isr or after.elr

    def valid(broker: int | None) -> bool:
        return broker is not None and broker in safe and electable(broker)

    if election is Election.PREFERRED and valid(after.replicas[0]):
        return after.replicas[0], False
    if valid(before.leader):
        return before.leader, False
    clean = next((broker for broker in after.replicas if valid(broker)), None)
    if clean is not None:
        return clean, False
    last = before.last_known_leader
    if with_elr and not safe and last is not None and electable(last):
        return last, True
    if election is not Election.UNCLEAN:
        return None, False
    unclean = next((broker for broker in after.replicas if electable(broker)), None)
    return unclean, unclean is not None


def _last_known_leader(before: Partition, leader: int | None, rules: Rules, *, bumped: bool) -> int | None:
    if not (rules.with_elr and bumped):
        return before.last_known_leader
    if leader is not None:
        return None
    if before.last_known_leader is not None:
        return before.last_known_leader
    return NO_LEADER if before.leader is None else before.leader


def altered(
    partition: Partition, target: tuple[int, ...], electable: Callable[[int], bool], rules: Rules = USUAL
) -> Partition:
    """Apply an alter with a validated list; see also `stumbles`.

    With KRaft, empty lists never overwrite `adding` and `removing`, so a re-target to a superset changes nothing and
    one to the original set leaves brokers in both lists (both seen live).
    """
    if rules.traits.retarget is Retarget.ORIGINAL:
        replicas, adding, removing = redirected(partition, target)
        isr = tuple(broker for broker in partition.isr if broker in replicas)
        wanted = replace(partition, replicas=replicas, adding=adding, removing=removing, isr=isr)
        return settle(partition, wanted, electable, rules=rules)
    replicas, adding, removing = delta(partition.replicas, target)
    wanted = replace(
        partition,
        replicas=replicas,
        adding=adding or partition.adding,
        removing=removing or partition.removing,
    )
    return settle(partition, wanted, electable, rules=rules)


def stumbles(before: Partition, after: Partition) -> bool:
    """Whether 4.3.1 fails at this change; to an alter it answers UNKNOWN_SERVER_ERROR (seen live).

    A move leaves replicas that it has removed in the ELR. If the ISR is empty later and an alter names such a broker
    again, the controller tries to elect a broker that holds no replica.
    """
    return after.leader is not None and after.leader not in before.replicas


def is_poisoned(partition: Partition) -> bool:
    """Whether there is no leader, and the last known one holds no replica any more (seen live, with ELR).

    Once that broker is alive and no other is eligible, 4.3.1 fails at every event that elects a leader here: the
    controller steps down, and no dead broker gets back into the cluster.
    """
    last = partition.last_known_leader
    return partition.leader is None and last not in {None, NO_LEADER, *partition.replicas}


def cancelled(
    partition: Partition, electable: Callable[[int], bool], rules: Rules = USUAL, *, unclean_allowed: bool = False
) -> Partition | None:
    """Apply a cancel to a moving partition; None when it would need an unclean election that is not allowed."""
    back = reversal(partition)
    if back.unclean and not unclean_allowed:
        return None
    wanted = replace(partition, replicas=back.replicas, isr=back.isr, adding=(), removing=())
    election = Election.UNCLEAN if unclean_allowed else Election.NORMAL
    return settle(partition, wanted, electable, election, rules)
