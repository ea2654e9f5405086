"""Limits that commands change while moves run: who, why, from when on, and what the settings still say."""

from typing import Any

import pytest

from drover.client.views.limit_rows import limit_rows
from drover.client.views.status_rows import notices
from drover.events.clusters import Budgets, LimitChange, LimitsChanged, LimitsSet
from drover.events.commands import ChangeLimits
from drover.events.healing import HealingLimits
from drover.events.partitions import TopicPartition
from drover.events.plans import Stepping
from drover.events.records import Outcome
from drover.events.refusals import RefusalCode
from drover.fold.evolve import apply
from drover.state.cluster import ClusterState
from drover.state.hashing import state_hash
from drover.state.limit_names import KNOWN, MOST_RETURNS, Unit, find, of_settings, value_of, with_values
from drover.state.phase import Phase
from drover.state.scheduling import Limits
from tests.shard.world import CLUSTER, World, alter

KEYS = tuple(TopicPartition("orders", number) for number in range(6))


def world(limits: Limits | None = None) -> World:
    made = World(brokers=6, limits=limits, joins_by_itself=False)
    made.model.create_topic("orders", {key.partition: (1, 2, 3) for key in KEYS})
    return made


async def change(made: World, id_: str = "l", **fields: Any) -> Outcome:
    return await made.send(ChangeLimits(id=id_, cluster=CLUSTER, by="ann", reason="a quiet night", **fields))


async def seen(made: World) -> World:
    """Let the cluster be looked at, so that the log knows its settings."""
    await made.look()
    await made.settle()
    return made


def running(made: World) -> int:
    return len(made.state.moves.in_flight)


async def test_a_limit_that_is_raised_lets_more_start_at_once_and_the_log_says_who_and_why() -> None:
    made = world(Limits(max_partitions_in_flight=1))
    await made.send(alter({key: [4, 2, 3] for key in KEYS}))
    await made.run(300)
    assert running(made) == 1
    outcome = await change(made, values={"max_partitions_in_flight": 3})
    assert outcome.remarks == ("max_partitions_in_flight: 1 → 3",)
    assert running(made) == 3
    event = next(event for event in made.events() if isinstance(event, LimitsChanged))
    assert event == LimitsChanged(
        cluster=CLUSTER,
        by="ann",
        reason="a quiet night",
        changed=(LimitChange("max_partitions_in_flight", 1, 3),),
    )


async def test_a_limit_that_is_lowered_stops_nothing_and_holds_back_what_follows() -> None:
    made = world()
    await made.send(alter({key: [4, 2, 3] for key in KEYS[:4]}))
    await made.run(300)
    await change(made, values={"max_moves_per_broker": 2})
    await made.send(alter({KEYS[4]: [4, 2, 3]}))
    await made.run(1000)
    assert running(made) == 4
    for key in KEYS[:3]:
        made.model.join_isr(key, 4)
    await made.run(1000)
    assert set(made.state.moves.in_flight) == {KEYS[3], KEYS[4]}


async def test_what_a_command_has_set_holds_against_other_settings_until_it_is_reset() -> None:
    made = await seen(world(Limits(max_moves_per_broker=2)))
    await change(made, values={"max_moves_per_broker": 7})
    made.limits = Limits(max_moves_per_broker=3, max_partitions_in_flight=9)
    made.crash()
    await seen(made)
    assert (made.state.limits.max_moves_per_broker, made.state.limits.max_partitions_in_flight) == (7, 9)
    assert of_settings(made.state) == made.limits
    outcome = await change(made, "back", reset=("max_moves_per_broker",))
    assert outcome.remarks == ("max_moves_per_broker: 7 → 3, as the settings say",)
    assert made.state.limits == made.limits
    assert made.state.changed_limits == {}


async def test_a_step_that_runs_keeps_its_limit_and_the_next_one_takes_the_new_one() -> None:
    """R435-1."""
    made = world()
    await made.send(alter({KEYS[0]: [4, 5, 6]}))
    await made.run(300)
    await change(made, values={"max_replicas_per_step": 3, "stepping": "swap"})
    await made.run(300)
    step = made.reassignment(KEYS[0]).step
    assert step is not None
    assert step.adding == (4,)
    made.model.join_isr(KEYS[0], 4)
    await made.run(300)
    step = made.reassignment(KEYS[0]).step
    assert step is not None
    assert step.adding == (5, 6)


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"max_moves_per_broker": 0}, "max_moves_per_broker must be at least 1, and is 0"),
        ({"max_moves_per_broker": -1}, "must be at least 1"),
        ({"max_moves_per_broker": None}, "must be a whole number"),
        ({"max_moves_per_broker": True}, "must be a whole number"),
        ({"max_moves_per_broker": "many"}, "must be a whole number"),
        ({"max_moves_per_broker": 2**31}, "must be at most 2147483647"),
        ({"stepping": "jump"}, "must be grow, swap or single"),
        ({"stepping": 3}, "must be grow, swap or single"),
        ({"lazy_leadership": 1}, "must be true or false"),
        ({"max_moves_per_brokers": 3}, "did you mean max_moves_per_broker?"),
        ({"zzz": 3}, "`drover limits show` lists them"),
        ({"max_moves_per_broker": 3, "num.concurrent.partition.movements.per.broker": 4}, "is named twice"),
    ],
)
async def test_what_makes_no_sense_is_refused_as_a_whole(values: dict[str, Any], said: str) -> None:
    made = world()
    outcome = await change(made, values={"max_replicas_per_step": 2, **values})
    assert outcome.verdict == "refused"
    (refusal,) = outcome.refusals
    assert refusal.code is RefusalCode.INVALID_LIMIT
    assert said in refusal.detail
    assert made.state.limits == Limits()


async def test_more_returns_of_a_broker_than_are_remembered_are_refused() -> None:
    made = await seen(world(Limits(healing=HealingLimits())))
    assert (await change(made, "most", values={"heal.flapping_returns": MOST_RETURNS})).verdict == "accepted"
    (refusal,) = (await change(made, values={"heal.flapping_returns": MOST_RETURNS + 1})).refusals
    assert refusal.detail == "heal.flapping_returns must be at most 20, and is 21"


async def test_what_changes_nothing_is_said_and_not_recorded() -> None:
    made = world()
    await change(made, values={"max_moves_per_broker": 7})
    again = await change(made, "again", values={"max_moves_per_broker": 7}, reset=("stepping",))
    assert again.verdict == "accepted"
    assert "nothing changes" in again.remarks[0]
    assert sum(isinstance(event, LimitsChanged) for event in made.events()) == 1
    await change(made, "back", reset_all=True)
    assert made.state.changed_limits == {}


async def test_a_limit_set_to_what_the_settings_say_holds_when_they_change() -> None:
    made = world()
    await change(made, values={"max_moves_per_broker": 5})
    made.limits = Limits(max_moves_per_broker=9)
    made.crash()
    await seen(made)
    assert made.state.limits.max_moves_per_broker == 5


async def test_limits_of_healing_are_changed_where_it_is_set_up_and_refused_elsewhere() -> None:
    outcome = await change(world(), values={"heal.chunk_partitions": 3})
    assert outcome.refusals[0].code is RefusalCode.HEALING_OFF
    made = await seen(world(Limits(healing=HealingLimits(alarm_ms=1000))))
    await change(made, values={"heal.chunk_partitions": 3, "kafka_heal_failure_interval": 60_000})
    healing = made.state.limits.healing
    assert healing == HealingLimits(alarm_ms=1000, chunk_partitions=3, failure_interval_ms=60_000)
    refused = await change(made, "never", values={"heal.failure_interval_ms": -2})
    assert "-1, which means never" in refused.refusals[0].detail


async def test_healing_that_is_removed_from_the_settings_and_set_up_again_keeps_what_was_set() -> None:
    made = await seen(world(Limits(healing=HealingLimits(alarm_ms=1000))))
    await change(made, values={"heal.chunk_partitions": 3})
    made.limits = Limits()
    made.crash()
    await seen(made)
    assert value_of(made.state.limits, "heal.chunk_partitions") is None
    made.limits = Limits(healing=HealingLimits(alarm_ms=2000, chunk_partitions=7))
    made.crash()
    await seen(made)
    assert made.state.limits.healing == HealingLimits(alarm_ms=2000, chunk_partitions=3)
    await change(made, "back", reset_all=True)
    assert made.state.limits == made.limits


async def test_more_may_start_under_the_new_limit_after_a_takeover() -> None:
    made = world(Limits(max_partitions_in_flight=1))
    await made.send(alter({key: [4, 2, 3] for key in KEYS}))
    await change(made, values={"max_partitions_in_flight": 2})
    made.crash()
    await made.run(6000)
    assert running(made) == 2
    assert {made.reassignment(key).phase for key in made.state.moves.in_flight} == {Phase.COPYING}


def test_every_limit_can_be_set_and_is_read_back() -> None:
    limits = Limits(healing=HealingLimits())
    for known in KNOWN:
        before = value_of(limits, known.name)
        number = min(77, known.most)
        value: Any = "swap" if isinstance(before, str) else not before if isinstance(before, bool) else number
        if known.unit is Unit.WINDOWS:
            value = "mon 22:00-24:00"
        changed = with_values(limits, {known.name: known.read(value)})
        assert value_of(changed, known.name) == value
        assert changed != limits
    assert with_values(limits, {"stepping": "swap"}).stepping is Stepping.SWAP


def test_every_field_of_the_limits_has_a_name() -> None:
    named = {known.name for known in KNOWN}
    for kind, prefix in ((Limits, ""), (HealingLimits, "heal."), (Budgets, "")):
        assert {prefix + field for field in kind.__struct_fields__} - {"healing", "budgets"} <= named


@pytest.mark.parametrize(
    ("alias", "name"),
    [
        ("reassignment.max.concurrent.partition.count", "max_partitions_in_flight"),
        ("reassignment.max.concurrent.replica.count", "max_replicas_per_step"),
        ("reassignment.max.concurrent.leader.movements", "max_leader_movements"),
        ("reassignment.parallel.leader.movements", "max_leader_movements"),
        ("reassignment.max.parallel.replica.count", "max_replicas_per_step"),
        ("num.concurrent.partition.movements.per.broker", "max_moves_per_broker"),
        ("concurrentPartitionMovementsPerBroker", "max_moves_per_broker"),
        ("MAX-MOVES-PER-BROKER", "max_moves_per_broker"),
    ],
)
def test_a_limit_goes_by_the_names_that_others_gave_it(alias: str, name: str) -> None:
    """R435-1, with the descriptions of the KIP's table the right way round."""
    known = find(alias)
    assert known is not None
    assert known.name == name


def test_no_two_limits_share_a_name() -> None:
    names = [name for known in KNOWN for name in (known.name, *known.aliases)]
    assert {find(name) for name in names} == set(KNOWN)
    for known in KNOWN:
        assert {find(name) for name in (known.name, *known.aliases)} == {known}


def test_a_limit_set_by_command_is_part_of_the_state() -> None:
    state = ClusterState("prod")
    apply(
        state, LimitsSet(cluster="prod", max_partitions_in_flight=9, max_moves_per_broker=5, max_replicas_per_step=1), 1
    )
    before = state_hash({"prod": state})
    change = LimitChange("max_moves_per_broker", 5, 5)
    apply(state, LimitsChanged(cluster="prod", by="ann", reason="r", changed=(change,)), 2)
    assert state_hash({"prod": state}) != before
    apply(state, LimitsChanged(cluster="prod", by="ann", reason="r", reset=(change,)), 3)
    assert state_hash({"prod": state}) == before


async def test_people_see_what_holds_and_by_whose_word() -> None:
    made = world()
    await change(made, values={"max_moves_per_broker": 7})
    rows = {row.name: row for row in limit_rows(made.state)}
    row = rows["max_moves_per_broker"]
    assert (row.value, row.settings_value, row.by, row.reason) == (7, 5, "ann", "a quiet night")
    assert rows["stepping"].by is None
    assert not any(name.startswith("heal.") for name in rows)
    assert "num.concurrent.partition.movements.per.broker" in row.document()["also_called"]
    (line,) = notices(made.state)
    assert "max_moves_per_broker 7 (ann)" in line
