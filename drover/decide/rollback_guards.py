"""KIP-236's guards: when a partition may be rolled back, and to which list if some original replicas are gone."""

from collections.abc import Collection
from dataclasses import dataclass

from drover.brokers import Brokers
from drover.events.reassignments import Blocker, SkipReason
from drover.facts import PartitionFacts
from drover.state.reassignment import Block, Reassignment
from drover.unreachable import unreachable_in_words

# A rollback no longer waits for an original replica whose broker is dead for this long; restarts take less time.
GONE_MS = 600_000


@dataclass(frozen=True, slots=True)
class GuardFacts:
    """The inputs of the guards besides the partition itself; brokers as in `drover.brokers`.

    `unregistered` are those of the reassignment's lists that Kafka has no registration for.
    """

    live: Collection[int]
    min_isr: int
    at_ms: int
    failed: Collection[int] = ()
    unreachable: Collection[int] = ()
    registered: frozenset[int] | None = None
    unregistered: Collection[int] = ()

    @property
    def brokers(self) -> Brokers:
        """The brokers by what is known of them: alive, unreachable, registered."""
        return Brokers(frozenset(self.live), frozenset(self.unreachable), self.registered)


def skip_reason(reassignment: Reassignment, facts: PartitionFacts, guard: GuardFacts) -> SkipReason | None:
    """Decide whether a running move may be cancelled; None if it may, else why it goes on (R236-8).

    The fallback list is the original one; for a stop, or where confirmed steps have dropped some originals, it is the
    list that those steps have made. If some of it is in the ISR, the move may be cancelled if that is at
    least min.insync.replicas, or the whole list. If none of it is, a live new replica holds the only data, so the move
    goes on; if every new replica is dead, a rollback loses nothing that is served now. An unreachable replica counts as
    alive, since it serves others.
    """
    original = set(reassignment.fallback)
    in_sync = original & set(facts.isr)
    if in_sync:
        needed = min(guard.min_isr, len(original))
        return None if len(in_sync) >= needed else SkipReason.BELOW_MIN_ISR
    new = set(facts.replicas) - original
    return SkipReason.NO_ORIGINAL_IN_SYNC if new.difference(guard.brokers.dead(new)) else None


def has_original_in_sync(reassignment: Reassignment, facts: PartitionFacts) -> bool:
    """Whether the cancel leaves a replica in sync that can lead.

    Without one Kafka refuses the cancel every time; where the topic allows unclean elections, it elects a replica that
    lacks records instead (live fact).
    """
    return not set(reassignment.fallback).isdisjoint(facts.isr)


def guard_block(reassignment: Reassignment, facts: PartitionFacts, guard: GuardFacts) -> Block:
    """Say why a move that must be cancelled has to wait; see `skip_reason`."""
    missing = ", ".join(str(broker) for broker in reassignment.fallback if broker not in facts.isr)
    detail = f"it can be cancelled when replicas {missing} are in the ISR: bring them back"
    return Block(Blocker.ORIGINALS_OUT_OF_SYNC, detail, guard.at_ms)


def restore_block(reassignment: Reassignment, facts: PartitionFacts, guard: GuardFacts) -> Block | None:
    """Decide whether the destination may be sent now; None if it may.

    With the same set of brokers only the order changes: Kafka does that at once, whatever the ISR is. With replicas to
    drop, every original must be in sync, or else Kafka 4.3.1 would list the shrink and wait.
    """
    if set(facts.replicas) == set(reassignment.destination):
        return None
    out_of_sync = tuple(broker for broker in reassignment.destination if broker not in facts.isr)
    if not out_of_sync:
        return None
    names = ", ".join(map(str, out_of_sync))
    detail = f"original replicas {names} must be in the ISR before the added ones are dropped: bring them back"
    unreachable = [broker for broker in out_of_sync if broker in guard.unreachable]
    if unreachable:
        detail += f"; {unreachable_in_words(unreachable)}"
    dead = guard.brokers.dead(out_of_sync)
    if dead:
        detail += (
            f"; broker {', '.join(map(str, dead))} is not alive: after {GONE_MS // 60_000} minutes, or as soon as "
            "`drover broker failed` reports it, the rollback ends without it"
        )
    return Block(Blocker.ORIGINALS_OUT_OF_SYNC, detail, guard.at_ms)


def is_given_up(reassignment: Reassignment, facts: PartitionFacts, block: Block, guard: GuardFacts) -> bool:
    """Whether the originals that `block`, the present restore block, waits for are gone for good.

    A broker is gone for good if it was reported as failed, if it is not registered, or if it has been dead while this
    same block lasted for `GONE_MS`. An unreachable broker is alive, and never gone.
    """
    present_block = reassignment.block
    has_lasted = (
        present_block is not None
        and present_block.detail == block.detail
        and guard.at_ms - present_block.since_ms >= GONE_MS
    )
    missing = [broker for broker in reassignment.destination if broker not in facts.isr]
    dead = guard.brokers.dead(missing)
    return all(
        broker in guard.failed or broker in guard.unregistered or (has_lasted and broker in dead) for broker in missing
    )


def closest(reassignment: Reassignment, facts: PartitionFacts, guard: GuardFacts) -> tuple[int, ...]:
    """Return the list that comes closest to the original one without the originals that are gone.

    It holds the originals in sync, in their order, and of the added replicas in sync only as many as are needed for as
    many replicas as there were, and for min.insync.replicas. All of it is in the ISR, so that Kafka drops the rest at
    once. Where too few are in sync, nothing can be dropped: it is then the present list with the originals first.
    """
    original = reassignment.destination
    kept = tuple(broker for broker in original if broker in facts.isr)
    added = tuple(broker for broker in facts.replicas if broker not in original)
    needed = max(len(original), min(guard.min_isr, len(facts.isr)))
    reduced = kept + tuple(broker for broker in added if broker in facts.isr)[: needed - len(kept)]
    if len(reduced) >= needed:
        return reduced
    return tuple(broker for broker in original if broker in facts.replicas) + added
