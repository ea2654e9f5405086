"""From the time at which a partition leaves Kafka's list of reassignments to its completed event.

200 partitions with 64 KiB to 1.25 MiB of data get a third replica, all in flight at the same time under a throttle that
spreads their ends over about 20 s. An observer with connections of its own polls Kafka's list every 20 ms. The lag is
the time of the log record with the `reassignment-completed` event minus the arrival of the last answer that still
listed the partition, so it is overstated by up to one poll.
"""

from bench.results import AtMost, Benchmark, Row, check, percentile
from bench.rig import EVEN_COPYING, MANAGED, RECORD_BYTES, drover_on, fresh_cluster, moves_watched
from drover.events.partitions import TopicPartition
from drover.events.reassignments import ReassignmentCompleted
from drover.events.topics import DEFAULT_SHARDS, shard_of
from drover.state.scheduling import Limits

TOPIC = "orders"
PLAN = "all-at-once"
SHARD = shard_of(MANAGED, DEFAULT_SHARDS)
LARGEST_RECORDS = 20


async def run(*, quick: bool) -> tuple[Row, ...]:
    """Copy partitions of many sizes at the same time, so that they end one after the other."""
    partitions, seconds = (48, 5) if quick else (200, 20)
    layout = {number: (1 + number % 4, 1 + (number + 1) % 4) for number in range(partitions)}
    records = {number: 1 + number // 4 * LARGEST_RECORDS // (partitions // 4) for number in layout}
    throttle = sum(records.values()) * RECORD_BYTES // 4 // seconds
    targets = {TopicPartition(TOPIC, number): (*replicas, 1 + (number + 2) % 4) for number, replicas in layout.items()}
    async with (
        fresh_cluster(EVEN_COPYING) as cluster,
        drover_on(cluster, "completion", limits=Limits(max_moves_per_broker=1000)) as (rig, tail),
    ):
        await rig.create_topic(TOPIC, layout)
        await rig.fill(TOPIC, records)
        await rig.start_worker("worker")
        await tail.until(lambda: tail.owners == {"worker"}, "the worker owns every shard")
        file = rig.write_plan(PLAN, targets)
        async with moves_watched(rig.driver) as watched:
            await rig.drover("alter", str(file), "--plan", PLAN, "--throttle", str(throttle), "--reason", "benchmark")
            state = tail.cluster(SHARD, MANAGED)
            await tail.until(lambda: PLAN in state.plans and not state.reassignments, "the plan to end", 20 * seconds)
        completed_ms = {
            event.key: seen.valid.batch.at_ms
            for seen in tail.seen
            for event in seen.valid.batch.events
            if isinstance(event, ReassignmentCompleted)
        }
    check(completed_ms.keys() == targets.keys(), "not every partition was completed")
    listed = completed_ms.keys() & watched.left_ms.keys()
    check(len(listed) >= 0.9 * partitions, f"only {len(listed)} of {partitions} were seen on Kafka's list")
    lags_ms = [completed_ms[key] - watched.left_ms[key] for key in listed]
    name = f"off Kafka's list to completed event, {partitions} in flight"
    return (Row(f"{name}, p50", percentile(lags_ms, 50), "ms", goal=AtMost(250)),)


BENCHMARK = Benchmark("completion", run)
