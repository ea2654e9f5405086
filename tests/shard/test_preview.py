"""What is not read yet: freezes and cancels are found behind any flood, and nothing is lost or decided twice."""

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from drover.events.codec import Malformed
from drover.events.commands import AnyCommand, Cancel, Freeze, HoldBroker, Unfreeze
from drover.events.records import Cursor
from drover.shard.inbox import CANCEL_INDEX, HIGH_COUNT, MOST_EARLY, Inbox
from drover.shard.intake import following
from drover.shard.messages import Arrival
from drover.shard.preview import MOST_OF_ONE, MOST_PREVIEWED, MOST_PREVIEWED_BYTES

CLUSTERS = ("local", "prod")
FLOOD = 20_000
START = tuple(Cursor(f"topic-{number}", 0) for number in range(4))


def said(by: str, number: int = 0, cluster: str = "local") -> dict[str, Any]:
    return {"id": f"{by}-{number}", "cluster": cluster, "by": by, "reason": "r"}


def cancel(by: str, number: int = 0, cluster: str = "local") -> Cancel:
    return Cancel(**said(by, number, cluster), mode="stop", plan="p")


def arrival(offset: int, command: AnyCommand | Malformed, size: int = 160) -> Arrival:
    return Arrival(CANCEL_INDEX, offset, 1000 + offset, b"x" * size, command)


def full() -> Inbox:
    """An inbox that one requester has filled; the rest of the topic is unread."""
    inbox = Inbox(CLUSTERS)
    offset = 0
    while not inbox.is_high:
        inbox.add(arrival(offset, cancel("mallory", offset)))
        offset += 1
    assert offset == HIGH_COUNT
    return inbox


def taken(inbox: Inbox) -> list[int]:
    return [one.offset for one in inbox.take((0, 0, 0, 0))]


def test_a_freeze_behind_an_unread_flood_is_the_second_that_is_decided() -> None:
    inbox = full()
    for offset in range(HIGH_COUNT, FLOOD):
        assert not inbox.preview(arrival(offset, cancel("mallory", offset)))
    assert inbox.preview(arrival(FLOOD, Freeze(**said("ann"))))
    assert taken(inbox)[:3] == [0, FLOOD, 1]
    assert inbox.count == HIGH_COUNT + 1


def test_an_emergency_of_several_commands_goes_first_as_a_whole() -> None:
    inbox = full()
    for number in range(2 * MOST_OF_ONE):
        command = cancel("ann", number) if number % 2 else Freeze(**said("ann", number))
        assert inbox.preview(arrival(HIGH_COUNT + number, command)) == (number < MOST_OF_ONE)
    assert [offset for offset in taken(inbox)[: 2 * MOST_OF_ONE] if offset >= HIGH_COUNT] == [
        HIGH_COUNT + number for number in range(MOST_OF_ONE)
    ]


def test_reading_passes_what_was_decided_early() -> None:
    inbox = full()
    inbox.preview(arrival(HIGH_COUNT + 2, Freeze(**said("ann"))))
    cursors = following(START, inbox.take((0, 0, 0, 0)))
    assert cursors[CANCEL_INDEX].ahead == (HIGH_COUNT + 2,)
    inbox.settle()
    for offset in range(cursors[CANCEL_INDEX].next_offset, HIGH_COUNT):
        assert not inbox.add(arrival(offset, cancel("mallory", offset))), "it is in here"
    for offset in range(HIGH_COUNT, HIGH_COUNT + 4):
        inbox.add(arrival(offset, Freeze(**said("ann")) if offset == HIGH_COUNT + 2 else cancel("mallory", offset)))
    decided = []
    while run := inbox.take([one.next_offset for one in cursors], [frozenset(one.ahead) for one in cursors]):
        decided += [one.offset for one in run]
        cursors = following(cursors, run)
        inbox.settle()
    assert HIGH_COUNT + 2 not in decided
    assert cursors[CANCEL_INDEX] == Cursor("topic-1", HIGH_COUNT + 4)
    assert (inbox.count, inbox.bytes) == (0, 0)


def test_what_is_read_while_it_is_decided_is_not_queued_again() -> None:
    inbox = full()
    inbox.preview(arrival(HIGH_COUNT + 1, Freeze(**said("ann"))))
    assert HIGH_COUNT + 1 in taken(inbox)
    inbox.add(arrival(HIGH_COUNT, cancel("mallory", HIGH_COUNT)))
    assert inbox.add(arrival(HIGH_COUNT + 1, Freeze(**said("ann"))))
    inbox.give_back()
    assert taken(inbox).count(HIGH_COUNT + 1) == 1


def test_the_commands_of_one_requester_keep_their_order_across_the_mark() -> None:
    inbox = full()
    held = HoldBroker(**said("ann"), broker=1)
    assert not inbox.preview(arrival(HIGH_COUNT, held))
    assert not inbox.preview(arrival(HIGH_COUNT + 1, Freeze(**said("ann", 1)))), "ann has asked for a hold before"
    assert inbox.preview(arrival(HIGH_COUNT + 2, Freeze(**said("ann", 2, "prod")))), "of another cluster"
    inbox.take((0, 0, 0, 0))
    inbox.settle(10)
    inbox.add(arrival(HIGH_COUNT, held))
    assert not inbox.preview(arrival(HIGH_COUNT + 3, Freeze(**said("ann", 3)))), "the first freeze is unread"


def test_nothing_overtakes_an_unread_unfreeze_of_everyone() -> None:
    inbox = full()
    assert not inbox.preview(arrival(HIGH_COUNT, Unfreeze(**said("bob"), all=True)))
    assert not inbox.preview(arrival(HIGH_COUNT + 1, Freeze(**said("ann"))))
    assert inbox.preview(arrival(HIGH_COUNT + 2, Freeze(**said("ann", cluster="prod"))))


def test_what_is_not_of_this_shard_or_no_command_is_left_where_it_is() -> None:
    inbox = full()
    assert not inbox.preview(arrival(HIGH_COUNT, Freeze(**said("ann", cluster="elsewhere"))))
    assert not inbox.preview(arrival(HIGH_COUNT + 1, Malformed("no")))
    assert not inbox.preview(arrival(HIGH_COUNT + 2, Freeze(**said("ann")), size=MOST_PREVIEWED_BYTES))
    assert not inbox.preview(arrival(HIGH_COUNT - 1, Freeze(**said("bob")))), "it was read"
    assert inbox.preview_offset == HIGH_COUNT + 3


def test_many_names_leave_places_for_a_freeze_and_for_another_cluster() -> None:
    inbox, offset = full(), HIGH_COUNT
    for number in range(1000):
        inbox.preview(arrival(offset + number, cancel(f"mallory-{number}")))
    assert inbox.preview(arrival(offset + 1000, Freeze(**said("ann"))))
    for number in range(1001, 2000):
        inbox.preview(arrival(offset + number, Freeze(**said(f"mallory-{number}"))))
    assert inbox.preview(arrival(offset + 2000, Freeze(**said("ann", cluster="prod"))))
    assert inbox.count - HIGH_COUNT <= MOST_PREVIEWED
    for number in range(2000):
        inbox.preview(arrival(offset + 2001 + number, Freeze(**said(f"mallory-{number}", cluster="prod"))))
    assert inbox.count - HIGH_COUNT == MOST_PREVIEWED


# -- whatever happens in whatever order


@dataclass
class Topic:
    """One topic of cancels and its owner: what is decided is in `cursors`, as it is in the log."""

    commands: list[AnyCommand]
    inbox: Inbox = field(default_factory=lambda: Inbox(CLUSTERS))
    cursors: tuple[Cursor, ...] = START
    decided: list[int] = field(default_factory=list)

    def read(self, count: int) -> None:
        start = self.inbox.expected(CANCEL_INDEX)
        for offset in range(start, min(start + count, len(self.commands))):
            self.inbox.add(arrival(offset, self.commands[offset]))

    def preview(self, count: int) -> None:
        start = self.inbox.preview_offset
        for offset in range(start, min(start + count, len(self.commands))):
            self.inbox.preview(arrival(offset, self.commands[offset]))

    def decide(self, count: int, read_meanwhile: int = 0) -> None:
        early = [frozenset(one.ahead) for one in self.cursors]
        run = self.inbox.take([one.next_offset for one in self.cursors], early)[:count]
        self.read(read_meanwhile)
        before, self.cursors = self.cursors[CANCEL_INDEX], following(self.cursors, run)
        after = self.cursors[CANCEL_INDEX]
        assert all(offset < after.next_offset or offset in after.ahead for offset in before.ahead), "a cursor forgets"
        assert after.next_offset >= before.next_offset
        assert len(after.ahead) <= MOST_EARLY
        self.decided += [one.offset for one in run]
        self.inbox.settle(len(run))

    def fence(self, count: int) -> None:
        """Another owner decides first; this one finds out when its record is void."""
        other = Topic(self.commands, cursors=self.cursors, decided=self.decided)
        other.inbox.reset([one.next_offset for one in self.cursors])
        self.inbox.take([one.next_offset for one in self.cursors], [frozenset(one.ahead) for one in self.cursors])
        other.read(count)
        other.preview(count)
        other.decide(count)
        self.cursors = other.cursors
        self.inbox.give_back()

    def restart(self, count: int) -> None:
        self.inbox.reset([one.next_offset for one in self.cursors])
        self.read(count)


WHO = st.tuples(st.sampled_from(("ann", "bob", "carl")), st.sampled_from(CLUSTERS))
WHAT = st.sampled_from(("cancel", "freeze", "unfreeze", "everyone", "hold"))


def made(who: tuple[str, str], what: str) -> AnyCommand:
    fields = said(who[0], 0, who[1])
    made: dict[str, AnyCommand] = {
        "cancel": Cancel(**fields, mode="stop", all=True),
        "freeze": Freeze(**fields),
        "unfreeze": Unfreeze(**fields),
        "everyone": Unfreeze(**fields, all=True),
        "hold": HoldBroker(**fields, broker=1),
    }
    return made[what]


STEPS = st.lists(
    st.tuples(
        st.sampled_from(("read", "preview", "preview", "decide", "decide", "fence", "restart")), st.integers(1, 6)
    ),
    max_size=40,
)


@settings(max_examples=300)
@given(st.lists(st.builds(made, WHO, WHAT), min_size=1, max_size=30), STEPS, st.integers(0, 4))
@example([made(("ann", "local"), "everyone"), made(("ann", "prod"), "cancel")], [("preview", 2), ("decide", 1)], 0)
def test_each_is_decided_once_and_no_requester_or_unfreeze_of_everyone_is_overtaken(
    commands: list[AnyCommand], steps: list[tuple[str, int]], meanwhile: int
) -> None:
    topic = Topic(commands)
    actions: dict[str, Callable[[int], None]] = {
        "read": topic.read,
        "preview": topic.preview,
        "decide": lambda count: topic.decide(count, meanwhile),
        "fence": topic.fence,
        "restart": topic.restart,
    }
    for step, count in steps:
        actions[step](count)
    topic.read(len(commands))
    for _ in commands:
        topic.decide(len(commands))
    assert sorted(topic.decided) == list(range(len(commands))), "each one once"
    assert topic.cursors[CANCEL_INDEX] == Cursor("topic-1", len(commands))
    inbox = topic.inbox
    assert (inbox.count, inbox.bytes, list(inbox), len(inbox._in_order), len(inbox._altered)) == (0, 0, [], 0, 0)
    _in_order(commands, topic.decided)


def _in_order(commands: list[AnyCommand], decided: list[int]) -> None:
    for cluster in CLUSTERS:
        own = [offset for offset in decided if commands[offset].cluster == cluster]
        for by in {commands[offset].by for offset in own}:
            mine = [offset for offset in own if commands[offset].by == by]
            assert mine == sorted(mine), f"{by}'s commands keep their order"
        for place, offset in enumerate(own):
            command = commands[offset]
            if isinstance(command, Unfreeze) and command.all:
                assert max(own[:place], default=-1) < offset < min(own[place + 1 :], default=len(commands))
        others = [one for one in own if isinstance(commands[one], HoldBroker)]
        assert all(first < second for first, second in pairwise(others)), "what takes no turns keeps its order"
