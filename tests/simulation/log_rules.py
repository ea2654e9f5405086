"""What must hold of the log at every moment, and of everybody who reads it; see `tests.simulation.invariants`."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from drover.decide.order_endings import PLAN_PREFIX
from drover.events.codec import Malformed, command_digest
from drover.events.healing import HealChunkBegun
from drover.events.partitions import TopicPartition
from drover.events.queue_entries import QueueEntryAdded, QueueEntryRemoved
from drover.events.reassignments import ReassignmentCreated, ReassignmentRolledBack
from drover.events.records import Acquire, Batch, Genesis, Outcome
from drover.events.topics import COMMAND_KINDS, TopicNames, shard_of
from drover.fold.log import Folded, RecordVerdict, ShardState

if TYPE_CHECKING:
    from tests.simulation.checker import Checker, Judge

_INDEX_OF = {name: index for index, name in enumerate(TopicNames().commands)}


def s13_records_are_in_order(judge: "Judge", folded: Folded) -> None:
    """S13: epochs grow by one, sequence numbers too; what an older owner writes has no effect."""
    match folded.record:
        case Genesis():
            expected = RecordVerdict.GENESIS
        case Acquire(epoch=epoch, token=token):
            expected = RecordVerdict.ACQUIRED if epoch == judge.epoch + 1 else RecordVerdict.STALE_ACQUIRE
            if expected is RecordVerdict.ACQUIRED:
                judge.epoch, judge.token = epoch, token
        case Batch(token=token, epoch=epoch, sequence=sequence):
            expected = RecordVerdict.VALID if token == judge.token else RecordVerdict.FENCED
            if expected is RecordVerdict.VALID:
                assert epoch == judge.epoch, f"S13: epoch {epoch} under {judge.epoch}"
                assert sequence == judge.sequence + 1, f"S13: {sequence} after {judge.sequence}"
                judge.sequence = sequence
        case None:
            expected = RecordVerdict.VOID
    assert folded.verdict is expected, f"S13: the fold says {folded.verdict} where {expected} is right"


def s14_each_command_is_decided_once(checker: "Checker", shard: int, record: Batch) -> None:
    """S14: one command has one effect however often it comes; what is queued was accepted in the same record."""
    accepted: set[tuple[str, TopicPartition]] = set()
    for outcome in record.outcomes:
        accepted.update((outcome.cluster, TopicPartition(entry.topic, entry.partition)) for entry in outcome.accepted)
        command = checker.world.commands.read(_INDEX_OF[outcome.topic], shard)[outcome.offset].command
        if not isinstance(command, Malformed) and outcome.type == command.__struct_config__.tag:
            _judge_identity(checker, outcome, command_digest(command))
    _learn_what_is_kept(checker, record)
    started = {(event.cluster, event.key) for event in record.events if isinstance(event, QueueEntryRemoved)}
    chunks = {(event.cluster, event.plan) for event in record.events if isinstance(event, HealChunkBegun)}
    for event in record.events:
        if isinstance(event, ReassignmentCreated):
            place = (event.cluster, event.key)
            life = checker.lives.get(place)
            replaces = life is not None and life.replacement == event.target
            heals = (event.cluster, event.plan) in chunks
            reorders = event.plan.startswith(PLAN_PREFIX)
            asked = place in accepted or place in started or replaces or heals or reorders
            assert asked, f"S14: {event} was queued without a command"


def _learn_what_is_kept(checker: "Checker", record: Batch) -> None:
    """Learn of alters whose list is there already: of no other, or of a reorder away from it that has had no effect."""
    given_up = {(event.cluster, event.key) for event in record.events if isinstance(event, ReassignmentRolledBack)}
    for event in record.events:
        if isinstance(event, ReassignmentCreated | QueueEntryAdded):
            given_up.discard((event.cluster, event.key))
    for outcome in record.outcomes:
        if outcome.type == "alter":
            places = {(outcome.cluster, TopicPartition(entry.topic, entry.partition)) for entry in outcome.accepted}
            kept = {(outcome.cluster, TopicPartition(entry.topic, entry.partition)) for entry in outcome.unchanged}
            for place in kept | (places & given_up):
                checker.leaders.asked_for_as_it_is(place)


def _judge_identity(checker: "Checker", outcome: Outcome, digest: bytes) -> None:
    identity = (outcome.cluster, outcome.id)
    known = checker.digests.get(identity)
    if known is None:
        assert outcome.verdict != "duplicate", f"S14: {outcome} comes for the first time"
        if outcome.digest:
            checker.digests[identity] = digest
    else:
        expected = "duplicate" if known == digest else "refused"
        assert outcome.verdict == expected, f"S14: {outcome} was decided before"


def s14_owners_believe_the_log(checker: "Checker") -> None:
    """S14: what each owner has folded, and what it has speculated, is what the log says."""
    names = checker.world.settings.names
    for worker in checker.world.workers:
        for shard in worker.shards:
            checker.note_hash(shard.number, shard.fold)
            if shard.holds_token and not shard.core._proposals.is_under_way and shard.loop is None:
                ahead = full_hash(shard.core._clusters.speculative, names)
                assert ahead == full_hash(shard.fold.state, names), f"S14: {worker.name} believes something else"


def full_hash(state: ShardState, names: Sequence[str]) -> bytes:
    """Hash a state; one that does not name a cluster yet is as good as one that holds it empty."""
    if state.clusters.keys() >= set(names):
        return state.hash()
    twin = state.copy()
    for name in names:
        twin.cluster(name)
    return twin.hash()


def s17_nothing_is_skipped_silently(checker: "Checker", shard: int, record: Batch) -> None:
    """S17: each command that a cursor passes has its outcome, was forwarded before, or is a dead letter before."""
    judge, commands = checker.judges[shard], checker.world.commands
    offsets = [(_INDEX_OF[outcome.topic], outcome.offset) for outcome in record.outcomes]
    assert len(set(offsets)) == len(offsets), "S17: two outcomes of one command"
    answered = set(offsets)
    for index, cursor in enumerate(record.cursors):
        for offset in range(judge.cursors[index].next_offset, cursor.next_offset):
            stored = commands.read(index, shard)[offset]
            place = (index, offset)
            if isinstance(stored.command, Malformed):
                assert (shard, index, offset) in commands.dead_letters, f"S17: {COMMAND_KINDS[index]} {offset} is lost"
            elif shard_of(stored.command.cluster, checker.world.settings.shards) != shard:
                assert _sent_on(checker, shard, index, offset), f"S17: {COMMAND_KINDS[index]} {offset} was not sent on"
            else:
                assert place in answered, f"S17: {COMMAND_KINDS[index]} {offset} has no outcome"
            answered.discard(place)
    assert not answered, f"S17: outcomes of commands that the cursors do not pass: {answered}"
    judge.cursors = record.cursors


def _sent_on(checker: "Checker", shard: int, index: int, offset: int) -> bool:
    commands = checker.world.commands
    stored = commands.read(index, shard)[offset]
    if stored.forwarded:
        return (shard, index, offset) in commands.dead_letters
    assert not isinstance(stored.command, Malformed), "what names no cluster has no right place"
    target = shard_of(stored.command.cluster, checker.world.settings.shards)
    return any(other.forwarded and other.payload == stored.payload for other in commands.read(index, target))
