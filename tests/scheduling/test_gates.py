"""Every gate has a code and a severity, says why it is shut and what opens it, and is the only one to word that."""

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from drover.events.clusters import Budgets, HoldRole
from drover.events.partitions import TopicPartition
from drover.events.traits import Completion, Retarget, Traits
from drover.reconcile.gates import GATES, Budget, Gate, Severity, Start, Uplink, View, waiting_at
from drover.state.adaptation import Suspension
from drover.state.broker_directions import BrokerDirection, directions_of
from drover.state.cluster import ClusterState
from drover.state.plans import Pause
from drover.state.scheduling import ClosedWindow, Freeze, HeldBroker, Limits
from drover.state.slot_share import WHOLE_SLOT

KEY = TopicPartition("orders", 0)
START = Start(
    KEY,
    "friday",
    5,
    directions_of((4,), 1),
    (Uplink("a", "out"), Uplink("b", "in")),
    1,
    moves_leader=True,
    is_pending=True,
)


class Taken(View):
    """A cluster in which other moves have taken something of everything."""

    def uplink_taken(self, uplink: Uplink, key: TopicPartition) -> int:
        del uplink, key
        return WHOLE_SLOT

    def budget_taken(self, budget: Budget) -> int:
        del budget
        return 1

    def throttle_entries(self, topic: str) -> int:
        del topic
        return 2000


def cluster() -> ClusterState:
    """A cluster with one copy out of broker 1 and one into broker 4, on which another one may begin."""
    state = ClusterState("prod")
    state.kafka_cluster_id = "kafka"
    state.limits = Limits(budgets=Budgets(max_moves_per_rack=2, max_replica_copies_in_flight=2, max_bytes_in_flight=2))
    for direction in (BrokerDirection(1, "out"), BrokerDirection(4, "in")):
        state.moves.loads[direction], state.moves.slots[direction] = 1, WHOLE_SLOT
    state.moves.in_flight[TopicPartition("other", 0)] = None
    state.moves.bytes_in_flight = 1
    return state


def limited(**limits: int) -> Callable[[ClusterState], None]:
    def limit(state: ClusterState) -> None:
        own = {name: value for name, value in limits.items() if hasattr(state.limits, name)}
        budgets = {name: value for name, value in limits.items() if name not in own}
        state.limits = replace(state.limits, **own, budgets=replace(state.limits.budgets, **budgets))

    return limit


def freeze(state: ClusterState) -> None:
    state.freeze = Freeze("ann", "incident", 9)


def close(state: ClusterState) -> None:
    state.closed_windows[""] = ClosedWindow("sat 00:00-24:00", 1_772_841_600_000, 9)


def close_plan(state: ClusterState) -> None:
    state.closed_windows["friday"] = ClosedWindow("sun 00:00-24:00", 1_772_928_000_000, 9)


def migrate(state: ClusterState) -> None:
    state.traits = Traits(
        kafka="3.9", completion=Completion.ADDED, retarget=Retarget.ORIGINAL, is_known=True, zookeeper_mode=True,
        with_elr=False, takes_dead_destinations=True, migrates=True,
    )  # fmt: skip


def pause(state: ClusterState) -> None:
    state.paused_plans["friday"] = Pause("ann", "busy", 9)


def suspend(state: ClusterState) -> None:
    state.suspend(Suspension(1, (TopicPartition("late", 0),), 9))


def hold(state: ClusterState) -> None:
    state.held_brokers[4] = HeldBroker("ann", "its disk", 9, HoldRole.DESTINATION)


def forget(state: ClusterState) -> None:
    state.kafka_cluster_id = None


SHUT: dict[str, tuple[Callable[[ClusterState], None], str]] = {
    "cluster-unknown": (forget, "has not answered"),
    "frozen": (freeze, "frozen by ann (incident): `drover unfreeze`"),
    "window-closed": (close, "(sat 00:00-24:00): the next one opens at 2026-03-07T00:00Z"),
    "migrating": (migrate, "migrated from ZooKeeper"),
    "plan-paused": (pause, "paused by ann (busy): `drover resume friday`"),
    "plan-window-closed": (
        close_plan,
        "no maintenance window of plan friday is open (sun 00:00-24:00): the next one opens at 2026-03-08T00:00Z",
    ),
    "below-min-isr": (suspend, "1 partition has fewer replicas in sync"),
    "max-partitions-in-flight": (limited(max_partitions_in_flight=1), "max_partitions_in_flight is 1"),
    "broker-held": (hold, "broker 4 is held as a destination by ann (its disk): `drover broker release 4`"),
    "broker-slots": (limited(max_moves_per_broker=1), "slots of broker 1 (1 of 1 copies out)"),
    "max-moves-per-rack": (limited(max_moves_per_rack=1), "out of rack a is full"),
    "max-replica-copies-in-flight": (limited(max_replica_copies_in_flight=1), "max_replica_copies_in_flight is 1"),
    "max-bytes-in-flight": (limited(max_bytes_in_flight=1), "max_bytes_in_flight is 1"),
    "max-leader-movements": (limited(max_leader_movements=1), "max_leader_movements is 1"),
    "throttled-replicas-full": (lambda _: None, "the list of throttled replicas of topic orders is full"),
}


def test_an_open_cluster_lets_a_step_begin() -> None:
    assert waiting_at(START, Taken(cluster())) is None


@pytest.mark.parametrize("gate", GATES, ids=lambda gate: gate.code)
def test_each_gate_says_why_it_is_shut_what_opens_it_and_since_when(gate: Gate) -> None:
    state = cluster()
    shut, words = SHUT[gate.code]
    shut(state)
    waiting = waiting_at(START._replace(entries=1), Taken(state), GATES[GATES.index(gate) :])
    assert waiting is not None
    assert waiting.code == gate.code
    assert words in str(waiting)
    assert waiting.remedy
    assert waiting.since_ms in {5, 9}


def test_each_gate_has_a_code_of_its_own_and_what_somebody_asked_for_is_no_note() -> None:
    assert len({gate.code for gate in GATES}) == len(GATES) == len(SHUT)
    asked = {gate.code for gate in GATES if gate.severity is Severity.WARN}
    assert asked == {"frozen", "migrating", "plan-paused", "broker-held"}


def test_what_copies_nothing_passes_where_only_copies_are_limited() -> None:
    state = cluster()
    for limit in ("broker-slots", "max-moves-per-rack", "max-replica-copies-in-flight", "max-bytes-in-flight"):
        SHUT[limit][0](state)
    suspend(state)
    assert waiting_at(Start(KEY, "friday"), Taken(state)) is None


def test_what_is_in_flight_needs_no_further_slot_of_the_cluster() -> None:
    state = cluster()
    SHUT["max-partitions-in-flight"][0](state)
    assert waiting_at(START._replace(is_pending=False), Taken(state)) is None


def test_what_exceeds_a_limit_by_itself_goes_alone() -> None:
    state = ClusterState("prod")
    state.kafka_cluster_id = "kafka"
    state.limits = Limits(max_moves_per_broker=1, budgets=Budgets(max_replica_copies_in_flight=1))
    assert waiting_at(Start(KEY, "friday", directions=directions_of((4, 5), 1), copies=2), View(state)) is None
