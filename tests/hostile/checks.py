"""What must hold after a play: nothing ended or stood still, everything is within its bounds, all is answered."""

from collections import defaultdict

from drover.events.codec import MAX_COMMAND_BYTES, Malformed, decode_command
from drover.events.commands import TYPES_BY_TOPIC
from drover.events.records import Outcome
from drover.events.topics import shard_of
from drover.fold.decided_commands import MOST_PER_CLUSTER
from tests.hostile.play import MOST_STALL_S, Play
from tests.runtime.world import SHARDS

LOG_RECORD_BYTES = 8 * MAX_COMMAND_BYTES
DEAD_LETTER_BYTES = 70_000


def check(play: Play) -> None:
    """Check everything."""
    assert not play.faults, play.faults
    assert not play.worker.is_dead, "the worker ended"
    assert play.watch.longest_s < MOST_STALL_S, f"nothing else could run for {play.watch.longest_s:.2f} s"
    bounds(play)
    for shard in range(SHARDS):
        all_answered(play, shard)
        in_order(play, shard)
        replays(play, shard)


def bounds(play: Play) -> None:
    """No record, letter, text or register is larger than docs/security.md says."""
    topics = play.group.broker.topics
    for shard in range(SHARDS):
        assert max(map(len, play.group.broker.values(topics.events, shard))) < LOG_RECORD_BYTES
        for outcome in play.outcomes(shard):
            assert len(outcome.by.encode()) <= 256
            assert len(outcome.reason.encode()) <= 1024
            assert all(len(refusal.detail.encode()) <= 500 for refusal in outcome.refusals)
    for letter in play.group.broker.partitions[topics.dead_letters, 0]:
        assert letter is not None
        assert len(letter.value) + sum(len(name) + len(value) for name, value in letter.headers) < DEAD_LETTER_BYTES
    host = play.worker.host
    known = {str(kind.__struct_config__.tag) for kinds in TYPES_BY_TOPIC for kind in kinds} | {"unknown"}
    types = {
        sample.labels["type"]
        for metric in host._metrics.registry.collect()
        for sample in metric.samples
        if "type" in sample.labels
    }
    assert types <= known, types - known
    for hosted in host.shards:
        assert len(hosted.fold.decided_commands) <= MOST_PER_CLUSTER


def all_answered(play: Play, shard: int) -> None:
    """Each record of a command topic has an outcome, or was forwarded, or is a dead letter."""
    topics = play.group.broker.topics
    outcomes: defaultdict[tuple[str, int], list[Outcome]] = defaultdict(list)
    for outcome in play.outcomes(shard):
        outcomes[outcome.topic, outcome.offset].append(outcome)
    letters = {
        (headers["__connect.errors.topic"].decode(), int(headers["__connect.errors.offset"]))
        for letter in play.group.broker.partitions[topics.dead_letters, 0]
        if letter is not None and int((headers := dict(letter.headers))["__connect.errors.partition"]) == shard
    }
    forwarded = {
        (topic, headers["drover-forwarded"].decode())
        for topic in topics.commands
        for other in range(SHARDS)
        for record in play.group.broker.partitions[topic, other]
        if record is not None and "drover-forwarded" in (headers := dict(record.headers))
    }
    for index, topic in enumerate(topics.commands):
        for offset, record in enumerate(play.group.broker.partitions[topic, shard]):
            assert record is not None
            place = (topic, offset)
            headers = dict(record.headers)
            content_type = headers.get("content-type")
            command = decode_command(record.value, content_type.decode("latin-1") if content_type else None)
            if isinstance(command, Malformed) or type(command) not in TYPES_BY_TOPIC[index]:
                assert place in letters, f"{place} is nowhere: {record.value[:200]!r}"
            elif shard_of(command.cluster, SHARDS) != shard:
                assert place in letters or (topic, f"{shard}:{offset}") in forwarded, place
            else:
                _is_final(outcomes[place], place)


def _is_final(found: list[Outcome], place: tuple[str, int]) -> None:
    assert found, f"{place} has no outcome"
    assert len(found) == 1, f"{place} was decided twice"


def in_order(play: Play, shard: int) -> None:
    """The commands of a topic are decided in their order."""
    last: dict[str, int] = {}
    seen: set[tuple[str, int]] = set()
    for outcome in play.outcomes(shard):
        place = (outcome.topic, outcome.offset)
        if place in seen:
            continue
        seen.add(place)
        assert last.get(outcome.topic, -1) < outcome.offset, f"{place} was overtaken"
        last[outcome.topic] = outcome.offset


def replays(play: Play, shard: int) -> None:
    """A fold from the first record makes the same state."""
    fold, host = play.log.folds[shard], play.worker.host
    assert fold.damage is None
    if fold.position == host.shards[shard].fold.position:
        assert fold.state.hash() == host.shards[shard].fold.state.hash()
