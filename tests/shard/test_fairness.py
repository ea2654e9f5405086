"""Clusters that live in one shard share it: nobody's flood holds up the commands of others, and none is lost."""

from drover.events.commands import Freeze
from drover.events.records import Cursor
from drover.shard.inbox import CLOSE_BYTES, MOST_EARLY, Inbox
from drover.shard.intake import following
from drover.shard.messages import Arrival

FRESH = (0, 0, 0, 0)
NOBODY = (frozenset[int](),) * 4
LOUD, QUIET = "loud", "quiet"


def arrival(offset: int, cluster: str = LOUD, size: int = 200_000, topic: int = 0) -> Arrival:
    command = Freeze(id=f"f{offset}", cluster=cluster, by="ana", reason="r")
    return Arrival(topic, offset, 1000 + offset, b"x" * size, command)


def flooded(*quiet: int, count: int = 12) -> Inbox:
    """One cluster sends many large commands; another one's stand at these offsets."""
    inbox = Inbox()
    for offset in range(count):
        inbox.add(arrival(offset, QUIET if offset in quiet else LOUD))
    return inbox


def offsets(taken: tuple[Arrival, ...]) -> list[int]:
    return [one.offset for one in taken]


def early(taken: tuple[Arrival, ...]) -> list[int]:
    return [one.offset for one in taken if one.is_early]


def moved(cursors: tuple[Cursor, ...], taken: tuple[Arrival, ...]) -> Cursor:
    return following(cursors, taken)[0]


CURSORS = tuple(Cursor(f"topic-{number}", 0) for number in range(4))


def test_a_flood_of_one_cluster_does_not_hold_up_another_ones_commands() -> None:
    inbox = flooded(10, 11)
    taken = inbox.take(FRESH)
    assert offsets(taken) == [0, 10, 1, 11, 2]
    assert early(taken) == [10, 11]
    cursor = moved(CURSORS, taken)
    assert (cursor.next_offset, cursor.ahead) == (3, (10, 11))


def test_the_commands_of_one_cluster_keep_their_order() -> None:
    inbox = flooded(3, 7, 9)
    order: list[Arrival] = []
    while taken := inbox.take(FRESH):
        order += taken
        inbox.settle()
    for cluster in (LOUD, QUIET):
        own = [one.offset for one in order if one.command.cluster == cluster]
        assert own == sorted(own)
    assert sorted(offsets(tuple(order))) == list(range(12))


def test_the_cursor_passes_what_was_early_when_it_comes_to_it() -> None:
    inbox = flooded(2, 3, count=5)
    cursors = CURSORS
    seen = []
    while taken := inbox.take((cursors[0].next_offset, 0, 0, 0), (frozenset(cursors[0].ahead), *NOBODY[1:])):
        cursors = following(cursors, taken[:1])
        inbox.settle(1)
        seen.append((cursors[0].next_offset, cursors[0].ahead))
    # Each run begins with the one that came first.
    assert seen == [(1, ()), (2, ()), (3, ()), (4, ()), (5, ())]
    whole = flooded(2, 3, count=5)
    first = whole.take(FRESH)
    assert moved(CURSORS, first[:2]) == Cursor("topic-0", 1, (2,))
    assert moved(CURSORS, first) == Cursor("topic-0", 5)


def test_a_gap_before_an_early_one_does_not_keep_it_in_the_log_for_ever() -> None:
    """A marker of a transaction stands at an offset of its own."""
    before = (Cursor("topic-0", 5, (7,)), *CURSORS[1:])
    assert moved(before, (arrival(5),)) == Cursor("topic-0", 6, (7,))
    assert moved(before, (arrival(5), arrival(8))) == Cursor("topic-0", 9)


def test_a_successor_that_reads_again_decides_nothing_twice() -> None:
    inbox = flooded(10, 11)
    taken = inbox.take((3, 0, 0, 0), (frozenset({10, 11}), *NOBODY[1:]))
    assert offsets(taken) == [3, 4, 5, 6, 7]
    assert early(taken) == []
    inbox.settle()
    assert offsets(inbox.take((8, 0, 0, 0), (frozenset({10, 11}), *NOBODY[1:]))) == [8, 9]
    inbox.settle()
    assert (inbox.count, inbox.bytes) == (0, 0)


def test_what_goes_back_is_not_early_for_good() -> None:
    inbox = flooded(4, count=5)
    first = inbox.take(FRESH)
    inbox.give_back()
    assert inbox.take(FRESH) == first
    inbox.settle(1)
    assert [one.is_early for one in inbox.take((1, 0, 0, 0))] == [False, True, False, False]


def test_a_cluster_in_which_a_large_command_is_decided_holds_up_nobody_else() -> None:
    inbox = flooded(2, 4, count=6)
    taken = inbox.take(FRESH, NOBODY, frozenset({LOUD}))
    assert offsets(taken) == early(taken) == [2, 4]
    inbox.settle()
    assert inbox.take(FRESH, (frozenset({2, 4}), *NOBODY[1:]), frozenset({LOUD, QUIET})) == ()
    assert offsets(inbox.take(FRESH, (frozenset({2, 4}), *NOBODY[1:]))) == [0, 1, 3, 5]


def test_a_cancel_that_goes_first_does_so_beside_a_flood_in_its_own_topic() -> None:
    inbox = Inbox()
    for offset in range(8):
        inbox.add(arrival(offset, QUIET if offset == 7 else LOUD, topic=1))
    assert 7 in offsets(inbox.take(FRESH))


def test_no_more_is_early_than_a_record_should_name() -> None:
    inbox = Inbox()
    for offset in range(2 * MOST_EARLY + 400):
        inbox.add(arrival(offset, LOUD if offset < 400 else QUIET, size=CLOSE_BYTES // 2000))
    taken = inbox.take(FRESH)
    assert len(early(taken)) <= MOST_EARLY
