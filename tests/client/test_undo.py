"""The inverse of a plan, from what the log says it has completed."""

from typing import Any

import pytest

from drover.client.history import FoldedLog
from drover.client.undo import Undo
from drover.errors import NothingToUndoError
from drover.events.partitions import TopicPartition
from drover.events.plans import PlanOpened
from drover.events.reassignments import ReassignmentCompleted, ReassignmentCreated, ReassignmentRolledBack
from drover.events.records import AnyEvent
from drover.journal.reader import LogRecord
from tests.client.log import CLUSTER, Writer

FIRST, SECOND = TopicPartition("t", 0), TopicPartition("t", 1)


def name(key: TopicPartition) -> dict[str, Any]:
    return {"cluster": CLUSTER, "topic": key.topic, "partition": key.partition}


def opened(plan: str) -> PlanOpened:
    return PlanOpened(cluster=CLUSTER, plan=plan, by="ann", reason="r")


def moved(
    key: TopicPartition, original: tuple[int, ...], target: tuple[int, ...], plan: str = "p"
) -> tuple[AnyEvent, ...]:
    queued = ReassignmentCreated(**name(key), topic_id="id", plan=plan, original=original, target=target)
    return queued, ReassignmentCompleted(**name(key), replicas=target)


def undo(*events: AnyEvent, plan: str = "p") -> list[tuple[TopicPartition, Any, Any]]:
    writer = Writer()
    writer.begin()
    writer.say(*events)
    found = Undo(CLUSTER, plan)
    log = FoldedLog({0: Writer().fold})
    found.see(log.take([LogRecord(0, offset, 0, payload, ()) for offset, payload in enumerate(writer.records)]))
    return [(target.key, target.replicas, target.original_replicas) for target in found.targets()]


def test_what_was_completed_goes_back_from_where_it_is_asserted_to_be() -> None:
    rolled_back = ReassignmentCreated(**name(SECOND), topic_id="id", plan="p", original=(3, 4), target=(5, 4))
    events = (
        opened("p"),
        *moved(FIRST, (1, 2), (3, 2)),
        rolled_back,
        ReassignmentRolledBack(**name(SECOND), replicas=(3, 4)),
    )
    assert undo(*events) == [(FIRST, (1, 2), (3, 2))]


def test_several_moves_of_one_plan_go_back_to_where_the_first_began() -> None:
    assert undo(opened("p"), *moved(FIRST, (1, 2), (3, 2)), *moved(FIRST, (3, 2), (3, 4))) == [(FIRST, (1, 2), (3, 4))]


def test_what_others_moved_in_between_goes_back_to_where_they_left_it() -> None:
    others = moved(FIRST, (3, 2), (5, 6), "q")
    events = (opened("p"), opened("q"), *moved(FIRST, (1, 2), (3, 2)), *others)
    assert undo(*events) == [(FIRST, (1, 2), (3, 2))]
    assert undo(*events, *moved(FIRST, (5, 6), (6, 5))) == [(FIRST, (5, 6), (6, 5))]


@pytest.mark.parametrize(
    ("events", "said"),
    [
        ((), "there is no plan p in prod"),
        ((opened("p"),), "plan p has completed no move"),
        ((opened("p"), *moved(FIRST, (1, 2), (1, 2))), "plan p has completed no move"),
    ],
)
def test_nothing_to_undo_is_said(events: tuple[AnyEvent, ...], said: str) -> None:
    with pytest.raises(NothingToUndoError, match=said):
        undo(*events)
