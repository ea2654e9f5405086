"""Heals in the samples of snapshots; see `tests.shard.snapshot_samples`."""

import msgspec

from drover.events.healing import BrakeReason, HealAssignment, HealChoice, HealingLimits, LeftPartition, LeftReason
from drover.events.partitions import TopicPartition
from drover.fold.log import ShardFold
from drover.state.healing import Absence, Brake, Heal, HealChunk, HealedBroker, LeftBehind, RunningChunk


def with_a_heal(fold: ShardFold) -> ShardFold:
    """A broker is away, a chunk of its heal is under way, and another waits."""
    state, at_ms = fold.state.cluster("prod"), 1_790_000_000_960
    state.limits = msgspec.structs.replace(
        state.limits, healing=HealingLimits(60_000, 30_000, 5, 2, 10, 1_000_000, 4, 7_200_000, True, 50_000)
    )
    state.absent_brokers[3] = Absence(at_ms, seen=True, is_alarmed=True, choice=HealChoice.START)
    state.absent_brokers[9] = Absence(at_ms)
    state.recent_returns[3] = (at_ms - 2, at_ms - 1)
    state.emptied_brokers[8] = at_ms
    state.healing_brakes["flapping:9"] = Brake(BrakeReason.FLAPPING, "it came back 4 times", at_ms, 9)
    state.heal = Heal("drover-heal-7", (3,), 4, 17, 900_000, at_ms, 4, 5, 1, 2, 3)
    assignment = HealAssignment("logs", 1, "AAAAAAAAAAAAAAAAAAAAAw", (1, 2, 3), (1, 2, 5), 1000)
    state.heal_chunks[4] = HealChunk("drover-heal-7", 4, (assignment,))
    state.heal_running = RunningChunk(
        "drover-heal-7", 3, 4, "drover-heal-7-3", (3,), (TopicPartition("logs", 0),), at_ms, is_taken_back=True
    )
    state.heal_left = LeftBehind(1, (LeftPartition("logs", 2, LeftReason.NO_LEADER, "it has no leader"),))
    state.heal_bytes[at_ms // 3_600_000] = 700_000
    state.heals_planned = 7
    return fold


def with_a_superseded_heal(fold: ShardFold) -> ShardFold:
    """A partition of the running chunk has given way to another target."""
    fold.state.cluster("prod").heal_superseded[TopicPartition("logs", 0)] = (1, 2, 6)
    return fold


def with_brokers(fold: ShardFold) -> ShardFold:
    """One broker was healed and is still away, another one lives and cannot be reached."""
    state = fold.state.cluster("prod")
    state.healed_brokers[8] = HealedBroker(1_790_000_000_961, "drover-heal-6", 21)
    state.unreachable_brokers[7] = 1_790_000_000_962
    return fold
