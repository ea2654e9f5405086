"""Drover's own topics: how they must be configured, creating them, and the command that corrects one that differs."""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field

from drover.cluster.configs import NOT_AUTHORIZED
from drover.cluster.topics import TopicDescription, TopicSpec, create_topics, describe_topics
from drover.errors import ConfigurationError, LogUnavailableError
from drover.events.codec import UndecodableError, decode_record, encode_record, record_headers
from drover.events.records import SCHEMA_VERSION, Genesis
from drover.events.topics import DEFAULT_SHARDS, TopicNames
from drover.facts import INVALID_REPLICATION_FACTOR
from drover.journal.connection import LogConnection
from drover.journal.kafka import KafkaJournal
from drover.journal.reader import LogReader
from drover.time_limits import time_limit

REPLICATION_FACTOR = 3
TOPIC_ALREADY_EXISTS = 36
WEEK_MS = 7 * 24 * 3600 * 1000
CREATION_TIMEOUT_S = 30.0
_MEGABYTE = 1024 * 1024

_DURABLE: Mapping[str, str] = {
    "cleanup.policy": "delete",
    "min.insync.replicas": "2",
    "retention.bytes": "-1",
    "retention.ms": "-1",
    "unclean.leader.election.enable": "false",
}
# Brokers decompress the batches of clients, so that no codec that workers cannot read, and no batch that expands a
# thousandfold, gets into a topic. A broker refuses records that are too large without compression.
_READABLE: Mapping[str, str] = {"compression.type": "uncompressed"}
# Old snapshots are deleted soon, because no reader needs them; everything in a snapshot is also in the log.
_SNAPSHOTS: Mapping[str, str] = {
    "cleanup.policy": "compact",
    "max.message.bytes": str(8 * _MEGABYTE),
    "min.insync.replicas": "2",
}
_SNAPSHOTS_INITIAL: Mapping[str, str] = {
    "min.cleanable.dirty.ratio": "0.1",
    "segment.bytes": str(64 * _MEGABYTE),
    "unclean.leader.election.enable": "false",
}
# Samples are deleted a week after they were appended, by the brokers' clocks.
_PROGRESS_INITIAL: Mapping[str, str] = {
    "message.timestamp.type": "LogAppendTime",
    "min.insync.replicas": "2",
    "retention.ms": str(WEEK_MS),
}
_DEAD_LETTERS: Mapping[str, str] = {"max.message.bytes": str(_MEGABYTE)}
# Settings that may safely be larger than required.
_AT_LEAST = frozenset({"max.message.bytes", "min.insync.replicas"})


@dataclass(frozen=True, slots=True)
class TopicRule:
    """The rules for a topic; only `required` settings are checked, and operators may change `initial` ones.

    A worker runs without an `optional` topic. The log's own topic, once begun, can be neither enlarged nor replaced.
    """

    name: str
    partitions: int
    required: Mapping[str, str] = field(default_factory=dict)
    initial: Mapping[str, str] = field(default_factory=dict)
    optional: bool = False
    is_log: bool = False

    @property
    def spec(self) -> TopicSpec:
        """The topic to create."""
        return TopicSpec(self.name, self.partitions, REPLICATION_FACTOR, {**self.required, **self.initial})


@dataclass(frozen=True, slots=True)
class Finding:
    """A difference from the rules, and the command that corrects it."""

    topic: str
    detail: str
    remedy: str

    def __str__(self) -> str:
        """Return the finding and its remedy for people."""
        return f"{self.detail}; correct it with\n  {self.remedy}"


@dataclass(frozen=True, slots=True)
class VerifiedTopics:
    """The checked topics; `findings` are about optional topics, which are not used then."""

    shards: int
    command_topic_ids: tuple[str, ...]
    findings: tuple[Finding, ...] = ()

    @property
    def has_snapshots(self) -> bool:
        """Whether snapshots may be read and written: their topic is the only optional one."""
        return not self.findings


def rules(topics: TopicNames, shards: int) -> tuple[TopicRule, ...]:
    """Return the rules for every topic; all but the dead letters have one partition per shard."""
    append_time = {**_DURABLE, **_READABLE, "message.timestamp.type": "LogAppendTime"}
    commands = {**append_time, "max.message.bytes": str(2 * _MEGABYTE)}
    return (
        TopicRule(topics.events, shards, {**append_time, "max.message.bytes": str(8 * _MEGABYTE)}, is_log=True),
        *(TopicRule(name, shards, commands) for name in topics.commands),
        TopicRule(topics.snapshots, shards, _SNAPSHOTS, _SNAPSHOTS_INITIAL, optional=True),
        TopicRule(topics.progress, shards, initial=_PROGRESS_INITIAL),
        TopicRule(topics.dead_letters, 1, _DEAD_LETTERS, {"retention.ms": "-1", "min.insync.replicas": "2"}),
    )


def nothing_told(_: str) -> None:
    """Keep the progress to oneself."""


async def init(
    connection: LogConnection, shards: int = DEFAULT_SHARDS, *, tell: Callable[[str], None] = nothing_told
) -> tuple[str, ...]:
    """Create missing topics, begin every shard of the log, and return the names of the created topics.

    Idempotent: existing topics are left alone (`check` reports on them), and an existing events topic decides the
    number of shards. `tell` hears what is done next. Raises `ConfigurationError`, with the remedy, if Kafka refuses.
    """
    names = connection.topics
    present = await describe_topics(connection.bootstrap, (names.events,), connection.security)
    events = present[names.events]
    if events is not None:
        shards = events.partitions
        if (begun := await _begun_with(connection, shards)) != shards:
            raise ConfigurationError(str(_enlarged(names.events, shards, begun)))
    wanted = rules(names, shards)
    tell(f"Creating {len(wanted)} topics where they are missing ...")
    answers = await create_topics(connection.bootstrap, [rule.spec for rule in wanted], connection.security)
    for name, answer in answers.items():
        if answer.code == INVALID_REPLICATION_FACTOR:
            raise ConfigurationError(
                f"{name} needs {REPLICATION_FACTOR} replicas, and the Kafka at {connection.bootstrap} says: "
                f"{answer.message} Start at least {REPLICATION_FACTOR} brokers, then run `drover log init` again"
            )
        if answer.code not in (0, TOPIC_ALREADY_EXISTS):
            remedy = "; `drover acls` prints the ACLs that are needed" if answer.code in NOT_AUTHORIZED else ""
            why = (answer.message or "").rstrip(".")
            raise ConfigurationError(f"{name} could not be created: Kafka error {answer.code}, {why}{remedy}")
    await _wait_until_shown(connection, tuple(answers))
    tell(f"Beginning {shards} shards of the log ...")
    await _begin_shards(connection, shards)
    return tuple(name for name, answer in answers.items() if answer.code == 0)


async def _wait_until_shown(connection: LogConnection, names: tuple[str, ...]) -> None:
    try:
        async with time_limit(CREATION_TIMEOUT_S):
            while True:
                described = await describe_topics(connection.bootstrap, names, connection.security)
                if None not in described.values():
                    return
                await asyncio.sleep(0.1)
    except TimeoutError as error:
        raise LogUnavailableError("the new topics are not visible yet: run `drover log init` again") from error


async def _begin_shards(connection: LogConnection, shards: int) -> None:
    journal = KafkaJournal(connection, shards, "drover-topics-init")
    try:
        await journal.start()
        for shard, end in enumerate(await journal.ends()):
            if end == 0:
                genesis = Genesis(schema=SCHEMA_VERSION, shards=shards, shard=shard)
                await journal.append(shard, encode_record(genesis), record_headers(genesis))
    finally:
        await journal.close()


async def check(connection: LogConnection) -> tuple[Finding, ...]:
    """Compare every topic with its rules; a worker starts only if all findings are about optional topics."""
    return await _findings(connection, await _describe(connection))


async def verify(connection: LogConnection) -> VerifiedTopics:
    """Check the topics for a worker. Raises `ConfigurationError` for findings about topics that it needs."""
    described = await _describe(connection)
    names = {rule.name for rule in rules(connection.topics, DEFAULT_SHARDS) if rule.optional}
    all_findings = await _findings(connection, described)
    findings = [finding for finding in all_findings if finding.topic not in names]
    events = described[connection.topics.events]
    commands = [described[name] for name in connection.topics.commands]
    if findings or events is None:
        raise ConfigurationError("\n".join(map(str, findings)))
    ids = tuple(topic.topic_id for topic in commands if topic is not None)
    return VerifiedTopics(events.partitions, ids, tuple(finding for finding in all_findings if finding.topic in names))


async def command_topic_ids(connection: LogConnection) -> tuple[str | None, ...]:
    """Return the ids of the command topics in their order, None for a missing one."""
    names = connection.topics.commands
    described = await describe_topics(connection.bootstrap, names, connection.security)
    return tuple(None if topic is None else topic.topic_id for topic in map(described.get, names))


async def _describe(connection: LogConnection) -> Mapping[str, TopicDescription | None]:
    names = [rule.name for rule in rules(connection.topics, DEFAULT_SHARDS)]
    return await describe_topics(connection.bootstrap, names, connection.security)


async def _findings(connection: LogConnection, described: Mapping[str, TopicDescription | None]) -> tuple[Finding, ...]:
    events = described[connection.topics.events]
    shards = DEFAULT_SHARDS if events is None else events.partitions
    findings: list[Finding] = []
    commands = (described[topic] for topic in connection.topics.commands)
    if events is not None and any(topic is not None and topic.partitions != shards for topic in commands):
        # The log's own topic may be the one that was changed.
        shards = await _begun_with(connection, shards)
    for rule in rules(connection.topics, shards):
        description = described[rule.name]
        if description is None:
            findings.append(Finding(rule.name, f"topic {rule.name} does not exist", "drover log init"))
        else:
            findings += _compare(connection.bootstrap, rule, description)
    return tuple(findings)


async def _begun_with(connection: LogConnection, partitions: int) -> int:
    """Return the number of shards with which the log was begun; if it does not say, that of its partitions."""
    async with LogReader(connection) as reader, aclosing(reader.read(connection.topics.events, {0: 0})) as reading:
        async for records in reading:
            try:
                first = decode_record(records[0].payload)
            except UndecodableError:
                break
            return first.shards if isinstance(first, Genesis) else partitions
    return partitions


def _enlarged(name: str, partitions: int, begun: int) -> Finding:
    detail = (
        f"topic {name} has {partitions} partitions, but the log was begun with {begun} shards, which is fixed for ever"
    )
    return Finding(name, f"{detail}: start a new log", "DROVER_LOG__PREFIX=ANOTHER drover log init")


def _compare(bootstrap: str, rule: TopicRule, description: TopicDescription) -> list[Finding]:
    findings: list[Finding] = []
    if description.partitions != rule.partitions:
        findings.append(_partitions_finding(bootstrap, rule, description.partitions))
    if rule.required and description.replication_factor < REPLICATION_FACTOR:
        findings.append(
            Finding(
                rule.name,
                f"topic {rule.name} has {description.replication_factor} replicas instead of {REPLICATION_FACTOR}",
                f"kafka-reassign-partitions --bootstrap-server {bootstrap} --reassignment-json-file FILE --execute",
            )
        )
    for key, value in rule.required.items():
        actual = description.configs.get(key)
        if not _satisfies(key, actual, value):
            findings.append(
                Finding(
                    rule.name,
                    f"topic {rule.name} has {key}={actual} instead of {value}",
                    f"kafka-configs --bootstrap-server {bootstrap} --alter --entity-type topics "
                    f"--entity-name {rule.name} --add-config {key}={value}",
                )
            )
    return findings


def _partitions_finding(bootstrap: str, rule: TopicRule, partitions: int) -> Finding:
    detail = f"topic {rule.name} has {partitions} partitions instead of {rule.partitions}, one per shard"
    kafka_topics = f"kafka-topics --bootstrap-server {bootstrap} --topic {rule.name}"
    if rule.is_log:
        return _enlarged(rule.name, partitions, rule.partitions)
    if partitions < rule.partitions:
        return Finding(rule.name, detail, f"{kafka_topics} --alter --partitions {rule.partitions}")
    return Finding(rule.name, detail, f"{kafka_topics} --delete && drover log init")


def _satisfies(key: str, actual: str | None, wanted: str) -> bool:
    if actual is None:
        return False
    return int(actual) >= int(wanted) if key in _AT_LEAST else actual == wanted
