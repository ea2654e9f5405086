"""Sets of brokers for topics, least numbers of leaders, and leaders in some racks only."""

import random
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drover.client.views.describe_rows import partition_rows
from drover.planner.assess import assess
from drover.planner.goals import Balance, Drain, Goal, Heal, Leaders, Replace, SetReplicationFactor, Spread
from drover.planner.model import Broker, BrokerSet, ClusterModel, LogDir, Partition
from drover.planner.placement import Placement, with_placement
from drover.planner.proposal import UnmetCode
from drover.planner.propose import propose
from tests.planning.clusters import lists_after, random_cluster, random_goals, targets_of

GB = 10**9


def cluster(*lists: tuple[int, ...], brokers: int = 6) -> ClusterModel:
    """Make a cluster of two racks, with a topic `gold` on these lists."""
    disk = (LogDir("/d", 1000 * GB, 500 * GB),)
    partitions = [Partition("gold", number, each, each[0], each, GB) for number, each in enumerate(lists)]
    return ClusterModel.of([Broker(n, f"r{n % 2}", log_dirs=disk) for n in range(1, brokers + 1)], partitions)


GOLD = Placement(broker_sets=(BrokerSet("gold", (1, 2, 3, 4), ("go*",)),))


def test_a_topic_stays_within_its_set() -> None:
    model = with_placement(cluster(*((1, 2) for _ in range(8))), GOLD)
    for goal in (Balance(), Drain((1,)), SetReplicationFactor(("gold",), 3)):
        added = {broker for move in propose(model, goal).moves for broker in move.adding}
        assert added
        assert added <= {1, 2, 3, 4}, goal


def test_a_set_in_one_rack_is_as_many_racks_as_its_topics_can_have() -> None:
    # Brokers 1, 3 and 5 are rack r1.
    for rate in (None, 1e3):
        bare = cluster((1, 3), (3, 1), (1, 3), (3, 1))
        rated = ClusterModel.of(bare.brokers, [replace(each, write_bytes_per_s=rate) for each in bare.partitions])
        model = with_placement(rated, Placement(broker_sets=(BrokerSet("gold", (1, 3, 5), ("gold",)),)))
        raised = propose(model, SetReplicationFactor(("gold",), 3))
        assert raised.complete
        assert {frozenset(move.after) for move in raised.moves} == {frozenset((1, 3, 5))}
        assert assess(model, targets_of(raised)).rack_violations_after == 0
        assert propose(model, Spread()).complete
        assert not [each for each in propose(model, Balance()).unmet if each.code is UnmetCode.RACK_SPREAD]
        assert {each.notes for each in partition_rows(model, model.partitions)} == {()}
        assert "in fewer racks than possible" in partition_rows(rated, rated.partitions)[0].notes


def test_what_no_broker_of_the_set_can_take_stays_and_is_named() -> None:
    model = with_placement(cluster((1, 2), (1, 2)), Placement(broker_sets=(BrokerSet("gold", (1, 2), ("gold",)),)))
    proposal = propose(model, Drain((1,)))
    assert proposal.empty
    assert {each.code for each in proposal.unmet} == {UnmetCode.BROKER_SET}
    assert proposal.unmet[0].text == "gold:0: no broker of its broker set can take a replica from broker 1"


def test_a_plan_of_another_tool_that_leaves_the_set_is_told() -> None:
    (problem,) = assess(with_placement(cluster((1, 2)), GOLD), {("gold", 0): (5, 2)}).unmet
    assert (problem.code, problem.text) == (UnmetCode.BROKER_SET, "gold:0: broker 5 is not in broker set gold")


@pytest.mark.parametrize("goal", [Balance(), Leaders()], ids=["balance", "leaders"])
def test_every_broker_leads_as_many_as_it_should(goal: Balance | Leaders) -> None:
    lists = [tuple(1 + (number + place) % 4 for place in range(4)) for number in (0, 0, 0, 0, 1, 1, 2, 3)]
    model = with_placement(cluster(*lists, brokers=4), Placement(min_leaders=(("gold", 2),)))
    proposal = propose(model, goal)
    assert proposal.complete
    led = Counter(after[0] for after in lists_after(model, targets_of(proposal)).values())
    assert led == {1: 2, 2: 2, 3: 2, 4: 2}


def test_who_leads_too_little_is_named_and_so_is_a_topic_that_is_too_small() -> None:
    few = with_placement(cluster((1, 2), (2, 1), (1, 2), (1, 2)), Placement(min_leaders=(("*", 1),)))
    (problem,) = propose(few, Leaders()).unmet
    assert problem.text == "topic gold has 4 partitions, too few for 1 leaders on 6 brokers"
    able = with_placement(cluster(*((1, 2) for _ in range(6))), Placement(min_leaders=(("*", 1),)))
    named = [each.broker for each in propose(able, Leaders()).unmet if each.code is UnmetCode.MIN_LEADERS]
    assert named == [3, 4, 5, 6]
    assert assess(able, {("gold", 0): (2, 1)}).complete
    worse = with_placement(cluster((1, 2), (2, 1), brokers=2), Placement(min_leaders=(("*", 1),)))
    assert [each.broker for each in assess(worse, {("gold", 0): (2, 1)}).unmet] == [1]


def test_leaders_are_in_the_racks_that_are_preferred() -> None:
    lists = [(1 + number % 2 * 2, 2 + number % 3 * 2) for number in range(12)]
    model = with_placement(cluster(*lists, (1, 3)), Placement(leaders_in_racks=("r0",)))
    for goal in (Balance(), Leaders()):
        heads = [after[0] for after in lists_after(model, targets_of(propose(model, goal))).values()]
        assert set(heads[:12]) <= {2, 4, 6}, goal
        if isinstance(goal, Leaders):
            assert Counter(heads[:12]) == {2: 4, 4: 4, 6: 4}
            assert heads[12] in {1, 3}, "no replica of it is in the rack"


def heads_after(model: ClusterModel, goal: Goal) -> list[int]:
    return [after[0] for after in lists_after(model, targets_of(propose(model, goal))).values()]


def test_a_goal_that_changes_who_leads_chooses_a_broker_that_should_lead() -> None:
    # Broker 3 is in rack r1, as are 1 and 5; leaders belong to r0.
    model = with_placement(cluster((2, 1), (2, 1), (2, 5)), Placement(leaders_in_racks=("r1",)))
    for goal in (Drain((2,)), Replace(2, 6), Heal((2,))):
        assert heads_after(model, goal) == [1, 1, 5], goal
    dead = replace(model, brokers=tuple(replace(each, alive=each.id != 2) for each in model.brokers))
    fewer = ClusterModel.of(
        dead.brokers, [replace(each, leader=1, isr=(1, 6), replicas=(2, 6, 1)) for each in cluster((1, 2)).partitions]
    )
    lowered = replace(fewer, leaders_in_racks=("r1",))
    assert lists_after(lowered, targets_of(propose(lowered, SetReplicationFactor(("gold",), 2)))) == {
        ("gold", 0): (1, 6)
    }


def test_a_drain_leaves_each_broker_as_many_leaders_as_it_should_have_where_its_copies_allow_it() -> None:
    lists = [(1, 2), (2, 1), (3, 4), (3, 4), (4, 3), (5, 6), (6, 5)]
    model = with_placement(cluster(*lists), Placement(min_leaders=(("gold", 1),)))
    for gone in range(1, 7):
        assert propose(model, Drain((gone,))).complete, gone
        assert set(heads_after(model, Drain((gone,)))) == set(range(1, 7)) - {gone}


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000))
def test_no_copy_of_any_plan_leaves_the_set_of_its_topic(seed: int) -> None:
    draw = random.Random(f"sets {seed}")
    bare = random_cluster(seed)
    ids = [broker.id for broker in bare.brokers]
    sets = tuple(
        BrokerSet(f"s{number}", tuple(draw.sample(ids, draw.randint(1, len(ids)))), (f"topic-{number}",))
        for number in range(2)
    )
    rates = draw.random() < 0.5
    partitions = [replace(each, write_bytes_per_s=draw.uniform(0, 5e3) if rates else None) for each in bare.partitions]
    model = replace(ClusterModel.of(bare.brokers, partitions), broker_sets=sets)
    for goal in random_goals(seed, model):
        for move in propose(model, goal).moves:
            own = model.set_of(move.topic)
            assert own is None or set(move.adding) <= set(own.brokers), (goal, move)
