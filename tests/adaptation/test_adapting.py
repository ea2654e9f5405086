"""Fewer slots while replicas lag: on the model cluster, as the log and people see it."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from drover.client.views.status_rows import notices
from drover.client.views.waiting_reason import waiting_reason
from drover.events.adaptation import BrokerAllowanceChanged, StartsResumed, StartsSuspended
from drover.events.clusters import LimitValue
from drover.events.commands import ChangeLimits
from drover.events.partitions import TopicPartition
from drover.facts import Survey
from drover.reconcile.adaptation.judgement import LOWER_EVERY_MS, RECOVER_EVERY_MS
from drover.reconcile.adaptation.reconciler import MOST_ASKED, SURVEY_EVERY_MS, SURVEY_SHARE
from drover.reconcile.messages import MAX_AHEAD_MS
from drover.state.broker_directions import BrokerDirection
from drover.state.scheduling import Limits
from tests.shard.world import CLUSTER, World, alter

KEYS = tuple(TopicPartition("orders", number) for number in range(8))
TARGETS: dict[TopicPartition, Sequence[int] | None] = {key: [1, 2, 4] for key in KEYS}
STILL, OTHER = TopicPartition("still", 0), TopicPartition("other", 0)
LOOK_MS = SURVEY_EVERY_MS + 1000
# A replica lags when two looks in a row have found it out of sync.
TWO_LOOKS_MS = 2 * LOOK_MS


def world(min_isr: int = 1, **limits: Any) -> World:
    allowed = Limits(adapts_to_health=True, max_moves_per_broker=4, **limits)
    made = World(brokers=6, limits=allowed, joins_by_itself=False, replica_lag_ms=500)
    configs = {"min.insync.replicas": str(min_isr)}
    made.model.create_topic("orders", {key.partition: (1, 2, 3) for key in KEYS})
    made.model.create_topic("still", {0: (1, 5, 6)}, configs=configs)
    return made


def lag(made: World) -> None:
    """Let broker 5 fall behind although it lives."""
    made.model.stall_broker(5)
    made.model.write(STILL, 1000)


def slow_down(made: World, monkeypatch: pytest.MonkeyPatch, *took_ms: int) -> list[int]:
    """Let the next surveys take so long, one after the other; the list returned is that of their ends (ms)."""
    fast, left, ended_ms = made.driver.survey, iter(took_ms), list[int]()

    async def slow() -> Survey:
        seen = await fast()
        ended_ms.append(seen.ended_ms)
        return replace(seen, started_ms=seen.ended_ms - next(left, 0))

    monkeypatch.setattr(made.driver, "survey", slow)
    return ended_ms


def catch_up(made: World) -> None:
    made.model.unstall_broker(5)
    made.model.join_isr(STILL, 5)


def changes(made: World, kind: type) -> list[Any]:
    return [event for event in made.events() if isinstance(event, kind)]


async def test_a_busy_broker_whose_partition_loses_a_replica_may_do_half_until_it_has_recovered() -> None:
    made = world()
    await made.send(alter({key: [1, 2, 5] for key in KEYS}))
    await made.run(LOOK_MS)
    assert made.state.moves.loads[BrokerDirection(1, "out")] == 4
    lag(made)
    await made.run(LOOK_MS)
    assert changes(made, BrokerAllowanceChanged) == []
    await made.run(LOOK_MS)
    found = [(event.broker, event.halvings) for event in changes(made, BrokerAllowanceChanged)]
    assert found == [(1, 1), (5, 1)]
    assert any("broker 1 may use 1/2 of its slots: replica 5 of still:0" in line for line in notices(made.state))
    for key in list(made.state.moves.in_flight)[:3]:
        made.model.join_isr(key, 5)
    await made.run(2000)
    # What ran went on; nothing began until fewer ran than two.
    assert made.state.moves.loads[BrokerDirection(1, "out")] == 2
    assert "lowered for a time: replica 5 of still:0" in str(waiting_reason(made.state, KEYS[-1]))
    made.crash()
    await made.settle()
    assert made.state.allowances[1].halvings == 1
    catch_up(made)
    await made.run(RECOVER_EVERY_MS + LOWER_EVERY_MS + LOOK_MS)
    assert made.state.allowances == {}
    assert made.state.moves.loads[BrokerDirection(1, "out")] == 4


async def test_no_copy_begins_while_a_partition_has_too_few_in_sync_but_one_that_repairs_it() -> None:
    made = world(min_isr=3, max_replicas_per_step=1)
    await made.send(alter({KEYS[0]: [1, 2, 4]}))
    await made.run(LOOK_MS)
    lag(made)
    await made.run(LOOK_MS)
    (suspended,) = changes(made, StartsSuspended)
    assert (suspended.count, [one.key for one in suspended.partitions]) == (1, [STILL])
    await made.send(alter({KEYS[1]: [1, 2, 4], STILL: [1, 3, 6]}))
    await made.run(2000)
    assert set(made.state.moves.in_flight) == {KEYS[0], STILL}
    assert "1 partition has fewer replicas in sync" in str(waiting_reason(made.state, KEYS[1]))
    assert any("still:0 has fewer replicas in sync than" in line for line in notices(made.state))
    made.model.join_isr(STILL, 3)
    await made.run(LOOK_MS)
    assert len(changes(made, StartsResumed)) == 1
    assert KEYS[1] in made.state.moves.in_flight


async def suspended_twofold() -> World:
    """Return a world in which two partitions have too few in sync, one that is being repaired and one that is not."""
    made = world(min_isr=3, max_replicas_per_step=1)
    made.model.create_topic("other", {0: (2, 3, 5)}, configs={"min.insync.replicas": "3"})
    await made.send(alter({KEYS[0]: [1, 2, 4]}))
    lag(made)
    made.model.write(OTHER, 1000)
    await made.run(LOOK_MS)
    await made.send(alter({OTHER: [2, 3, 6], KEYS[1]: [1, 2, 4]}))
    await made.run(LOOK_MS)
    assert (set(made.state.moves.in_flight), set(made.state.below_min_isr)) == ({KEYS[0], OTHER}, {OTHER, STILL})
    return made


async def test_a_new_owner_ends_no_suspension_before_it_has_seen_for_itself() -> None:
    made = await suspended_twofold()
    told = changes(made, StartsSuspended)
    made.crash()
    await made.run(3 * LOOK_MS)
    assert (changes(made, StartsResumed), changes(made, StartsSuspended)) == ([], told)
    assert set(made.state.moves.in_flight) == {KEYS[0], OTHER}
    made.crash()
    made.model.unstall_broker(5)
    for key in (STILL, OTHER):
        made.model.join_isr(key, 5)
    await made.run(LOOK_MS)
    assert made.state.suspension is None


async def test_a_look_at_some_partitions_ends_nothing_before_a_new_owner_has_looked_at_all() -> None:
    made = await suspended_twofold()
    told = changes(made, StartsSuspended)
    made.crash()
    # Whoever names a partition in a command has it looked at.
    await made.send(alter({OTHER: [2, 3, 4]}))
    await made.run(LOOK_MS)
    assert (changes(made, StartsResumed), changes(made, StartsSuspended)) == ([], told)


def create_others(made: World, count: int) -> None:
    """Create topics that lack one replica and have as many as they need, once broker 6 is dead."""
    for number in range(count):
        made.model.create_topic(f"other-{number:03}", {0: (1, 2, 6)}, configs={"min.insync.replicas": "2"})
    made.model.stop_broker(6)


async def test_a_partition_with_too_few_in_sync_is_seen_among_many_topics_that_lack_a_replica() -> None:
    made = world(min_isr=3)
    create_others(made, MOST_ASKED + 10)
    await made.send(alter({KEYS[0]: [1, 2, 4]}))
    await made.run(LOOK_MS // 2)
    assert changes(made, StartsSuspended) == [], "as many are in sync as elsewhere: its turn comes with the next look"
    await made.run(LOOK_MS)
    (suspended,) = changes(made, StartsSuspended)
    assert (suspended.count, [one.key for one in suspended.partitions]) == (1, [STILL])
    await made.send(alter({KEYS[1]: [1, 2, 4]}))
    await made.run(2000)
    assert set(made.state.moves.in_flight) == {KEYS[0]}


async def test_topics_with_the_fewest_replicas_in_sync_are_asked_for_first() -> None:
    made = world(min_isr=2)
    create_others(made, 3 * MOST_ASKED)
    lag(made)
    await made.run(1000)
    await made.send(alter({KEYS[0]: [1, 2, 4]}))
    await made.run(LOOK_MS // 2)
    (suspended,) = changes(made, StartsSuspended)
    assert [one.key for one in suspended.partitions] == [STILL]


async def test_one_look_that_took_long_does_not_put_the_next_one_off(monkeypatch: pytest.MonkeyPatch) -> None:
    made = world()
    slow_down(made, monkeypatch, 5000)
    lag(made)
    await made.send(alter({key: [1, 2, 5] for key in KEYS}))
    await made.run(TWO_LOOKS_MS)
    assert set(made.state.allowances) == {1, 5}


async def test_looks_that_take_long_each_time_are_made_less_often(monkeypatch: pytest.MonkeyPatch) -> None:
    made = world()
    ended_ms = slow_down(made, monkeypatch, 3000, 2000, 4000)
    await made.send(alter({key: [1, 2, 5] for key in KEYS}))
    await made.run(SURVEY_EVERY_MS + 2 * 2000 * SURVEY_SHARE + LOOK_MS)
    pauses_ms = [after - before for before, after in pairwise(ended_ms)]
    assert pauses_ms[:3] == pytest.approx([SURVEY_EVERY_MS, 2000 * SURVEY_SHARE, 2000 * SURVEY_SHARE], abs=500)


async def test_switched_off_by_a_command_everything_begins_again() -> None:
    made = world(min_isr=3)
    await made.send(alter({KEYS[0]: [1, 2, 4]}))
    lag(made)
    await made.run(TWO_LOOKS_MS)
    await made.send(alter(TARGETS))
    await made.run(1000)
    assert (set(made.state.allowances), made.state.suspension is None) == ({1}, False)
    values: dict[str, LimitValue] = {"adapts_to_health": False}
    await made.send(ChangeLimits(id="off", cluster=CLUSTER, by="ana", reason="known", values=values))
    await made.run(2000)
    assert (made.state.allowances, made.state.suspension) == ({}, None)
    assert len(made.state.moves.in_flight) == 4


async def test_without_the_limit_nobody_looks_and_nothing_changes() -> None:
    made = World(brokers=6, limits=Limits(), joins_by_itself=False, replica_lag_ms=500)
    made.model.create_topic("orders", {key.partition: (1, 2, 3) for key in KEYS})
    made.model.create_topic("still", {0: (1, 5, 6)}, configs={"min.insync.replicas": "3"})
    lag(made)
    await made.send(alter(TARGETS))
    await made.run(LOOK_MS)
    assert not made.core.cluster(CLUSTER).attention(made.now).survey
    assert (made.state.allowances, made.state.suspension) == ({}, None)
    assert len(made.state.moves.in_flight) == 5


async def test_a_move_of_a_topic_with_fewer_replicas_than_its_minimum_suspends_nothing() -> None:
    made = world()
    made.model.create_topic("alone", {0: (1,), 1: (2,)}, configs={"min.insync.replicas": "2"})
    alone = {TopicPartition("alone", number): [4] for number in range(2)}
    await made.send(alter(dict[TopicPartition, Sequence[int] | None](alone)))
    await made.run(TWO_LOOKS_MS)
    assert set(made.state.moves.in_flight) == set(alone)
    assert changes(made, StartsSuspended) == []


async def test_a_broker_that_a_clock_ahead_has_restricted_has_its_slots_back_once_that_is_right() -> None:
    made = world()
    await made.send(alter({key: [1, 2, 5] for key in KEYS}))
    await made.run(LOOK_MS)
    made.clock_ahead_ms = 365 * 86_400_000
    lag(made)
    await made.run(TWO_LOOKS_MS)
    assert made.state.allowances[1].halvings == 1
    made.clock_ahead_ms = 0
    await made.run(MAX_AHEAD_MS + LOOK_MS)
    assert made.state.allowances[1].halvings == 2, "the cause is still there"
    catch_up(made)
    await made.run(2 * (RECOVER_EVERY_MS + LOOK_MS))
    assert made.state.allowances == {}


async def test_a_replica_that_lags_on_an_unreachable_broker_counts_since_that_lives() -> None:
    made = world()
    made.model.create_topic("proof-of-life", {0: (1, 5)})
    made.model.hide_listener(5)
    await made.send(alter({KEYS[0]: [1, 2, 4]}))
    lag(made)
    await made.run(TWO_LOOKS_MS)
    assert set(made.state.allowances) == {1}
