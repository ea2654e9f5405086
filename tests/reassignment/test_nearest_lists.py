"""What was there before comes back as near as Kafka allows when one of its brokers is not registered any more."""

import pytest

from drover.brokers import Brokers
from drover.decide.commands import decide
from drover.decide.nearest_lists import nearest_list
from drover.events.reassignments import ReassignmentCreated
from tests.reassignment.support import KEY, alter, codes, facts, sight, state_after

BROKERS = Brokers(frozenset({2, 3, 4, 5}), frozenset(), frozenset({2, 3, 4, 5}))
GONE = {"live_brokers": BROKERS.live, "registered": BROKERS.registered}


@pytest.mark.parametrize(
    ("wanted", "replicas", "isr", "nearest"),
    [
        ((3, 2, 4), (4, 2, 3), (4, 2, 3), (3, 2, 4)),
        ((1, 2, 3), (4, 2, 3), (4, 2, 3), (2, 3, 4)),
        ((1, 2, 3), (4, 5), (5,), (2, 3, 5)),
        ((1, 2), (1, 2), (2,), (2,)),
        ((1,), (4, 2, 3), (2, 4), (4,)),
    ],
)
def test_the_nearest_list_has_no_unregistered_broker_and_as_many_as_it_had_if_there_are_so_many(
    wanted: tuple[int, ...], replicas: tuple[int, ...], isr: tuple[int, ...], nearest: tuple[int, ...]
) -> None:
    assert nearest_list(wanted, sight(replicas, isr=isr), BROKERS) == nearest


def test_without_a_look_the_list_is_only_shorter_and_one_that_would_be_empty_stays() -> None:
    assert nearest_list((1, 2, 3), None, BROKERS) == (2, 3)
    assert nearest_list((1,), None, BROKERS) == (1,)


def test_an_undo_to_an_unregistered_broker_goes_as_near_as_kafka_allows_and_names_it() -> None:
    seen = facts({KEY: sight((4, 2, 3))}, **GONE)
    decision = decide(alter({KEY: [1, 2, 3]}, drops_unregistered=True), state_after(), seen)
    (queued,) = [event for event in decision.events if isinstance(event, ReassignmentCreated)]
    assert queued.target == (2, 3, 4)
    assert decision.remarks == ("broker 1 is not registered with Kafka any more: its replicas do not come back",)


def test_any_other_alter_that_names_it_is_refused() -> None:
    decision = decide(alter({KEY: [1, 2, 3]}), state_after(), facts({KEY: sight((4, 2, 3))}, **GONE))
    assert (decision.accepted, len(codes(decision))) == ((), 1)
