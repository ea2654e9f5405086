"""The story in sentences: people and outcomes are told, details are not."""

import re
from typing import get_args

import pytest

from drover.client.history import ValidRecord
from drover.client.views.history_rows import Selection, Wanted, story
from drover.client.views.sentences import ASKED_FOR, OF_OTHERS, OF_PARTITIONS
from drover.events.base import PartitionEvent
from drover.events.commands import AnyCommand
from drover.events.plans import PlanFinished
from drover.events.records import AnyEvent
from drover.events.refusals import Refusal, RefusalCode
from tests.client.log import CLUSTER, outcome
from tests.client.views.test_history_rows import story as rolled_back
from tests.web.scene import Scene, keys


def told(records: list[ValidRecord]) -> list[str]:
    selection = Selection(Wanted())
    selection.add(records)
    return [sentence for _, sentence in story(selection.rows())]


def test_a_rollback_is_told_with_who_asked_and_why() -> None:
    sentences = told(rolled_back())
    assert sentences[0].startswith(
        "ann asked to move 2 partitions in plan p: why (accepted; 1 accepted; gone:0: unknown-"
    )
    assert sentences[-1] == "orders:3 of plan p rolled back, replicas 1,2"


def test_partitions_to_which_the_same_happened_are_one_sentence() -> None:
    scene = Scene()
    scene.open_plan("friday", "ann", "drain broker 3", None, keys("orders", 5))
    scene.start(*keys("orders", 5))
    scene.complete(*keys("orders", 5))
    scene.say(PlanFinished(cluster=CLUSTER, plan="friday", completed=5, rolled_back=0, failed=0))
    assert told(scene.news) == [
        "ann asked to move 5 partitions in plan friday: drain broker 3",
        "5 partitions of plan friday done: orders:0, orders:1, orders:2 and 2 more",
        "plan friday has ended: 5 completed",
    ]


def test_a_refused_command_is_told_with_its_refusal() -> None:
    scene = Scene()
    refusal = Refusal(RefusalCode.UNKNOWN_PLAN, "there is no plan nosuch")
    scene.say(outcomes=(outcome("p1", type="pause", by="ben", verdict="refused", refusals=(refusal,)),))
    (sentence,) = told(scene.news)
    assert sentence.endswith("(refused; all: unknown-plan, there is no plan nosuch)")


def test_every_type_of_command_has_words() -> None:
    types = {str(command.__struct_config__.tag) for command in get_args(AnyCommand)}
    assert {*ASKED_FOR, "alter", "cancel"} == types


@pytest.mark.parametrize("event", get_args(AnyEvent), ids=lambda event: event.__name__)
def test_an_event_has_words_of_its_kind(event: type[AnyEvent]) -> None:
    """An end, a block and what others did are told; a call, a step and a queue's entry are details."""
    if issubclass(event, PartitionEvent):
        assert event not in OF_OTHERS
        assert (event in OF_PARTITIONS) is bool(
            re.search(
                "Completed|RolledBack|Stopped|Failed|[Bb]locked|Skipped|LateChange|UnmanagedMove|OrderLeft",
                event.__name__,
            )
        )
    else:
        assert event not in OF_PARTITIONS
