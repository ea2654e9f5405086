"""The throttle of the cluster, for plans without one of their own, changed while moves run."""

from typing import Any

import pytest

from drover.cluster.throttle_lists import parse_rates, parse_throttled
from drover.events.commands import Throttle
from drover.events.partitions import TopicPartition
from drover.events.plans import ClusterThrottleSet, PlanThrottleCleared, PlanThrottleSet
from drover.state.phase import Phase
from tests.shard.sound import sound
from tests.shard.world import CLUSTER, World, alter, rollback

KEY, OTHER = TopicPartition("orders", 0), TopicPartition("orders", 1)


def throttle(name: str, **fields: Any) -> Throttle:
    return Throttle(id=name, cluster=CLUSTER, by="ana", reason="working hours", **fields)


def rates(made: World) -> dict[int, int | None]:
    return {it: parse_rates(known.configs).follower_bytes_per_second for it, known in made.model.brokers.items()}


@pytest.fixture
def made() -> World:
    world = World(brokers=5, copy_bytes_per_second=200_000)
    world.model.create_topic("orders", {0: [1, 2, 3], 1: [1, 2, 3]}, partition_bytes=10_000_000)
    return world


async def test_a_plan_without_a_throttle_takes_the_clusters_while_it_runs(made: World) -> None:
    await made.send(alter({KEY: [4, 2, 3]}, plan="bare"))
    await made.run(1000)
    assert made.reassignment(KEY).phase is Phase.COPYING
    assert set(rates(made).values()) == {None}
    outcome = await made.send(throttle("t-1", bytes_per_second=50_000))
    assert outcome.remarks == (
        f"plans of {CLUSTER} without a throttle of their own are throttled to 50,000 bytes per second per broker",
    )
    await made.run(1000)
    assert rates(made) == {1: 50_000, 2: 50_000, 3: 50_000, 4: 50_000, 5: None}
    assert parse_throttled(made.model.topics["orders"].configs).follower == ("0:4",)
    await made.send(throttle("t-2", bytes_per_second=80_000))
    await made.run(1000)
    assert rates(made)[4] == 80_000
    await made.send(throttle("t-3", clear=True))
    await made.run(1000)
    assert set(rates(made).values()) == {None}
    assert made.state.cluster_throttle is None
    assert made.reassignment(KEY).phase is Phase.COPYING
    await made.finish(120_000)
    sound(made)


async def test_a_step_of_a_plan_without_a_throttle_starts_behind_the_clusters(made: World) -> None:
    await made.send(throttle("t-1", bytes_per_second=50_000))
    await made.send(alter({KEY: [4, 2, 3]}, plan="bare"))
    await made.run(1000)
    story = made.tags(KEY)
    assert story[:2] == ["reassignment-created", "step-prepared"]
    assert rates(made)[4] == 50_000
    await made.send(rollback(KEY))
    await made.finish(120_000)
    assert set(rates(made).values()) == {None}


async def test_a_plan_keeps_its_own_until_it_is_cleared(made: World) -> None:
    await made.send(throttle("t-1", bytes_per_second=50_000))
    await made.send(alter({KEY: [4, 2, 3]}, plan="own", throttle_bytes_per_second=90_000))
    await made.run(1000)
    assert rates(made)[4] == 90_000
    outcome = await made.send(throttle("t-2", bytes_per_second=60_000))
    assert outcome.remarks[1:] == ("plans under way with a throttle of their own: 1 (`drover throttle set PLAN none`)",)
    await made.run(1000)
    assert rates(made)[4] == 90_000
    outcome = await made.send(throttle("t-3", plan="own", clear=True))
    assert outcome.remarks == ("plan own has no throttle of its own, the cluster's holds: 60,000",)
    await made.run(1000)
    assert rates(made)[4] == 60_000
    events = [event for event in made.events() if isinstance(event, PlanThrottleSet | PlanThrottleCleared)]
    assert [type(event) for event in events] == [PlanThrottleSet, PlanThrottleCleared]


async def test_a_step_that_waits_for_its_throttle_starts_when_the_throttle_is_taken_away(made: World) -> None:
    await made.send(throttle("t-1", bytes_per_second=50_000))
    made.hold_effects = True
    await made.send(alter({KEY: [4, 2, 3]}, plan="bare"))
    await made.run(500)
    assert made.reassignment(KEY).phase is Phase.PREPARED
    await made.send(throttle("t-2", clear=True))
    made.hold_effects = False
    await made.release_effects()
    await made.run(1000)
    assert made.reassignment(KEY).phase is Phase.COPYING
    await made.finish(120_000)
    assert set(rates(made).values()) == {None}


async def test_a_throttle_that_is_taken_away_while_its_write_is_under_way_holds_nothing_up(made: World) -> None:
    """Simulation seed 81091369: nothing needed its topic's entries any more, and its brokers' rates stayed."""
    other = TopicPartition("payments", 0)
    made.model.create_topic("payments", {0: [1, 2, 3]}, partition_bytes=10_000_000)
    await made.send(alter({KEY: [4, 2, 3]}, plan="first", throttle_bytes_per_second=50_000))
    await made.run(1000)
    made.hold_effects = True
    await made.send(alter({other: [4, 2, 3]}, plan="second", throttle_bytes_per_second=50_000))
    while other.topic not in made.state.topic_throttles:
        await made.release_effects()
        made.model.advance(100)
        await made.look()
        await made.turn()
    assert made.reassignment(other).phase is Phase.PREPARED
    await made.send(throttle("t-1", plan="second", clear=True))
    made.hold_effects = False
    await made.release_effects()
    await made.run(1000)
    assert made.reassignment(other).phase is Phase.COPYING


async def test_what_changes_nothing_is_said_and_not_recorded(made: World) -> None:
    await made.send(throttle("t-1", bytes_per_second=50_000))
    outcome = await made.send(throttle("t-2", bytes_per_second=50_000))
    assert outcome.remarks[0].endswith("as before")
    assert sum(isinstance(event, ClusterThrottleSet) for event in made.events()) == 1


async def test_a_successor_knows_it(made: World) -> None:
    await made.send(throttle("t-1", bytes_per_second=50_000))
    made.crash()
    await made.send(alter({OTHER: [4, 2, 3]}))
    await made.run(1000)
    assert rates(made)[4] == 50_000


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"clear": True, "bytes_per_second": 5},
        {"bytes_per_second": 5, "may_rise_to": 10},
        {"plan": "p", "bytes_per_second": 5, "may_rise_to": 4},
        {"plan": "p", "clear": True, "may_rise_to": 4},
    ],
)
def test_a_command_that_says_nothing_or_two_things_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"exactly one|belongs to a plan|needs a throttle"):
        throttle("t-1", **fields)
