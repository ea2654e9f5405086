"""An independent reading of what was done: the msgpack package, and the rules of the log written down again."""

import asyncio
from collections import defaultdict
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import msgpack
from aiokafka import TopicPartition

from drover.events.topics import COMMAND_KINDS, DEFAULT_SHARDS
from drover.journal.connection import LogConnection
from drover.journal.consumer import new_consumer

ENDS = ("call-accepted", "call-rejected", "call-lapsed", "call-outcome-lost")
TERMINAL = ("reassignment-completed", "reassignment-rolled-back", "reassignment-stopped", "reassignment-failed")
CONSUMERS, STALL_S = 4, 20.0
# What makes a cancel or a restore due.
BACK = ("rollback-requested", "stop-requested", "target-replaced", "reassignment-adopted")


@dataclass
class Story:
    """Valid events by partition, outcomes by command id, and every breach of the rules that was found."""

    events: dict[tuple[str, int], list[dict[str, Any]]] = field(default_factory=lambda: defaultdict(list))
    outcomes: dict[str, list[dict[str, Any]]] = field(default_factory=lambda: defaultdict(list))
    decided: dict[tuple[str, int], list[int]] = field(default_factory=lambda: defaultdict(list))
    owners: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)

    def calls(self, key: tuple[str, int], kind: str) -> int:
        """How often a call was intended for a partition."""
        return sum(event["type"] == "call-intended" and event["call"] == kind for event in self.events[key])

    def lapses(self, key: tuple[str, int]) -> int:
        return sum(event["type"] == "call-lapsed" for event in self.events[key])

    def terminal(self, key: tuple[str, int]) -> list[str]:
        return [event["type"] for event in self.events[key] if event["type"] in TERMINAL]


async def read_all(connection: LogConnection, topic: str) -> dict[int, list[Any]]:
    """Read a whole topic with a plain consumer; one that gets no records for `STALL_S` is replaced.

    In 3 of some 25 runs, a consumer that was started right after all brokers had hung read nothing for minutes.
    """
    for _ in range(CONSUMERS):
        with suppress(TimeoutError):
            async with asyncio.timeout(STALL_S) as stall:
                return await _read_once(connection, topic, stall)
    raise AssertionError(f"{CONSUMERS} consumers of {topic} stalled for {STALL_S:g} s each before its end")


async def _read_once(connection: LogConnection, topic: str, stall: asyncio.Timeout) -> dict[int, list[Any]]:
    consumer = new_consumer(**connection.client_options, enable_auto_commit=False, group_id=None)
    await consumer.start()
    try:
        places = [TopicPartition(topic, number) for number in range(DEFAULT_SHARDS)]
        ends = await consumer.end_offsets(places)
        firsts = await consumer.beginning_offsets(places)
        consumer.assign(places)
        for place in places:  # at once: a position that is not known is waited for without end
            consumer.seek(place, firsts[place])
        found: dict[int, list[Any]] = {place.partition: [] for place in places}
        while any([await consumer.position(place) < ends[place] for place in places]):
            for place, records in (await consumer.getmany(timeout_ms=200)).items():
                found[place.partition] += records
                stall.reschedule(asyncio.get_running_loop().time() + STALL_S)
        return found
    finally:
        await consumer.stop()


async def read_story(connection: LogConnection) -> Story:
    """Read the log and the command topics, and check what must hold of every story."""
    story = Story()
    for shard, records in (await read_all(connection, connection.topics.events)).items():
        _read_shard(story, shard, records)
    for topic, kind in zip(connection.topics.commands, COMMAND_KINDS, strict=True):
        for partition, records in (await read_all(connection, topic)).items():
            expected = [record.offset for record in records]
            if sorted(story.decided[topic, partition]) != expected and not _only_strays(
                records, story, topic, partition
            ):
                story.faults.append(
                    f"{kind}/{partition}: {len(expected)} commands, decided {story.decided[topic, partition]}"
                )
    for key, events in story.events.items():
        _check_partition(story, key, events)
    return story


def _only_strays(records: list[Any], story: Story, topic: str, partition: int) -> bool:
    """Records without an outcome must be no readable commands; none may have two."""
    decided = story.decided[topic, partition]
    if len(set(decided)) != len(decided):
        return False
    return all(_is_unreadable(record.value) for record in records if record.offset not in decided)


def _is_unreadable(payload: bytes) -> bool:
    try:
        command = msgpack.unpackb(payload)
    except (ValueError, msgpack.UnpackException):
        return not payload.startswith(b"{") or b'"id"' not in payload
    return not isinstance(command, dict) or "id" not in command


def _read_shard(story: Story, shard: int, records: list[Any]) -> None:
    token, epoch, sequence = b"", 0, 0
    for stored in records:
        record = msgpack.unpackb(stored.value)
        if record["kind"] == "acquire" and record["epoch"] == epoch + 1:
            token, epoch = record["token"], record["epoch"]
            story.owners.append(record["owner"])
        if record["kind"] != "batch" or record["token"] != token:
            continue
        sequence += 1
        if record["sequence"] != sequence:
            story.faults.append(f"shard {shard} offset {stored.offset}: sequence {record['sequence']}, not {sequence}")
        for outcome in record.get("outcomes", ()):
            earlier = story.outcomes[outcome["id"]]
            places = [(one["topic"], one["offset"]) for one in earlier if one["verdict"] == "held"]
            if (outcome["topic"], outcome["offset"]) not in places:
                # What was held has a second outcome; the command stands there once.
                story.decided[outcome["topic"], shard].append(outcome["offset"])
            earlier.append(outcome)
        for event in record.get("events", ()):
            if "topic" in event and "partition" in event:
                story.events[event["topic"], event["partition"]].append(event)


def _check_partition(story: Story, key: tuple[str, int], events: list[dict[str, Any]]) -> None:
    """One call at a time, each with one end, and no cancel that nobody asked for."""
    is_open = goes_back = False
    for event in events:
        kind = event["type"]
        if kind == "reassignment-created":
            is_open = goes_back = False
        elif kind in BACK:
            goes_back = True
        elif kind == "call-intended":
            if is_open:
                story.faults.append(f"{key}: a call was intended while another was open")
            if event["call"] in {"cancel", "restore"} and not goes_back:
                story.faults.append(f"{key}: {event['call']} that nobody asked for")
            is_open = True
        elif kind in ENDS:
            is_open = False
