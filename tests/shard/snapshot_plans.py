"""Goals of plans, what they have copied, and brokers out of reach; see `tests.shard.snapshot_samples`."""

from msgspec.structs import replace

from drover.events.partitions import TopicPartition
from drover.fold.log import ShardFold
from drover.state.plans import Copied, PlanGoal
from drover.state.scheduling import QueueEntry


def with_goals(fold: ShardFold) -> ShardFold:
    """A plan empties one broker, fills another, has copied something and queued an entry; a broker is unreachable."""
    state = fold.state.cluster("prod")
    plan = next(iter(state.plans))
    state.goals[plan] = PlanGoal((3,), (7,))
    state.copied[plan] = Copied(2, 5_000_000)
    state.queue[TopicPartition("payments", 2)] = QueueEntry(
        "alter-9", plan, (2, 3), 1_790_000_000_996, allow_emptied_brokers=True
    )
    state.unreachable_brokers[6] = 1_790_000_000_997
    return fold


def with_an_unregistered_broker(fold: ShardFold) -> ShardFold:
    """A rollback cannot go back to an unregistered broker, nothing of it is under way, and one is unreachable."""
    state = fold.state.cluster("prod")
    entry = state.reassignments[TopicPartition("orders", 1)]
    state.change(entry, replace(entry, unregistered=(1,), is_settled=True))
    state.unreachable_brokers = {5: 1_790_000_000_996}
    return fold
