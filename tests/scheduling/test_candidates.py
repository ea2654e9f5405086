"""The index of what waits: who is tried, in which order, and that nobody is forgotten."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from drover.reassignment.ports import Port
from drover.scheduling.candidates import Candidates, Where
from drover.scheduling.resources import Needs, Resource
from events.partitions import TopicPartition
from tests.reassignment.support import PATIENT

LIMIT = 2


def key_of(number: int) -> TopicPartition:
    return TopicPartition("orders", number)


def way(broker: int) -> Resource:
    return Port(broker, "in")


def ways(*brokers: int) -> Needs:
    return tuple(map(way, brokers))


def tried(candidates: Candidates) -> list[int]:
    found = []
    for candidate in candidates.ready():
        found.append(candidate.key.partition)
        candidates.drop(candidate.key)
    return found


def test_what_is_ready_is_tried_in_the_order_of_acceptance_and_in_flight_first() -> None:
    candidates = Candidates()
    for number, is_pending in ((3, 1), (1, 1), (7, 0), (2, 1)):
        candidates.offer(key_of(number), (is_pending, number))
    assert tried(candidates) == [7, 1, 2, 3]


def test_what_is_parked_comes_back_one_at_a_time_when_there_is_room_at_all_it_needs() -> None:
    candidates, full = Candidates(), {way(1), way(2)}

    def has_room(resource: Resource) -> bool:
        return resource not in full

    def lacking(needs: Needs) -> list[Resource]:
        return [one for one in needs if one in full]

    candidates.park(key_of(1), (1, 1), ways(1, 2), ways(1, 2))
    candidates.park(key_of(2), (1, 2), ways(1), ways(1))
    candidates.park(key_of(3), (1, 3), ways(1), ways(1))
    full.discard(way(1))
    candidates.wake_parked(has_room, lacking)
    assert [candidates.where(key_of(number)) for number in (1, 2, 3)] == [Where.PARKED, Where.READY, Where.PARKED]
    candidates.drop(key_of(2))
    candidates.wake_parked(has_room, lacking)
    assert candidates.where(key_of(3)) is Where.READY
    full.discard(way(2))
    candidates.wake_parked(has_room, lacking)
    assert tried(candidates) == [1, 3]


def test_one_that_was_woken_and_ends_before_it_is_tried_lets_the_next_one_come() -> None:
    """Simulation seed 3001006: the room that it had been woken for was offered to nobody else."""
    candidates = Candidates()
    for number in (1, 2):
        candidates.park(key_of(number), (1, number), ways(6), ways(6))
    candidates.wake_parked(lambda _: True, lambda _: [])
    candidates.drop(key_of(1))
    candidates.wake_parked(lambda _: True, lambda _: [])
    assert tried(candidates) == [2]


def test_looks_have_an_end_and_a_line_in_front_of_it() -> None:
    candidates = Candidates(max_looks=1)
    candidates.look(key_of(2), (1, 2), ways(4))
    candidates.look(key_of(3), (1, 3), ways(4))
    candidates.look(key_of(1), (1, 1), ways(5))
    assert set(candidates.looks) == {key_of(2)}
    assert (candidates.expected[way(4)], candidates.expected[way(5)]) == (2, 1)
    candidates.seen(key_of(2))
    candidates.wake_line()
    assert set(candidates.looks) == {key_of(1)}
    assert tried(candidates) == [2]
    assert candidates.expected[way(4)] == 1


def test_what_is_put_off_comes_back_at_its_time_or_when_it_is_seen() -> None:
    candidates = Candidates()
    candidates.put_off(key_of(1), (1, 1), 500)
    candidates.put_off(key_of(2), (1, 2), 900)
    assert candidates.next_due_ms() == 500
    candidates.wake_due(499)
    assert tried(candidates) == []
    candidates.seen(key_of(2))
    candidates.wake_due(500)
    assert tried(candidates) == [1, 2]
    assert candidates.next_due_ms() is None


@PATIENT
@given(st.lists(st.tuples(st.sets(st.integers(1, 5), min_size=1, max_size=3), st.integers(1, 4)), max_size=40))
def test_whoever_has_room_starts_as_in_a_scan_of_all(moves: Sequence[tuple[set[int], int]]) -> None:
    """Moves arrive and end: no move waits that has room at all it needs, and those before it come first."""
    candidates, running, loads = Candidates(), [], dict.fromkeys(ways(*range(1, 6)), 0)
    needs_of = {number: ways(*sorted(brokers)) for number, (brokers, _) in enumerate(moves)}

    def has_room(resource: Resource) -> bool:
        return loads[resource] < LIMIT

    def lacking(needs: Needs) -> list[Resource]:
        return [one for one in needs if not has_room(one)]

    def go() -> None:
        candidates.wake_parked(has_room, lacking)
        for candidate in candidates.ready():
            number = candidate.key.partition
            full = lacking(needs_of[number])
            if full:
                candidates.park(candidate.key, (1, number), needs_of[number], full)
            else:
                candidates.drop(candidate.key)
                running.append(number)
                for broker in needs_of[number]:
                    loads[broker] += 1
            if candidate.woken_by is not None:
                candidates.wake_next(candidate.woken_by, has_room, lacking)

    for number, (_, ends) in enumerate(moves):
        candidates.offer(key_of(number), (1, number))
        go()
        for ended in running[:ends] if number % 3 == 2 else ():
            running.remove(ended)
            for broker in needs_of[ended]:
                loads[broker] -= 1
        go()
        waiting = [one for one in range(number + 1) if candidates.where(key_of(one)) is not None]
        assert not [one for one in waiting if not lacking(needs_of[one])]
