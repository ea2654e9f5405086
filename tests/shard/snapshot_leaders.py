"""Leaders in the samples of snapshots; see `tests.shard.snapshot_samples`."""

from msgspec.structs import replace

from drover.events.leadership import LeaderWaitReason
from drover.events.partitions import TopicPartition
from drover.fold.log import ShardFold
from drover.state.leaders import Balance, Election, IntendedOrder, KeptOrder, LeaderTally, LeaderWait, Listing
from drover.state.scheduling import Limits


def with_leaders(fold: ShardFold) -> ShardFold:
    """Brokers should not lead: one limited listing, one reordered list, one that waits, one election, a balance."""
    state = fold.state.cluster("prod")
    at_ms = 1_790_000_000_960
    state.limits = Limits(
        100, 4, 2, repairs_by_itself=True, max_leader_movements=50, lazy_leadership=True, balances_after_return=True
    )
    state.listings = {
        1: Listing("ann", "slow disk", at_ms),
        4: Listing("bob", "hot", at_ms, topics=("orders",), until_ms=1_790_000_060_000),
    }
    state.orders = {
        TopicPartition("payments", 0): KeptOrder("AAAAAAAAAAAAAAAAAAAAAw", (1, 2, 3), (2, 3, 1), at_ms),
        TopicPartition("payments", 1): KeptOrder(
            "AAAAAAAAAAAAAAAAAAAAAw", (1, 2, 3), (3, 1, 2), at_ms, left_alone=True
        ),
    }
    state.waiting[TopicPartition("payments", 2)] = LeaderWait(LeaderWaitReason.NO_IN_SYNC_REPLICA, "none", at_ms)
    state.elections[TopicPartition("payments", 3)] = Election("AAAAAAAAAAAAAAAAAAAAAw", (2, 3, 1), 1, at_ms)
    state.balance = Balance("ann", "after a restart", at_ms, topics=("orders",), elected=3)
    state.leader_counts = {1: LeaderTally(7, 9, at_ms)}
    state.rebuild_indexes()
    return fold


def with_intended_orders(fold: ShardFold) -> ShardFold:
    """Two lists are being reordered, of one of which the first is to be elected; of a third a late call may come."""
    state = fold.state.cluster("prod")
    at_ms, topic_id = 1_790_000_001_200, "AAAAAAAAAAAAAAAAAAAAAw"
    state.intended_orders = {
        TopicPartition("payments", 4): IntendedOrder(topic_id, (1, 2, 3), (2, 3, 1), at_ms, elects=True, leader=1),
        TopicPartition("payments", 5): IntendedOrder(topic_id, (2, 1, 3), (2, 3, 1), at_ms),
    }
    known = state.orders[TopicPartition("payments", 0)]
    state.orders[TopicPartition("payments", 0)] = replace(known, unresolved=(3, 2, 1))
    return fold


def with_a_listing_until_in_sync(fold: ShardFold) -> ShardFold:
    """One broker leaves the list once its replicas are in sync."""
    state = fold.state.cluster("prod")
    state.listings = {**state.listings, 4: Listing("bob", "it was away", 1_790_000_001_300, until_in_sync=True)}
    state.rebuild_indexes()
    return fold
