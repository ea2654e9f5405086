"""The clock of a cluster's controller, as DescribeQuorum tells it (KIP-836)."""

import time
from collections.abc import Mapping

from kafka.protocol.admin import DescribeQuorumRequest

from drover.cluster.wire import Connection, Deadline
from drover.facts import NONE

TIMEOUT_MS = 10_000
METADATA_TOPIC = "__cluster_metadata"


async def read_clock_difference(bootstrap: str, client_options: Mapping[str, object]) -> int | None:
    """Return by how many milliseconds the controller's clock is ahead of this machine's, negative if it is behind.

    It is the least that the times before and after the request allow, so that a slow answer looks like no difference.
    None where our user may not describe the cluster. Needs KRaft. Raises `ClusterUnavailableError`.
    """
    connection, deadline = Connection("clock", bootstrap, client_options, TIMEOUT_MS), Deadline.after_ms(TIMEOUT_MS)
    topic = DescribeQuorumRequest.TopicData
    metadata_log = topic(topic_name=METADATA_TOPIC, partitions=[topic.PartitionData(partition_index=0)])
    try:
        before_ms = time.time_ns() // 1_000_000
        answer = await connection.send(DescribeQuorumRequest(topics=[metadata_log]), deadline)
        after_ms = time.time_ns() // 1_000_000
    finally:
        await connection.close()
    if answer.error_code != NONE:
        return None
    (partition,) = answer.topics[0].partitions
    # The leader of the quorum is the controller, and says of itself that it has caught up now.
    now_ms = next(
        (
            voter.last_caught_up_timestamp
            for voter in partition.current_voters
            if voter.replica_id == partition.leader_id
        ),
        None,
    )
    return None if now_ms is None else max(0, now_ms - after_ms) or min(0, now_ms - before_ms)
