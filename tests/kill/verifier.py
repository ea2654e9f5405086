"""An independent reader of the log: decodes with the msgpack package, folds by rules written down again here.

It shares no code with Drover's own fold, so that an error in that one cannot hide.
"""

import hashlib
import json
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgpack
from aiokafka import ConsumerRecord

from drover.events.topics import TopicNames
from drover.journal.connection import LogConnection
from tests.kill.harness import NO_COMMANDS, SHARDS, Drill, read_topics

Records = dict[tuple[str, int], list[ConsumerRecord]]
Place = tuple[str, int, int]
NOT_A_COMMAND = '"a record is not a command and went to the dead letters"'
MAY_BE_MISSING = '"dead letters may be missing, the records remain in their topic"'


@dataclass
class ClusterView:
    """What commands of the kill tests change, folded from events."""

    frozen: bool = False
    blacklist: tuple[int, ...] = ()
    failed: dict[int, int] = field(default_factory=dict)


@dataclass
class Verdicts:
    """What the verifier saw; `faults` must be empty."""

    faults: list[str] = field(default_factory=list)
    decided: dict[Place, dict[str, Any]] = field(default_factory=dict)
    fenced_batches: int = 0
    fenced_outcomes: int = 0
    acquires: int = 0
    stale_acquires: int = 0
    batches: int = 0
    owners: set[str] = field(default_factory=set)
    state_hashes: Counter[int] = field(default_factory=Counter)
    cursors: dict[int, list[int]] = field(default_factory=dict)
    views: dict[str, ClusterView] = field(default_factory=lambda: defaultdict(ClusterView))
    latencies_s: list[float] = field(default_factory=list)

    def latency_s(self, share: float) -> float:
        ordered = sorted(self.latencies_s)
        return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


async def verify(drill: Drill) -> Verdicts:
    """Read everything and judge it, by what the workers say of dead letters that they could not write in time."""
    return await verify_log(drill.connection, drill.feeder.sent, given_up(drill.workers.logs()))


def given_up(logs: Iterable[str]) -> set[Place]:
    """Return where the records are whose dead letters may be missing, as the workers' logs name them.

    A worker names each record that is not a command, and then says of how many of the last ones of a partition it could
    not write the dead letters within a second.
    """
    places: set[Place] = set()
    for log in logs:
        named: dict[int, list[Place]] = defaultdict(list)
        for line in log.splitlines():
            if NOT_A_COMMAND in line:
                told = json.loads(line)
                named[told["partition"]].append((told["topic"], told["partition"], told["offset"]))
            elif MAY_BE_MISSING in line:
                told = json.loads(line)
                places.update(named[told["partition"]][-told["records"] :])
    return places


async def verify_log(
    connection: LogConnection, sent: Sequence[tuple[str, int, int, str]], unwritten: Collection[Place] = ()
) -> Verdicts:
    """Read everything of one Drover and judge it.

    `sent` holds topic, shard, offset and id of what was acknowledged, `unwritten` where records are whose dead letters
    may be missing.
    """
    names = connection.topics
    records = await read_topics(connection, (names.events, *names.commands, names.dead_letters))
    verdicts = Verdicts()
    for shard in range(SHARDS):
        _verify_shard(verdicts, names, records, shard)
    _verify_commands(verdicts, names, records, unwritten)
    for topic, partition, offset, identity in sent:
        stored = records[topic, partition]
        if not any(record.offset == offset for record in stored):
            verdicts.faults.append(f"acknowledged command {identity} at {topic}/{partition}/{offset} is gone")
    return verdicts


def _verify_shard(verdicts: Verdicts, names: TopicNames, records: Records, shard: int) -> None:
    token, epoch, sequence, chain, at_ms = b"", 0, 0, b"", 0
    cursors = [0] * len(names.commands)
    identities: dict[tuple[str, str], bytes] = {}
    for expected_offset, stored in enumerate(records[names.events, shard]):
        fault = _Faults(verdicts, f"events/{shard}/{stored.offset}")
        fault.unless(stored.offset == expected_offset, "an offset is missing")
        record = msgpack.unpackb(stored.value)
        if record["kind"] == "genesis":
            fault.unless(record["shards"] == SHARDS and record["shard"] == shard, "wrong genesis")
            continue
        if record["kind"] == "acquire":
            if record["epoch"] == epoch + 1:
                token, epoch = record["token"], record["epoch"]
                verdicts.acquires += 1
                verdicts.owners.add(record["owner"])
            else:
                verdicts.stale_acquires += 1
            continue
        if record["token"] != token:
            verdicts.fenced_batches += 1
            verdicts.fenced_outcomes += len(record.get("outcomes", ()))
            continue
        verdicts.batches += 1
        fault.unless(record["epoch"] == epoch, "epoch")
        fault.unless(record["sequence"] == sequence + 1, "sequence")
        fault.unless(record["previous_hash"] == chain, "chain hash")
        fault.unless(record["at_ms"] >= at_ms, "time")
        sequence, at_ms = record["sequence"], record["at_ms"]
        chain = hashlib.blake2b(stored.value, digest_size=16).digest()
        verdicts.state_hashes[shard] += "state_hash" in record
        following = [cursor["next_offset"] for cursor in record["cursors"]]
        fault.unless(all(old <= new for old, new in zip(cursors, following, strict=True)), "a cursor goes back")
        ahead = [set(cursor.get("ahead", ())) for cursor in record["cursors"]]
        ends = [max((end, *(offset + 1 for offset in early))) for end, early in zip(following, ahead, strict=True)]
        _take_outcomes(verdicts, names, (shard, cursors, ends), record.get("outcomes", ()), stored, fault)
        _check_identities(identities, record.get("outcomes", ()), fault)
        cursors = following
        for event in record.get("events", ()):
            _fold_event(verdicts.views[event["cluster"]], event)
    verdicts.cursors[shard] = cursors


def _take_outcomes(
    verdicts: Verdicts,
    names: TopicNames,
    span: tuple[int, Sequence[int], Sequence[int]],
    outcomes: Iterable[dict[str, Any]],
    stored: ConsumerRecord,
    fault: "_Faults",
) -> None:
    shard, cursors, following = span
    for outcome in outcomes:
        index = names.commands.index(outcome["topic"])
        place = (outcome["topic"], shard, outcome["offset"])
        fault.unless(cursors[index] <= outcome["offset"] < following[index], f"{place} is not between the cursors")
        fault.unless(place not in verdicts.decided, f"{place} is decided twice")
        verdicts.decided[place] = {**outcome, "logged_ms": stored.timestamp}


def _check_identities(
    identities: dict[tuple[str, str], bytes], outcomes: Iterable[dict[str, Any]], fault: "_Faults"
) -> None:
    for outcome in outcomes:
        digest = outcome.get("digest", b"")
        key = (outcome["cluster"], outcome["id"])
        if outcome["verdict"] == "duplicate":
            fault.unless(key in identities, f"{key} is called a duplicate and is none")
        elif digest:
            fault.unless(key not in identities, f"{key} has an effect twice")
            identities[key] = digest


def _fold_event(view: ClusterView, event: dict[str, Any]) -> None:
    match event["type"]:
        case "cluster-frozen":
            view.frozen = True
        case "cluster-unfrozen":
            view.frozen = False
        case "blacklist-set":
            view.blacklist = tuple(event["brokers"])
        case "broker-failure-recorded":
            view.failed[event["broker"]] = event["failed_at_ms"]
        case "broker-return-recorded":
            view.failed.pop(event["broker"], None)
        case _:
            pass


def _verify_commands(verdicts: Verdicts, names: TopicNames, records: Records, unwritten: Collection[Place]) -> None:
    """Every record of every command topic was decided in place, forwarded and decided there, or dead-lettered.

    No command may be among those whose dead letter could not be written.
    """
    buried: set[Place] = set(unwritten)
    for letter in records[names.dead_letters, 0]:
        headers = {name.removeprefix("__connect.errors."): value.decode() for name, value in letter.headers}
        buried.add((headers["topic"], int(headers["partition"]), int(headers["offset"])))
    moved: set[Place] = set()
    for (topic, _), stored in records.items():
        for record in stored:
            origin = dict(record.headers).get("drover-forwarded")
            if origin is not None:
                shard, offset = origin.decode().split(":")
                moved.add((topic, int(shard), int(offset)))
    for index, topic in enumerate(names.commands):
        for shard in range(SHARDS):
            for record in records[topic, shard]:
                place = (topic, shard, record.offset)
                fault = _Faults(verdicts, f"{place}")
                fault.unless(record.offset < verdicts.cursors[shard][index], "no cursor has passed it")
                outcome = verdicts.decided.get(place)
                fault.unless(outcome is not None or place in buried or place in moved, "lost")
                fault.unless(not (outcome is not None and place in moved), "decided here and forwarded as well")
                fault.unless(place not in unwritten or record.value in NO_COMMANDS, "is a command and was given up")
                if outcome is not None:
                    fault.unless(outcome["id"].encode() in record.value, "decided under another id")
                    verdicts.latencies_s.append((outcome["logged_ms"] - record.timestamp) / 1000)


@dataclass
class _Faults:
    verdicts: Verdicts
    where: str

    def unless(self, holds: bool, what: str) -> None:
        if not holds:
            self.verdicts.faults.append(f"{self.where}: {what}")
