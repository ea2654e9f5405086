"""What goes first: freezes always, cancels unless that would change what their author or their partitions get."""

from typing import Any

import pytest

from drover.events.commands import Alter, AnyCommand, Cancel, Freeze, PartitionName, PartitionTarget, Unfreeze
from drover.shard.inbox import CLOSE_BYTES, Inbox
from drover.shard.messages import Arrival

FRESH = (0, 0, 0, 0)
FLOOD = 3000
BOB: dict[str, Any] = {"cluster": "local", "by": "bob", "reason": "r"}
TARGET = PartitionTarget(topic="orders", partition=0, replicas=(1, 2))
FLOODED = [Alter(id=f"a{n}", cluster="local", by="ann", reason="r", partitions=(TARGET,)) for n in range(FLOOD)]


def taken(*commands: AnyCommand, size: int = 200) -> list[str]:
    """The ids in the order in which the commands are taken after a flood of alters, in runs of a mebibyte."""
    inbox = Inbox()
    offsets = [0, 0, 0, 0]
    for at_ms, command in enumerate((*FLOODED, *commands)):
        topic = 0 if isinstance(command, Alter) else 1
        inbox.add(Arrival(topic, offsets[topic], at_ms, b"x" * size, command))
        offsets[topic] += 1
    found: list[str] = []
    while run := inbox.take(FRESH):
        assert sum(len(one.payload) for one in run) <= CLOSE_BYTES
        found += [one.command.id or "" for one in run]
        inbox.settle()
    assert (inbox.count, inbox.bytes) == (0, 0)
    return found


@pytest.mark.parametrize(
    "command",
    [
        Freeze(**BOB, id="now"),
        Unfreeze(**BOB, id="now"),
        Freeze(**{**BOB, "by": "ann"}, id="now"),
        Cancel(**BOB, id="now", mode="rollback", all=True),
        Cancel(**BOB, id="now", mode="stop", plan="friday"),
        Cancel(**BOB, id="now", mode="stop", topics=("payments",)),
        Cancel(**{**BOB, "cluster": "other", "by": "ann"}, id="now", mode="stop", all=True),
    ],
)
def test_what_ends_or_holds_back_work_overtakes_a_flood_of_others(command: AnyCommand) -> None:
    assert taken(command)[0] == "now"


@pytest.mark.parametrize(
    "command",
    [
        Cancel(**{**BOB, "by": "ann"}, id="now", mode="rollback", all=True),
        Cancel(**BOB, id="now", mode="stop", topics=("orders",)),
        Cancel(**BOB, id="now", mode="stop", partitions=(PartitionName("orders", 7),)),
        Cancel(**BOB, id="now", mode="stop", plan="a7"),
        Cancel(**BOB, id="now", mode="stop", queued="a7"),
    ],
)
def test_a_cancel_stays_behind_what_its_author_asked_for_and_what_it_is_about(command: AnyCommand) -> None:
    assert taken(command)[-1] == "now"


def test_within_their_topic_the_commands_of_one_requester_keep_their_order() -> None:
    late = Cancel(**{**BOB, "by": "ann"}, id="late", mode="rollback", all=True)
    order = taken(Freeze(**BOB, id="f1"), late, Freeze(**{**BOB, "by": "ann"}, id="f2"), Freeze(**BOB, id="f3"))
    assert order[:2] == ["f1", "f3"]
    assert order[-2:] == ["late", "f2"], "ann's cancel stays behind ann's alters, and her freeze behind her cancel"


def test_nothing_of_its_cluster_overtakes_an_unfreeze_of_everyone() -> None:
    """Else it would end a freeze that was asked for after it."""
    everyone = Unfreeze(**{**BOB, "by": "ann"}, id="everyone", all=True)
    elsewhere = Freeze(**{**BOB, "cluster": "other"}, id="elsewhere")
    before = [Freeze(**{**BOB, "by": "ann"}, id=f"f{number}") for number in range(9)]
    order = taken(*before, everyone, Freeze(**BOB, id="after"), elsewhere)
    assert order[:10] == ["f0", "elsewhere", *(f"f{number}" for number in range(1, 9))]
    assert order[10:12] == ["everyone", "after"]


def test_requesters_take_turns_in_the_topic_of_cancels() -> None:
    loud = [Cancel(**BOB, id=f"c{number}", mode="stop", plan=f"p{number}") for number in range(1500)]
    quiet = {**BOB, "by": "carl"}
    order = taken(*loud, Freeze(**quiet, id="freeze"), Cancel(**quiet, id="cancel", mode="rollback", all=True))
    assert order[:4] == ["c0", "freeze", "c1", "cancel"]


def test_what_was_given_back_goes_first_again() -> None:
    inbox = Inbox()
    inbox.add(Arrival(0, 0, 0, b"", FLOODED[0]))
    inbox.add(Arrival(1, 0, 1, b"", Freeze(**BOB, id="now")))
    for _ in range(2):
        assert [one.command.id for one in inbox.take(FRESH)] == ["now", "a0"]
        inbox.give_back()


def test_cancels_that_go_first_leave_others_half_of_a_run() -> None:
    inbox = Inbox()
    inbox.add(Arrival(0, 0, 0, b"x", FLOODED[0]))
    for offset in range(40):
        cancel = Cancel(**BOB, id=f"c{offset}", mode="stop", plan=f"p{offset}")
        inbox.add(Arrival(1, offset, 1 + offset, b"x" * 50_000, cancel))
    ids = [one.command.id for one in inbox.take(FRESH)]
    assert ids[:3] == ["c0", "c1", "c2"]
    assert "a0" in ids
    assert len(ids) > 15, "what nobody else needs is theirs"


def test_no_topic_fills_a_run_alone_while_another_one_waits() -> None:
    inbox = Inbox()
    for offset in range(40):
        inbox.add(Arrival(0, offset, offset, b"x" * 50_000, FLOODED[offset]))
    failed = Freeze(**BOB, id="failed")
    inbox.add(Arrival(3, 0, 1000, b"x", failed))
    assert failed in [one.command for one in inbox.take(FRESH)]
