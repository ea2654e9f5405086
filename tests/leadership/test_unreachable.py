"""Leadership is not given to a broker that Drover cannot reach, nor is what such a broker leads without a leader."""

import pytest

from drover.facts import PartitionFacts
from drover.reconcile.leaders.judgement import LeaderPolicy, Reorder, Wait, judge


def test_a_demoted_leader_gives_up_to_a_broker_that_can_be_reached() -> None:
    seen = PartitionFacts("id", 1, (1, 3, 2), (1, 3, 2))
    found = judge(seen, None, LeaderPolicy(listed={1}, live={1, 2}))
    assert found == Reorder(canonical=(1, 3, 2), replicas=(2, 3, 1), elects=True)


def test_where_only_an_unreachable_broker_could_lead_that_is_said_with_the_remedy() -> None:
    seen = PartitionFacts("id", 1, (3, 1), (1, 3))
    found = judge(seen, None, LeaderPolicy(listed={1}, live={1, 2}))
    assert isinstance(found, Wait)
    assert "broker 3 is unreachable" in found.detail
    assert "add that listener" in found.detail


@pytest.mark.parametrize("balances", [False, True])
def test_nobody_is_elected_where_an_unreachable_broker_leads(*, balances: bool) -> None:
    seen = PartitionFacts("id", None, (3, 1, 2), (3, 1, 2), leader_lacks_listener=True)
    assert judge(seen, None, LeaderPolicy(listed=(), live={1, 2}, balances=balances)) is None
