"""Slots weighed by bytes: a copy of next to nothing takes next to nothing of one, within bounds."""

from collections.abc import Sequence
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drover.client.views.waiting_reason import waiting_reason
from drover.events.partitions import TopicPartition
from drover.events.reassignments import CallIntended
from drover.reconcile.starts import start_pace
from drover.reconcile.starts.start_pace import MOST_STARTS, WINDOW_MS, StartPace
from drover.state.broker_directions import BrokerDirection
from drover.state.scheduling import Limits
from drover.state.slot_share import LEAST_SHARE, WHOLE_SLOT, WHOLE_SLOT_BYTES, share_of
from tests.shard.world import World, alter

COUNT = 40
KEYS = tuple(TopicPartition("orders", number) for number in range(COUNT))
TARGETS: dict[TopicPartition, Sequence[int] | None] = {key: [1, 2, 4] for key in KEYS}


def world(size: int, **limits: Any) -> World:
    made = World(brokers=6, limits=Limits(**limits), joins_by_itself=False)
    made.model.create_topic("orders", {key.partition: (1, 2, 3) for key in KEYS}, partition_bytes=size)
    return made


async def sized(made: World, targets: dict[TopicPartition, Sequence[int] | None]) -> None:
    """Send it to a frozen cluster, so that all sizes are known when the first begins."""
    await made.freeze()
    await made.send(alter(targets))
    await made.measure()
    await made.unfreeze()
    await made.run(2000)


@pytest.mark.parametrize(
    ("size", "share"),
    [(0, 1), (65_536, 1), (65_537, 2), (262_144, 4), (524_288, 8), (524_289, 16), (10**12, 16), (None, 16)],
)
def test_the_share_grows_with_the_size_and_a_copy_of_unknown_size_takes_a_whole_slot(
    size: int | None, share: int
) -> None:
    assert share_of(size) == share


@given(st.lists(st.integers(0, 2 * WHOLE_SLOT_BYTES), max_size=60))
def test_what_shares_slots_is_no_more_bytes_than_as_many_whole_copies(sizes: list[int]) -> None:
    light = [size for size in sizes if size <= WHOLE_SLOT_BYTES]
    slots = sum(share_of(size) for size in light) / WHOLE_SLOT
    assert sum(light) <= slots * WHOLE_SLOT_BYTES
    assert all(LEAST_SHARE <= share_of(size) <= WHOLE_SLOT for size in sizes)


async def test_sixteen_empty_partitions_share_a_slot_and_no_more() -> None:
    made = world(0, max_moves_per_broker=2)
    await sized(made, TARGETS)
    assert made.state.moves.loads == {BrokerDirection(1, "out"): 32, BrokerDirection(4, "in"): 32}
    assert made.state.moves.slots == {BrokerDirection(1, "out"): 32, BrokerDirection(4, "in"): 32}
    assert "slots of broker 4 (32 copies in take 2.0 of 2 slots)" in str(waiting_reason(made.state, KEYS[-1]))


async def test_copies_of_normal_size_take_whole_slots_as_ever() -> None:
    made = world(10 * WHOLE_SLOT_BYTES, max_moves_per_broker=2)
    await sized(made, TARGETS)
    assert made.state.moves.loads == {BrokerDirection(1, "out"): 2, BrokerDirection(4, "in"): 2}
    assert "slots of broker 4 (2 of 2 copies in)" in str(waiting_reason(made.state, KEYS[-1]))


async def test_copies_whose_size_nobody_knows_yet_take_whole_slots() -> None:
    made = world(0, max_moves_per_broker=2)
    await made.send(alter(TARGETS))
    await made.run(1000)
    assert made.state.moves.loads[BrokerDirection(4, "in")] == 2


async def test_what_waits_without_a_size_begins_as_soon_as_it_is_known_to_be_small() -> None:
    made = world(0, max_moves_per_broker=2)
    await made.send(alter(TARGETS))
    await made.run(1000)
    await made.measure()
    await made.run(2000)
    # One of those that began as whole copies takes its slot until it ends, the other one too.
    assert made.state.moves.slots[BrokerDirection(4, "in")] == 2 * WHOLE_SLOT
    made.model.join_isr(next(iter(made.state.moves.in_flight)), 4)
    await made.run(2000)
    assert made.state.moves.loads[BrokerDirection(4, "in")] == 1 + 16
    assert made.state.moves.slots[BrokerDirection(4, "in")] == 2 * WHOLE_SLOT


async def test_a_large_copy_begins_beside_small_ones_only_when_a_whole_slot_is_free() -> None:
    made = world(0, max_moves_per_broker=1)
    made.model.create_topic("large", {0: (1, 2, 3)}, partition_bytes=10 * WHOLE_SLOT_BYTES)
    large = TopicPartition("large", 0)
    await sized(made, {KEYS[0]: [1, 2, 4], KEYS[1]: [1, 2, 4]})
    await made.send(alter({large: [1, 2, 4]}))
    await made.measure()
    await made.run(2000)
    assert set(made.state.moves.in_flight) == set(KEYS[:2])
    for key in KEYS[:2]:
        made.model.join_isr(key, 4)
    await made.run(2000)
    assert set(made.state.moves.in_flight) == {large}


async def test_each_copy_of_a_step_takes_its_share() -> None:
    made = world(0, max_moves_per_broker=1, max_replicas_per_step=3)
    await sized(made, {key: [4, 5, 6] for key in KEYS})
    # Three copies leave broker 1 for each: five steps take fifteen sixteenths, and a sixth would be too much.
    assert made.state.moves.slots[BrokerDirection(1, "out")] == 15
    assert len(made.state.moves.in_flight) == 5


async def test_a_successor_counts_the_same_shares() -> None:
    made = world(WHOLE_SLOT_BYTES // 4, max_moves_per_broker=2)
    await sized(made, TARGETS)
    before = dict(made.state.moves.slots)
    assert before == {BrokerDirection(1, "out"): 32, BrokerDirection(4, "in"): 32}
    made.crash()
    await made.settle()
    assert made.state.moves.slots == before


@given(st.lists(st.tuples(st.integers(0, 700), st.integers(0, 1200)), max_size=40))
def test_no_second_has_more_starts_than_the_bound(wanted: list[tuple[int, int]]) -> None:
    pace, now_ms, begun = StartPace(), 0, list[tuple[int, int]]()
    for pause_ms, count in wanted:
        now_ms += pause_ms
        allowed = min(count, pace.room(now_ms))
        pace.begin(allowed, now_ms)
        begun.append((now_ms, allowed))
        assert sum(found for at_ms, found in begun if at_ms > now_ms - WINDOW_MS) <= MOST_STARTS
        due_ms = pace.due_ms(now_ms)
        assert due_ms is None or (due_ms > now_ms and deepcopy(pace).room(due_ms) > 0)


async def test_what_the_bound_holds_back_begins_when_the_second_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(start_pace, "MOST_STARTS", 3)
    made = world(0)
    began_ms = made.now.monotonic_ms
    await sized(made, TARGETS)
    steps = [batch.at_ms for batch in made.batches() for event in batch.events if isinstance(event, CallIntended)]
    assert made.now.monotonic_ms - began_ms == 2 * WINDOW_MS
    assert len(steps) == 6
    assert made.core.wake_at_ms(made.now) is not None
    await made.run(2 * WINDOW_MS)
    assert len(made.state.moves.in_flight) == 12
