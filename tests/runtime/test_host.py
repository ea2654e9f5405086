"""Hosting shards on the journal in memory: barrier, requeue, yield, gaps, backpressure, stop."""

import asyncio
from collections.abc import AsyncIterator
from functools import partial

import pytest
import pytest_asyncio
from msgspec.structs import replace

from drover.agents import shards
from drover.agents.clock import now
from drover.errors import ConfigurationError, CorruptLogError
from drover.events.codec import decode_record, encode_record
from drover.events.commands import Blacklist
from drover.events.records import SCHEMA_VERSION, Acquire, Record
from drover.events.topics import COMMAND_KINDS
from drover.journal.recovery import resume
from drover.reconcile.messages import MAX_AHEAD_MS
from drover.shard.inbox import HIGH_COUNT
from drover.testing import memory_journal as memory
from drover.testing.memory_journal import MemoryJournal, StoredRecord
from drover.testing.model_worker import TOPIC_IDS, EndedError
from drover.testing.virtual_time import run_in_virtual_time
from tests.runtime.world import GROUP, SHARDS, World, arrival_of, cluster_in, freeze


@pytest_asyncio.fixture
async def world() -> AsyncIterator[World]:
    made = World()
    yield made
    await made.close()


def _records(world: World, shard: int) -> list[Record]:
    return [decode_record(value) for value in world.broker.values(world.broker.topics.events, shard)]


def _steal(world: World, shard: int, *, group: str = "other", generation: int = 0) -> None:
    """Acquire a shard by the rules, on the log alone."""
    epoch = max((record.epoch for record in _records(world, shard) if isinstance(record, Acquire)), default=0)
    acquire = Acquire(
        schema=SCHEMA_VERSION, epoch=epoch + 1, token=b"thief", owner="thief", group=group, generation=generation
    )
    world.broker.put(world.broker.topics.events, shard, StoredRecord(encode_record(acquire)))


async def test_the_barrier_acquires_and_a_command_is_decided(world: World) -> None:
    host, group, clusters = await world.serving_host()
    assert sorted(clusters.owned) == list(range(SHARDS))
    host.arrive(0, arrival_of(freeze("f1"), 0), group.generation)
    await world.until(world.outcomes, "an outcome")
    assert [(outcome.id, outcome.verdict) for outcome in world.outcomes()] == [("f1", "accepted")]
    assert world.batches()[-1].cursors[1].next_offset == 1


async def test_commands_of_another_generation_are_not_taken(world: World) -> None:
    host, group, _ = await world.serving_host()
    host.arrive(0, arrival_of(freeze("old"), 0), group.generation - 1)
    host.arrive(0, arrival_of(freeze("new"), 0), group.generation)
    await world.until(world.outcomes, "an outcome")
    assert [outcome.id for outcome in world.outcomes()] == ["new"]


async def test_scattered_shards_end_the_process(world: World) -> None:
    host, group, _ = await world.host("w")
    scattered = {topic: [number % 2] for number, topic in enumerate(world.broker.topics.commands)}
    with pytest.raises(EndedError):
        await host.partitions_assigned(scattered, group.generation)
    assert world.ended == [70]


async def test_after_a_theft_the_commands_are_decided_once_by_whoever_owns_the_shard(world: World) -> None:
    host, group, _ = await world.serving_host()
    for number in range(50):
        if number % 10 == 5:
            _steal(world, 0)
        host.arrive(0, arrival_of(freeze(f"f{number}"), number), group.generation)
        await asyncio.sleep(0)
    await world.until(lambda: host.shards[0].next_offsets[1] == 50, "all to be decided")
    folded = {outcome.offset for outcome in world.outcomes()}
    assert folded == set(range(50))
    assert host.shards[0].fold.owner == "w"


async def test_workers_of_two_groups_leave_each_other_time_and_do_not_fill_the_log(world: World) -> None:
    first, first_group, _ = await world.serving_host("first")
    second, second_group, _ = await world.host("second", group_name="other")
    await world.assign(second, range(SHARDS), second_group.generation)
    await asyncio.sleep(1.0)
    for number in range(5):
        for host, group in ((first, first_group), (second, second_group)):
            host.arrive(0, arrival_of(freeze(f"f{number}"), number), group.generation)
    await world.until(lambda: first.shards[0].next_offsets[1] == 5, "all to be decided")
    acquires = [record for record in _records(world, 0) if isinstance(record, Acquire)]
    assert {record.owner for record in acquires} == {"first", "second"}
    assert len(acquires) < 20
    assert [outcome.offset for outcome in world.valid_outcomes()] == list(range(5))


async def test_a_newer_generation_of_the_group_is_yielded_to_and_then_joined_again(world: World) -> None:
    host, group, clusters = await world.host("w", session_timeout_ms=1000)
    await world.assign(host, range(SHARDS), group.generation)
    _steal(world, 0, group=GROUP, generation=group.generation + 5)
    await world.until(lambda: not host.shards[0].assigned, "the shard to be yielded")
    assert clusters.owned == [1]
    await world.until(lambda: group.rejoins, "the group to be joined again")
    assert host.shards[0].fold.owner == "thief"
    # The rejoin brings a new barrier, which takes the shard up again.
    host.partitions_revoked()
    group.generation += 1
    await world.assign(host, range(SHARDS), group.generation)
    assert host.shards[0].holds_token


async def test_a_revoke_during_the_barrier_leaves_the_shards_unserved(world: World) -> None:
    host, group, clusters = await world.host("w")
    barrier = asyncio.create_task(world.assign(host, range(SHARDS), group.generation))
    await asyncio.sleep(0)
    host.partitions_revoked()
    await barrier
    assert clusters.owned == []
    assert not any(shard.assigned for shard in host.shards)


async def test_a_revoke_while_facts_are_gathered_drops_the_command_for_the_next_owner(world: World) -> None:
    host, group, clusters = await world.serving_host()
    clusters.before_facts = host.partitions_revoked
    alter = (
        b'{"type":"alter","id":"a1","cluster":"%s","by":"me","reason":"r",'
        b'"partitions":[{"topic":"t","partition":0,"replicas":[1]}]}' % cluster_in(0).encode()
    )
    host.arrive(0, arrival_of(alter, 0, topic_index=0), group.generation)
    await world.until(lambda: not host.shards[0].assigned, "the revoke")
    await asyncio.sleep(0.02)
    assert world.outcomes() == []
    clusters.before_facts = lambda: None
    group.generation += 1
    await world.assign(host, range(SHARDS), group.generation)
    host.arrive(0, arrival_of(alter, 0, topic_index=0), group.generation)
    await world.until(world.outcomes, "an outcome")
    assert [(outcome.id, outcome.verdict) for outcome in world.outcomes()] == [("a1", "refused")]


async def test_a_gap_of_transaction_markers_is_proven_empty_and_passed(world: World) -> None:
    host, group, _ = await world.serving_host()
    topic = world.broker.topics.commands[1]
    commands = {0: freeze("f0"), 2: freeze("f2"), 3: freeze("f3"), 6: freeze("f6")}
    for offset in range(7):
        if offset in commands:
            world.command(commands[offset])
        else:
            world.broker.put(topic, 0, None)
    for offset, command in commands.items():
        host.arrive(0, arrival_of(command, offset), group.generation)
    await world.until(lambda: len(world.outcomes()) == 4, "all four outcomes")
    assert [outcome.id for outcome in world.outcomes()] == ["f0", "f2", "f3", "f6"]
    assert not group.held


async def test_a_gap_that_holds_a_record_ends_the_process(world: World) -> None:
    host, group, _ = await world.serving_host()
    for number in range(3):
        world.command(freeze(f"f{number}"))
    host.arrive(0, arrival_of(freeze("f0"), 0), group.generation)
    host.arrive(0, arrival_of(freeze("f2"), 2), group.generation)
    await world.until(lambda: world.ended, "the process to end")
    assert [outcome.id for outcome in world.outcomes()] == ["f0"]


async def test_an_unknown_append_ends_the_process_and_the_next_one_decides_nothing_twice(world: World) -> None:
    host, group, _ = await world.serving_host()
    world.broker.lost_acknowledgements = 1
    for number in (1, 2):
        world.command(freeze(f"f{number}"))
    host.arrive(0, arrival_of(freeze("f1"), 0), group.generation)
    await world.until(lambda: world.ended, "the process to end")
    second, second_group, _ = await world.serving_host("second")
    assert second.positions()[0][1] == 1
    second.arrive(0, arrival_of(freeze("f1"), 0), second_group.generation)
    second.arrive(0, arrival_of(freeze("f2"), 1), second_group.generation)
    await world.until(lambda: len(world.outcomes()) == 2, "both outcomes")
    assert [outcome.id for outcome in world.outcomes()] == ["f1", "f2"]


# More than three times what an inbox holds.
FLOOD = 3 * HIGH_COUNT + 1000


async def test_a_full_inbox_holds_its_partition_and_reads_on_when_it_is_low(world: World) -> None:
    host, group, _ = await world.serving_host()
    for number in range(HIGH_COUNT):
        host.arrive(0, arrival_of(freeze(f"f{number}"), number), group.generation)
    assert group.held == {(1, 0)}
    await world.until(lambda: host.shards[0].next_offsets[1] == HIGH_COUNT, "all to be decided")
    assert not group.held


async def test_a_topic_that_lost_what_comes_next_stops_the_worker(world: World) -> None:
    host, group, _ = await world.serving_host()
    host.arrive(0, arrival_of(freeze("f1"), 0), group.generation)
    await world.until(world.outcomes, "an outcome")
    # The command topic is empty in memory: the log's cursor lies behind its end.
    host.partitions_revoked()
    with pytest.raises(CorruptLogError, match="is to be decided next"):
        await world.assign(host, range(SHARDS), group.generation)


async def test_a_clean_stop_leaves_the_state_hash_of_shards_that_have_decided(world: World) -> None:
    host, group, clusters = await world.serving_host()
    host.arrive(1, arrival_of(freeze("f1", 1), 0), group.generation)
    await world.until(lambda: world.outcomes(1), "an outcome")
    await host.close_shards()
    assert world.batches(1)[-1].state_hash == host.shards[1].fold.state.hash()
    assert world.batches(0) == []
    assert clusters.owned == []


async def test_a_misplaced_command_is_forwarded_before_its_cursor_passes(world: World) -> None:
    host, group, _ = await world.serving_host()
    misplaced = freeze("f1", shard=1)
    sent = (("content-type", b"application/msgpack"), ("trace", b"\xff"))
    host.arrive(0, replace(arrival_of(misplaced, 0), headers=sent), group.generation)
    await world.until(lambda: world.batches(0), "the cursor to pass")
    stored = world.broker.partitions[world.broker.topics.commands[1], 1]
    assert [record.headers for record in stored if record] == [(*sent, ("drover-forwarded", b"0:0"))]
    assert world.outcomes(0) == []


async def test_a_forwarded_command_in_the_wrong_place_is_a_dead_letter(world: World) -> None:
    host, group, _ = await world.serving_host()
    host.arrive(0, arrival_of(freeze("f1", shard=1), 0, forwarded=True), group.generation)
    host.arrive(0, arrival_of(b"\xc1" * 70_000, 1), group.generation)
    await world.until(lambda: host.shards[0].next_offsets[1] == 2, "the cursor to pass")
    letters = [record for record in world.broker.partitions[world.broker.topics.dead_letters, 0] if record]
    assert len(letters) == 2
    assert len(letters[1].value) == 64 * 1024
    places = [dict(letter.headers)["__connect.errors.offset"] for letter in letters]
    assert places == [b"0", b"1"]
    assert dict(letters[0].headers)["__connect.errors.topic"] == f"drover.{COMMAND_KINDS[1]}".encode()


async def test_a_topic_with_another_id_than_the_log_was_decided_from_stops_the_worker(world: World) -> None:
    host, group, _ = await world.serving_host()
    world.command(freeze("f1"))
    host.arrive(0, arrival_of(freeze("f1"), 0), group.generation)
    await world.until(world.outcomes, "an outcome")
    second, second_group, _ = await world.host("second", topic_ids=(TOPIC_IDS[0], "another", *TOPIC_IDS[2:]))
    with pytest.raises(CorruptLogError, match="deleted and made anew"):
        await world.assign(second, range(SHARDS), second_group.generation)


async def test_a_log_without_a_first_record_is_a_matter_for_topics_init(world: World) -> None:
    world.broker.partitions[world.broker.topics.events, 1].clear()
    with pytest.raises(ConfigurationError, match="drover log init"):
        await world.host("w")


async def test_a_decision_that_is_more_than_the_log_takes_is_refused_and_the_worker_goes_on(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    host, group, _ = await world.serving_host()
    monkeypatch.setattr(memory, "MAX_REQUEST_BYTES", 20_000)
    blacklist = Blacklist(id="b1", cluster=cluster_in(0), by="me", reason="r", brokers=tuple(range(9000)))
    host.arrive(0, arrival_of(blacklist, 0, topic_index=2), group.generation)
    host.arrive(0, arrival_of(freeze("f1"), 0), group.generation)
    await world.until(lambda: len(world.outcomes()) == 2, "both outcomes")
    assert not world.ended
    verdicts = {outcome.id: outcome.verdict for outcome in world.outcomes()}
    assert verdicts == {"b1": "refused", "f1": "accepted"}


async def test_dead_letters_that_cannot_be_written_stop_no_shard(world: World) -> None:
    host, group, _ = await world.serving_host()
    world.broker.missing.add(world.broker.topics.dead_letters)
    host.arrive(0, arrival_of(b"\xc1", 0), group.generation)
    host.arrive(0, arrival_of(freeze("f1"), 1), group.generation)
    await world.until(lambda: host.shards[0].next_offsets[1] == 2, "both to be decided")
    assert not world.ended
    assert 'drover_dead_letters_lost_total{shard="0"} 1.0' in host._metrics.render().decode()


async def test_a_megabyte_of_nonsense_becomes_a_dead_letter_that_any_topic_takes(world: World) -> None:
    host, group, _ = await world.serving_host()
    payload = b'{"id":"a","cluster":"c","type":"' + b"x" * 1_000_000 + b'"}'
    host.arrive(0, arrival_of(payload, 0), group.generation)
    await world.until(lambda: host.shards[0].next_offsets[1] == 1, "the cursor to pass")
    (letter,) = [record for record in world.broker.partitions[world.broker.topics.dead_letters, 0] if record]
    assert len(letter.value) + sum(len(name) + len(value) for name, value in letter.headers) < 70_000


def test_commands_that_come_close_behind_each_other_share_records() -> None:
    """A busy machine would otherwise make one record per command, and fall behind for good."""

    async def send() -> int:
        world = World()
        host, group, _ = await world.serving_host()
        for number in range(100):
            host.arrive(0, arrival_of(freeze(f"f{number}"), number), group.generation)
            await asyncio.sleep(0.001)
        await world.until(lambda: host.shards[0].next_offsets[1] == 100, "all to be decided")
        await world.close()
        return len(world.batches())

    # In virtual time a command comes every millisecond, however fast the machine is.
    assert run_in_virtual_time(send()) < 40


async def test_damage_stops_its_own_shard_only_until_an_administrator_resumes_it(world: World) -> None:
    host, group, _ = await world.host("w", session_timeout_ms=1000)
    await world.assign(host, range(SHARDS), group.generation)
    for number, shard in ((1, 0), (3, 0), (2, 1)):
        world.command(freeze(f"f{number}", shard), shard)
    host.arrive(0, arrival_of(freeze("f1"), 0), group.generation)
    await world.until(world.outcomes, "an outcome")
    token = host.shards[0].fold.token
    world.broker.put(world.broker.topics.events, 0, StoredRecord(b"\x00\x01random"))
    world.broker.put(world.broker.topics.events, 0, StoredRecord(b"\xc1" + token))
    await world.until(lambda: host.shards[0].is_damaged, "the damage to be seen")
    host.arrive(1, arrival_of(freeze("f2", 1), 0), group.generation)
    await world.until(lambda: world.outcomes(1), "the other shard to go on")
    assert not host.shards[0].holds_token
    assert 'drover_shard_damaged{shard="0"} 1.0' in host._metrics.render().decode()
    # A worker that starts now serves the other shard as well.
    second, second_group, _ = await world.host("second")
    await world.assign(second, range(SHARDS), second_group.generation)
    assert [shard.holds_token for shard in second.shards] == [False, True]
    damage = host.shards[0].fold.damage
    assert damage is not None
    await resume(MemoryJournal(world.broker, SHARDS), host.shards[0].fold.copy(), damage.offset, "admin")
    await world.until(lambda: not host.shards[0].is_damaged, "the shard to be resumed")
    await world.until(lambda: group.rejoins, "the group to be joined again")
    host.partitions_revoked()
    group.generation += 1
    await world.assign(host, range(SHARDS), group.generation)
    host.arrive(0, arrival_of(freeze("f3"), 1), group.generation)
    await world.until(lambda: host.shards[0].next_offsets[1] == 2, "the next command")
    assert not world.ended


async def test_log_time_is_that_of_the_brokers_but_at_most_a_minute_ahead_of_the_owners_clock(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    century_ms, start = 100 * 365 * 24 * 3600 * 1000, now()
    monkeypatch.setattr(shards, "now", lambda: start)
    world.broker.time_ms = start.wall_ms - century_ms
    host, group, _ = await world.serving_host()
    times: list[int] = []

    def has_outcomes(count: int) -> bool:
        return len(world.outcomes()) == count

    for number, broker_ms in enumerate((start.wall_ms - 5, start.wall_ms + century_ms, start.wall_ms)):
        world.broker.time_ms = broker_ms
        # A broker says its time when it has stored a record: the next one is dated by it.
        for offset in (2 * number, 2 * number + 1):
            command = freeze(f"f{offset}")
            world.command(command)
            host.arrive(0, arrival_of(command, offset), group.generation)
            await world.until(partial(has_outcomes, offset + 1), "the outcome")
        times.append(world.batches()[-1].at_ms)
    latest_ms = start.wall_ms + MAX_AHEAD_MS
    assert times == [start.wall_ms - 5, latest_ms, latest_ms], "it never goes back"
    # What was dated so replays.
    second, _, _ = await world.host("second")
    assert second.shards[0].fold.state.hash() == host.shards[0].fold.state.hash()
