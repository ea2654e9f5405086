"""Describe and create topics on the Kafka that holds the log; the callers know their names and settings."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from kafka.protocol.admin import CreateTopicsRequest

from drover.cluster import configs, messages
from drover.cluster.wire import Connection, Deadline
from drover.errors import ClusterAccessError, ClusterUnavailableError, OutcomeUnknownError
from drover.facts import NONE, UNKNOWN_SERVER_ERROR, UNKNOWN_TOPIC_OR_PARTITION, CallResult

TOPIC_ALREADY_EXISTS = 36
TIMEOUT_MS = 10_000


@dataclass(frozen=True, slots=True)
class TopicDescription:
    """A topic as its Kafka shows it.

    `replication_factor` is the smallest among its partitions; `configs` are the effective values, defaults included.
    """

    topic_id: str
    partitions: int
    replication_factor: int
    configs: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class TopicSpec:
    """A topic to create; `configs` are set on the topic itself.

    `assignments` holds the replicas of each partition by number; without it, Kafka chooses them.
    """

    name: str
    partitions: int
    replication_factor: int
    configs: Mapping[str, str] = field(default_factory=dict)
    assignments: Mapping[int, tuple[int, ...]] = field(default_factory=dict)


async def describe_topics(
    bootstrap: str,
    names: Collection[str],
    client_options: Mapping[str, object] | None = None,
    timeout_ms: int = TIMEOUT_MS,
) -> dict[str, TopicDescription | None]:
    """Describe topics by name; None for one that does not exist.

    Raises:
        ClusterAccessError: an ACL is missing.
        ClusterUnavailableError: no answer in time, or Kafka refuses to describe a topic.
    """
    connection, deadline = (
        Connection("topics", bootstrap, client_options or {}, timeout_ms),
        Deadline.after_ms(timeout_ms),
    )
    try:
        metadata = messages.read_metadata(await connection.send(messages.metadata_request(names), deadline))
        existing = [name for name, topic in metadata.topics.items() if topic.code == NONE]
        described = await configs.topic_configs(connection, existing, None, deadline)
    finally:
        await connection.close()
    descriptions: dict[str, TopicDescription | None] = {}
    for name in names:
        topic = metadata.topics[name]
        if topic.code in configs.NOT_AUTHORIZED:
            raise ClusterAccessError(
                f"Drover may not see topic {name} at {bootstrap}: Kafka error {topic.code}; "
                "`drover acls` prints the ACLs that are needed"
            )
        if topic.code not in (NONE, UNKNOWN_TOPIC_OR_PARTITION):
            raise ClusterUnavailableError(f"topic {name} at {bootstrap} cannot be described: Kafka error {topic.code}")
        gone = name not in described
        descriptions[name] = (
            None
            if gone
            else TopicDescription(
                topic_id=topic.topic_id,
                partitions=len(topic.partitions),
                replication_factor=min(len(facts.replicas) for facts in topic.partitions.values()),
                configs=described[name].effective,
            )
        )
    return descriptions


async def create_topics(
    bootstrap: str,
    specs: Sequence[TopicSpec],
    client_options: Mapping[str, object] | None = None,
    timeout_ms: int = TIMEOUT_MS,
) -> dict[str, CallResult]:
    """Create topics and return Kafka's answer for each; code 36 (TOPIC_ALREADY_EXISTS) is that of an existing topic.

    Idempotent. Brokers may not show the topics at once; describe them until they do.

    Raises:
        ClusterUnavailableError: no topic was created.
        OutcomeUnknownError: topics may have been created; describe them or create them again.
    """
    if not specs:
        return {}
    connection, deadline = (
        Connection("topics", bootstrap, client_options or {}, timeout_ms),
        Deadline.after_ms(timeout_ms),
    )
    request = CreateTopicsRequest(
        topics=[
            CreateTopicsRequest.CreatableTopic(
                name=spec.name,
                # Kafka requires -1 for both if the replicas are given.
                num_partitions=-1 if spec.assignments else spec.partitions,
                replication_factor=-1 if spec.assignments else spec.replication_factor,
                assignments=sorted(spec.assignments.items()),
                configs=sorted(spec.configs.items()),
            )
            for spec in specs
        ],
        timeout_ms=timeout_ms,
        validate_only=False,
    )
    try:
        response = await connection.send(request, deadline, changes=True)
    finally:
        await connection.close()
    answers = {topic.name: CallResult(topic.error_code, topic.error_message or None) for topic in response.topics}
    results = {
        spec.name: answers.get(spec.name, CallResult(UNKNOWN_SERVER_ERROR, "not in Kafka's answer")) for spec in specs
    }
    for name, result in results.items():
        if result.code in configs.OUTCOME_UNKNOWN_CODES:
            raise OutcomeUnknownError(
                f"creating topic {name} at {bootstrap}: Kafka error {result.code} ({result.message}); describe it"
            )
    return results
