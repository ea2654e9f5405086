"""Kafka's own unit tests of the controller's arithmetic as vectors; each case is named by its number in the catalogue.

Version-dependent vectors follow 4.3.1, which was seen live; where that differs from 3.8 the case says so.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace

import pytest

from drover.testing.controller_model import (
    Election,
    Partition,
    Rules,
    altered,
    cancelled,
    completes,
    delta,
    reversal,
    settle,
)


def brokers(digits: str) -> tuple[int, ...]:
    """Write broker lists as Kafka's tests are told: `321` is [3, 2, 1]."""
    return tuple(int(digit) for digit in digits)


def moving(start: str, target: str, isr: str, leader: int | None = None) -> Partition:
    """Return a partition on its way from `start` to `target` whose ISR has become `isr`."""
    replicas, adding, removing = delta(brokers(start), brokers(target))
    return Partition(replicas, brokers(isr), leader, adding, removing)


def everybody(_broker: int) -> bool:
    return True


def nobody(_broker: int) -> bool:
    return False


def all_but(gone: Iterable[int]) -> Callable[[int], bool]:
    unwanted = frozenset(gone)
    return lambda broker: broker not in unwanted


FOO = Partition(brokers("213"), brokers("213"), 1)
BAR = Partition(brokers("1234"), brokers("123"), 1, adding=(4,), removing=(1,))
BAZ = Partition(brokers("213"), brokers("13"), 3)
WITHOUT_3 = all_but([3])


@pytest.mark.parametrize(
    ("start", "target", "adding", "removing", "replicas"),
    [
        pytest.param("321", "321", "", "", "321", id="TV-001"),
        pytest.param("321", "36215", "56", "", "36215", id="TV-002"),
        pytest.param("3210", "31", "", "02", "3102", id="TV-003"),
        pytest.param("3210", "7319", "79", "02", "731902", id="TV-004"),
        pytest.param("3210", "0132", "", "", "0132", id="TV-005"),
    ],
)
def test_an_alter_splits_into_added_and_removed_replicas_in_ascending_order(
    start: str, target: str, adding: str, removing: str, replicas: str
) -> None:
    assert delta(brokers(start), brokers(target)) == (brokers(replicas), brokers(adding), brokers(removing))


@pytest.mark.parametrize(
    ("partition", "over"),
    [
        pytest.param(moving("012", "345", isr="01234"), False, id="TV-006"),
        pytest.param(Partition(brokers("012"), brokers("012"), 0), False, id="TV-007"),
        pytest.param(moving("012", "345", isr="012345"), True, id="TV-008"),
        pytest.param(moving("012", "013", isr="0123"), True, id="TV-009"),
        # 3.8 to 4.2 waited for 0 and 1 here; 4.3.1 waits for the added replica only, as versions before 3.8 did.
        pytest.param(moving("012", "013", isr="3"), True, id="TV-011"),
        pytest.param(moving("0123", "03", isr="012"), False, id="TV-268-a-shrink-needs-its-whole-target-in-sync"),
        pytest.param(moving("0123", "03", isr="03"), True, id="TV-268-and-completes-with-it"),
        pytest.param(moving("012", "123", isr="013"), True, id="TV-269-a-kept-dead-replica-does-not-block"),
        pytest.param(
            Partition(brokers("1234"), brokers("1234"), 1, adding=(4,), removing=(4,)),
            False,
            id="a-broker-in-both-lists-never-completes",
        ),
    ],
)
def test_a_move_is_over_by_the_rule_of_4_3_1(partition: Partition, over: bool) -> None:
    assert completes(partition) is over


@pytest.mark.parametrize(
    ("start", "target", "isr", "left"),
    [
        pytest.param("012", "345", "012345", ("345", "345"), id="TV-008"),
        pytest.param("012", "013", "0123", ("013", "013"), id="TV-009"),
    ],
)
def test_a_completed_move_leaves_the_target_and_its_in_sync_members(
    start: str, target: str, isr: str, left: tuple[str, str]
) -> None:
    partition = moving(start, target, isr, leader=0)
    after = settle(partition, partition, everybody)
    assert (after.replicas, after.isr, after.moving) == (brokers(left[0]), brokers(left[1]), False)


@pytest.mark.parametrize(
    ("adding", "removing", "in_progress"),
    [
        pytest.param("3", "2", True, id="TV-010-both"),
        pytest.param("", "2", True, id="TV-010-removing"),
        pytest.param("3", "", True, id="TV-010-adding"),
        pytest.param("", "", False, id="TV-010-neither"),
    ],
)
def test_a_partition_moves_while_anything_is_added_or_removed(adding: str, removing: str, in_progress: bool) -> None:
    partition = Partition(brokers("0132"), brokers("012"), 0, brokers(adding), brokers(removing))
    assert partition.moving is in_progress


@pytest.mark.parametrize("original", [pytest.param({0, 1, 2}, id="TV-012")])
def test_the_original_members_are_known_while_moving(original: set[int]) -> None:
    assert set(moving("012", "013", isr="012").original) == original


@pytest.mark.parametrize(
    ("partition", "replicas", "isr", "unclean"),
    [
        pytest.param(Partition(brokers("321"), brokers("32"), 3), "321", "32", False, id="TV-020"),
        pytest.param(Partition(brokers("321"), brokers("32"), 3, removing=(1, 2)), "321", "32", False, id="TV-021"),
        pytest.param(Partition(brokers("45321"), brokers("452"), 4, (4, 5)), "321", "2", False, id="TV-022"),
        pytest.param(Partition(brokers("45321"), brokers("452"), 4, (4, 5), (2,)), "321", "2", False, id="TV-023"),
        pytest.param(Partition(brokers("45321"), brokers("45"), 4, (4, 5), (2,)), "321", "3", True, id="TV-024"),
    ],
)
def test_a_cancel_drops_the_added_replicas(partition: Partition, replicas: str, isr: str, unclean: bool) -> None:
    back = reversal(partition)
    assert (back.replicas, back.isr, back.unclean) == (brokers(replicas), brokers(isr), unclean)


PREFERRED, NORMAL, UNCLEAN = Election.PREFERRED, Election.NORMAL, Election.UNCLEAN


@pytest.mark.parametrize(
    ("before", "changes", "election", "electable", "leader"),
    [
        pytest.param(FOO, {}, PREFERRED, WITHOUT_3, 2, id="TV-030-preferred"),
        pytest.param(FOO, {}, NORMAL, WITHOUT_3, 1, id="TV-030-normal"),
        pytest.param(FOO, {}, UNCLEAN, WITHOUT_3, 1, id="TV-030-unclean"),
        pytest.param(FOO, {"isr": (1, 3)}, NORMAL, WITHOUT_3, 1, id="TV-031-normal"),
        pytest.param(FOO, {"isr": (1, 3)}, UNCLEAN, WITHOUT_3, 1, id="TV-031-unclean"),
        pytest.param(FOO, {"isr": (3,)}, NORMAL, WITHOUT_3, None, id="TV-032"),
        pytest.param(FOO, {"replicas": (2, 1, 3, 4), "isr": (4,)}, UNCLEAN, WITHOUT_3, 4, id="TV-034"),
        pytest.param(BAZ, {}, PREFERRED, everybody, 3, id="TV-035-preferred"),
        pytest.param(BAZ, {}, NORMAL, everybody, 3, id="TV-035-normal"),
        pytest.param(BAZ, {}, UNCLEAN, everybody, 3, id="TV-035-unclean"),
        pytest.param(FOO, {"isr": (2, 3)}, NORMAL, WITHOUT_3, 2, id="TV-038"),
    ],
)
def test_a_clean_leader_is_chosen_by_the_kind_of_election(
    before: Partition,
    changes: dict[str, tuple[int, ...]],
    election: Election,
    electable: Callable[[int], bool],
    leader: int | None,
) -> None:
    wanted = replace(before, isr=changes.get("isr", before.isr), replicas=changes.get("replicas", before.replicas))
    after = settle(before, wanted, electable, election)
    assert (after.leader, after.recovering, after.isr) == (leader, False, wanted.isr)


@pytest.mark.parametrize("number", ["TV-033", "TV-044"])
def test_an_unclean_election_takes_the_first_live_replica_alone(number: str) -> None:
    after = settle(FOO, replace(FOO, isr=(3,)), WITHOUT_3, Election.UNCLEAN)
    assert (after.leader, after.isr, after.recovering) == (2, (2,), True)


@pytest.mark.parametrize(
    ("before", "election", "electable"),
    [
        pytest.param(FOO, NORMAL, WITHOUT_3, id="TV-036-foo"),
        pytest.param(BAR, NORMAL, WITHOUT_3, id="TV-036-bar"),
        pytest.param(BAZ, PREFERRED, everybody, id="TV-036-baz"),
    ],
)
def test_nothing_asked_is_nothing_changed(
    before: Partition, election: Election, electable: Callable[[int], bool]
) -> None:
    assert settle(before, before, electable, election) == before


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        pytest.param(settle(FOO, replace(FOO, isr=(2, 1)), WITHOUT_3), replace(FOO, isr=(2, 1)), id="TV-037"),
        pytest.param(altered(FOO, (3, 2, 1), WITHOUT_3), replace(FOO, replicas=(3, 2, 1)), id="TV-039"),
        pytest.param(
            settle(BAR, replace(BAR, isr=(1, 2, 3, 4)), WITHOUT_3),
            Partition((2, 3, 4), (2, 3, 4), 2, leader_epoch=1),
            id="TV-040",
        ),
        pytest.param(cancelled(BAR, WITHOUT_3), Partition((1, 2, 3), (1, 2, 3), 1, leader_epoch=1), id="TV-041"),
        pytest.param(altered(FOO, (1, 2), WITHOUT_3), Partition((1, 2), (2, 1), 1, leader_epoch=1), id="TV-042"),
        pytest.param(
            altered(FOO, (1, 2, 3, 4), WITHOUT_3), replace(FOO, replicas=(1, 2, 3, 4), adding=(4,)), id="TV-043"
        ),
        pytest.param(
            settle(
                Partition((2, 3, 0, 1), (0, 1), 0, (2, 3), (0, 1)),
                Partition((2, 3, 0, 1), (0, 1, 2, 3), 0, (2, 3), (0, 1)),
                nobody,
            ),
            Partition((2, 3), (2, 3), None, leader_epoch=1, last_known_leader=0),
            id="TV-045-the-old-leader-is-demoted",
        ),
    ],
)
def test_a_change_becomes_one_record(after: Partition, expected: Partition) -> None:
    assert after == expected


@pytest.mark.parametrize(
    ("wanted", "epoch"),
    [
        # Metadata versions 3.4 and 3.5 bumped the leader epoch here; 3.6 and later, so 4.3.1, do not.
        pytest.param(replace(FOO, isr=(2, 1)), 0, id="TV-046"),
        pytest.param(replace(FOO, replicas=(2, 1, 3, 4), isr=(2, 1, 3, 4)), 0, id="TV-047"),
        pytest.param(replace(FOO, replicas=(2, 1, 4)), 1, id="TV-048"),
    ],
)
def test_the_leader_epoch_rises_only_when_the_leader_changes_or_a_replica_goes(wanted: Partition, epoch: int) -> None:
    assert settle(FOO, wanted, everybody).leader_epoch == epoch


def test_the_last_in_sync_replica_stays_electable_after_its_isr_is_empty() -> None:
    alone = Partition((4,), (4,), 4)
    dead = settle(alone, replace(alone, isr=()), nobody)
    assert (dead.leader, dead.isr, dead.elr) == (None, (), (4,))
    back = settle(dead, dead, everybody)
    assert (back.leader, back.isr, back.elr, back.recovering) == (4, (4,), (), False)


def test_a_replica_that_leaves_an_isr_below_min_isr_can_still_lead() -> None:
    pair = Partition((1, 2), (1, 2), 1)
    shrunk = settle(pair, replace(pair, isr=(1,)), all_but([2]), rules=Rules(min_isr=2))
    assert (shrunk.isr, shrunk.elr) == ((1,), (2,))
    both_gone = settle(shrunk, replace(shrunk, isr=()), nobody, rules=Rules(min_isr=2))
    assert (both_gone.leader, set(both_gone.elr)) == (None, {1, 2})
    assert settle(both_gone, both_gone, all_but([1]), rules=Rules(min_isr=2)).leader == 2
