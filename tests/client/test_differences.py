"""What is different between two states of a cluster."""

from typing import Any

from msgspec.structs import replace

from drover.client import differences
from drover.client.differences import Change, diff
from drover.client.time_travel import Ended
from drover.events.partitions import TopicPartition
from drover.events.throttles import Rates
from drover.fold.snapshot import CLUSTER_FIELDS
from drover.state.cluster import ClusterState
from drover.state.phase import Phase
from drover.state.plans import Plan, PlanStatus
from drover.state.reassignment import Reassignment
from drover.state.scheduling import Freeze, Limits
from drover.state.throttles import BrokerThrottle

KEY = TopicPartition("orders", 0)
PLAN = Plan(name="friday", by="ana", reason="drain", opened_ms=1)
FREEZE = Freeze("bob", "incident", 5)


def state(**fields: Any) -> ClusterState:
    made = ClusterState("prod")
    for name, value in fields.items():
        setattr(made, name, value)
    return made


def moving(phase: Phase = Phase.COPYING, number: int = 1, key: TopicPartition = KEY) -> Reassignment:
    return Reassignment(
        key=key, topic_id="id", plan="friday", number=number, original=(1, 2, 3), target=(2, 3, 4), created_ms=1,
        phase=phase, since_ms=2, current=(1, 2, 3),
    )  # fmt: skip


def ended(key: TopicPartition = KEY, cluster: str = "prod", how: str = "reassignment-completed") -> Ended:
    return Ended(cluster, key, how, 7, 9)


# They only count or date what others tell.
SILENT = {
    "name",
    "next_number",
    "ended_plans",
    "copied",
    "healed_brokers",
    "lists_left",
    "lists_before",
    "lists_dropped_ms",
    "heals_planned",
    "heal_bytes",
    "heal_superseded",
    "recent_returns",
}


def told(changes: tuple[Change, ...]) -> list[tuple[str, str, str]]:
    return [(change.kind, change.name, change.what) for change in changes]


def test_everything_that_a_state_has_is_compared() -> None:
    assert {name for name, _ in (*differences._ENTRIES, *differences._VALUES)} == set(CLUSTER_FIELDS) - SILENT


def test_equal_states_have_no_difference() -> None:
    one = state(plans={"friday": PLAN}, reassignments={KEY: moving()}, freeze=FREEZE)
    assert diff(one, one.copy()) == ()


def test_what_came_and_what_went_is_told_in_the_order_of_kinds() -> None:
    before = state(failed_brokers={3: 1}, freeze=FREEZE)
    after = state(plans={"friday": PLAN}, reassignments={KEY: moving()}, blacklist=(1,), failed_brokers={4: 2})
    assert told(diff(before, after)) == [
        ("freeze", "", "unfrozen"),
        ("blacklist", "", "changed"),
        ("plan", "friday", "opened"),
        ("reassignment", "orders:0", "begun"),
        ("failed broker", "3", "returned"),
        ("failed broker", "4", "failed"),
    ]
    assert told(diff(after, before))[0] == ("freeze", "", "frozen")


def test_only_the_fields_that_differ_are_told_of_what_has_changed() -> None:
    (change,) = diff(state(reassignments={KEY: moving()}), state(reassignments={KEY: moving(Phase.CONFIRMED)}))
    assert (change.what, change.before, change.after) == ("changed", {"phase": "copying"}, {"phase": "confirmed"})
    (limits,) = diff(state(), state(limits=Limits(max_moves_per_broker=9)))
    assert (limits.before, limits.after) == ({"max_moves_per_broker": 5}, {"max_moves_per_broker": 9})


def test_a_plan_that_ended_says_how() -> None:
    for status in (PlanStatus.FINISHED, PlanStatus.CANCELLED):
        (change,) = diff(state(plans={"p": PLAN}), state(plans={"p": replace(PLAN, status=status)}))
        assert change.what == status.value


def test_a_reassignment_that_ended_says_how() -> None:
    (change,) = diff(state(reassignments={KEY: moving()}), state(), [ended()])
    assert (change.what, change.detail, change.after) == ("ended", "completed", None)


def test_what_began_and_ended_in_between_is_told() -> None:
    other, elsewhere = TopicPartition("orders", 1), ended(cluster="another")
    changes = diff(
        state(reassignments={KEY: moving(number=1)}),
        state(reassignments={KEY: moving(number=3)}),
        [ended(how="reassignment-failed"), ended(other, how="reassignment-rolled-back"), elsewhere],
    )
    assert [(change.name, change.what, change.detail) for change in changes] == [
        ("orders:0", "ended and begun again", "failed"),
        ("orders:1", "begun and ended", "rolled-back"),
    ]


def test_a_throttle_is_told_with_what_stood_there() -> None:
    throttle = BrokerThrottle(Rates(None, None), Rates(5, 5), pending=True, release=False)
    (change,) = diff(state(), state(broker_throttles={1: throttle}))
    assert (change.kind, change.name, change.what) == ("broker throttle", "1", "set")
    assert change.document()["after"]["intended"] == {"leader": 5, "follower": 5}
