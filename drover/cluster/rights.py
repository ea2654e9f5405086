"""What our user may do at a Kafka, as the brokers themselves say (KIP-430): nothing is tried."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from kafka.protocol.admin import DescribeClusterRequest, DescribeGroupsRequest
from kafka.protocol.metadata import FindCoordinatorRequest, MetadataRequest

from drover.cluster.acls import CLUSTER_NAME, Operation, Resource
from drover.cluster.wire import Connection, Deadline
from drover.facts import NONE, UNKNOWN_TOPIC_OR_PARTITION

TIMEOUT_MS = 10_000
GROUP_KEY = 0
GROUP_AUTHORIZATION_FAILED = 30
_OPERATIONS = {int(operation): operation for operation in Operation}


@dataclass(frozen=True, slots=True)
class Rights:
    """The operations that are allowed, by kind and name of a resource; one that was not asked for is not in it."""

    operations: Mapping[tuple[Resource, str], frozenset[Operation]]

    def names(self, resource: Resource) -> list[str]:
        """Return the names of the resources of one kind."""
        return sorted(name for kind, name in self.operations if kind is resource)


async def read_rights(
    bootstrap: str, client_options: Mapping[str, object], topics: Collection[str] | None, group: str | None = None
) -> Rights:
    """Ask what our user may do with the cluster, with these topics (None: all that it sees) and with a group.

    Raises `ClusterUnavailableError`.
    """
    connection, deadline = Connection("rights", bootstrap, client_options, TIMEOUT_MS), Deadline.after_ms(TIMEOUT_MS)
    try:
        described = await connection.send(DescribeClusterRequest(include_cluster_authorized_operations=True), deadline)
        allowed = {(Resource.CLUSTER, CLUSTER_NAME): _operations(described.authorized_operations)}
        metadata = await connection.send(_topics_request(topics), deadline)
        allowed |= {
            (Resource.TOPIC, topic.name): _operations(topic.authorized_operations)
            if topic.error_code in {NONE, UNKNOWN_TOPIC_OR_PARTITION}
            else frozenset()
            for topic in metadata.topics
        }
        of_group = None if group is None else await _of_group(connection, group, deadline)
        if group is not None and of_group is not None:
            allowed[Resource.GROUP, group] = of_group
    finally:
        await connection.close()
    return Rights(allowed)


def _topics_request(topics: Collection[str] | None) -> Any:
    named = None
    if topics is not None:
        named = [MetadataRequest.MetadataRequestTopic(name=name) for name in sorted(set(topics))]
    return MetadataRequest(topics=named, allow_auto_topic_creation=False, include_topic_authorized_operations=True)


async def _of_group(connection: Connection, group: str, deadline: Deadline) -> frozenset[Operation] | None:
    """Ask the group's coordinator, which alone knows; None for a group that does not exist yet."""
    answer = await connection.send(
        FindCoordinatorRequest(key=group, key_type=GROUP_KEY, coordinator_keys=[group]), deadline
    )
    coordinator = answer.coordinators[0] if answer.coordinators else answer
    if coordinator.error_code == GROUP_AUTHORIZATION_FAILED:
        return frozenset()
    if coordinator.error_code != NONE:
        return None
    request = DescribeGroupsRequest(groups=[group], include_authorized_operations=True)
    (described,) = (await connection.send(request, deadline, broker=coordinator.node_id)).groups
    # Of a group that has no member yet nothing is said.
    return _operations(described.authorized_operations) if described.error_code == NONE else None


def _operations(codes: Collection[int]) -> frozenset[Operation]:
    return frozenset(_OPERATIONS[code] for code in codes if code in _OPERATIONS)
