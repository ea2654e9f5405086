"""A throttle rises just enough, and no further than its operator allows."""

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from drover.decide.copy_pace import CopyPace
from drover.reconcile.throttles.throttle_raiser import risen_rate

RATES = st.integers(1, 10**12)


def behind(leader_rate: int, copy_rate: int) -> CopyPace:
    return CopyPace(4, leader_rate, copy_rate, falls_behind=True, catches_up=False)


def test_what_the_copy_lacks_the_rate_lacks() -> None:
    assert risen_rate(10_000_000, 99_000_000, [behind(3_000_000, 2_000_000)]) == 16_500_000


def test_the_copy_that_lacks_most_counts() -> None:
    copies = [behind(3_000_000, 2_900_000), behind(4_000_000, 2_000_000)]
    assert risen_rate(10_000_000, 99_000_000, copies) == 22_000_000


def test_a_copy_that_got_nothing_doubles_the_rate() -> None:
    assert risen_rate(10_000_000, 99_000_000, [behind(5, 0)]) == 22_000_000


def test_the_bound_is_the_end() -> None:
    assert risen_rate(10_000_000, 12_000_000, [behind(4_000_000, 1_000_000)]) == 12_000_000


@given(rate=RATES, more=RATES, leader=RATES, copy=RATES)
def test_it_never_falls_and_suffices_where_the_bound_allows(rate: int, more: int, leader: int, copy: int) -> None:
    risen = risen_rate(rate, rate + more, [behind(leader, copy)])
    assert rate <= risen <= rate + more
    if risen < rate + more and leader > copy:
        assert Fraction(copy * risen, rate) > leader or risen < 20
