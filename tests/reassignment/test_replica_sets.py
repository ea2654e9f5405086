"""The steps from one replica list to another, and what a cancel leaves."""

from hypothesis import given
from hypothesis import strategies as st

from drover.decide.replica_sets import adding, after_cancel, removing
from drover.events.plans import Stepping
from drover.events.reassignments import StepConfirmed
from drover.fold.evolve import apply
from drover.reconcile.moves.stepping import Situation, next_step
from drover.state.broker_directions import BrokerDirection
from drover.state.phase import Phase
from drover.state.reassignment import Step
from drover.testing import controller_model
from drover.testing.controller_model import Partition
from tests.reassignment.support import CLUSTER, KEY, intended, opened, queued, reassignment, state_after

LISTS = st.lists(st.integers(1, 9), min_size=1, max_size=6, unique=True).map(tuple)


def steps(original: tuple[int, ...], target: tuple[int, ...], at_a_time: int, live: set[int]) -> list[Step]:
    """Play the grow steps that follow one another, each confirmed."""
    state = state_after([opened(), queued(KEY, original, target)])
    taken: list[Step] = []
    while not taken or not taken[-1].final:
        about = state.reassignments[KEY]
        now = Situation(about.current, target, original, live, about.current, original[0], 1, at_a_time)
        step = next_step(about, Stepping.GROW, now)
        if step is None:
            break
        taken.append(step)
        apply(state, intended(step.expected, step.replicas, number=step.number, final=step.final), 1000)
        confirmed = StepConfirmed(
            cluster=CLUSTER, topic=KEY.topic, partition=KEY.partition, step=step.number, replicas=step.replicas
        )
        apply(state, confirmed, 1000)
    return taken


def test_what_is_added_comes_in_the_targets_order_and_what_goes_in_the_current_one() -> None:
    """R455-7, TV-213."""
    assert adding((1, 2, 3), (5, 3, 4)) == (5, 4)
    assert removing((1, 2, 3), (5, 3, 4)) == (1, 2)


def test_a_target_that_adds_one_replica_is_one_step() -> None:
    """TV-213, R455-10 E1."""
    assert steps((1, 2, 3), (4, 3, 2), 1, {4}) == [Step(1, True, (1, 2, 3), (4, 3, 2), 1)]


def test_a_target_that_adds_several_grows_at_the_end_and_then_takes_the_targets_order() -> None:
    """Design section 7: at the end, or else Kafka's rebalance would move leadership early."""
    lists = [step.replicas for step in steps((1, 2), (4, 3), 1, {3, 4})]
    assert lists == [(1, 2, 4), (1, 2, 4, 3), (4, 3)]


def test_a_larger_setting_gives_all_at_once() -> None:
    assert [step.replicas for step in steps((1, 2), (4, 3), 2, {3, 4})] == [(4, 3)]


def test_replicas_on_dead_brokers_come_last_and_then_it_waits() -> None:
    lists = [step.replicas for step in steps((1, 2), (5, 4, 3), 1, {3, 4})]
    assert lists == [(1, 2, 4), (1, 2, 4, 3)]


def test_a_prepared_step_weighs_on_its_leader_and_on_what_it_adds() -> None:
    assert reassignment(Phase.PREPARED).load == (BrokerDirection(1, "out"), BrokerDirection(4, "in"))
    assert reassignment(Phase.PENDING, step=None).load == ()
    assert reassignment(Phase.RESTORING).load == ()


def test_a_confirmed_step_weighs_on_nobody_even_when_a_rollback_is_asked_for() -> None:
    step = Step(1, False, (1, 2, 3), (1, 2, 3, 4), 1)
    for phase in (Phase.CONFIRMED, Phase.ROLLING_BACK):
        assert reassignment(phase, step=step, current=(1, 2, 3, 4)).load == ()
    assert reassignment(Phase.ROLLING_BACK, step=step).load == (BrokerDirection(1, "out"), BrokerDirection(4, "in"))


@given(original=LISTS, target=LISTS, at_a_time=st.integers(1, 4))
def test_growing_and_then_the_last_step_reach_any_target(
    original: tuple[int, ...], target: tuple[int, ...], at_a_time: int
) -> None:
    taken = steps(original, target, at_a_time, set(target))
    assert taken[-1].final
    assert taken[-1].replicas == target
    assert [step.number for step in taken] == list(range(1, len(taken) + 1))
    current = original
    for step in taken:
        assert step.expected == current
        assert len(step.adding) <= at_a_time
        assert step.final or step.replicas[: len(current)] == current
        # S2: inside original and target, never fewer than both.
        assert set(step.replicas) <= set(original) | set(target)
        assert len(step.replicas) >= min(len(original), len(target))
        current = step.replicas


@given(original=LISTS, target=LISTS, live=st.sets(st.integers(1, 9)), at_a_time=st.integers(1, 4))
def test_no_grow_step_adds_a_replica_on_a_dead_broker(
    original: tuple[int, ...], target: tuple[int, ...], live: set[int], at_a_time: int
) -> None:
    for step in steps(original, target, at_a_time, live):
        assert step.final or set(step.adding) <= live


@given(original=LISTS, target=LISTS, at_a_time=st.integers(1, 4))
def test_the_list_that_a_cancel_leaves_is_the_controllers(
    original: tuple[int, ...], target: tuple[int, ...], at_a_time: int
) -> None:
    """TV-266 and live facts: the members from before the step, in merged order."""
    for step in steps(original, target, at_a_time, set(target)):
        idle = Partition(step.expected, step.expected, step.expected[0])
        moved = controller_model.altered(idle, step.replicas, lambda _: True)
        if moved.moving:
            back = controller_model.cancelled(moved, lambda _: True)
            assert back is not None
            assert back.replicas == after_cancel(step)
