"""What `status` shows of a folded state."""

import msgspec
from msgspec.structs import replace

from drover.cli.status import status_cells, summary, unmanaged_cells
from drover.client.transfers import Transfers
from drover.client.views.broker_rows import broker_rows
from drover.client.views.status_rows import cluster_document, notices, status_rows, totals, unmanaged_rows
from drover.events.clusters import Budgets
from drover.events.partitions import TopicPartition
from drover.events.plans import Stepping
from drover.events.progress import Progress, ProjectionSample, ReplicaBytes
from drover.events.reassignments import Blocker
from drover.events.throttles import Rates
from drover.state.cluster import ClusterState
from drover.state.identity import Outage
from drover.state.phase import Phase
from drover.state.plans import Plan
from drover.state.reassignment import Block, Reassignment, Step
from drover.state.scheduling import ChangedLimit, Freeze
from drover.state.throttles import BrokerThrottle
from drover.state.unmanaged import UnmanagedMove


def move(partition: int, phase: Phase, step: Step | None = None, block: Block | None = None) -> Reassignment:
    return Reassignment(
        key=TopicPartition("t", partition), topic_id="id", plan="p", number=partition, original=(1, 2), target=(3, 4),
        created_ms=0, phase=phase, since_ms=1000, current=(1, 2), step=step, block=block,
    )  # fmt: skip


FIRST_STEP = Step(number=1, final=False, expected=(1, 2), replicas=(1, 2, 3), leader=1)


def copying(created_ms: int = 0) -> ClusterState:
    state = ClusterState("prod", kafka_cluster_id="kafka-1")
    state.plans["p"] = Plan("p", "ana", "r", 0)
    state.put(move(0, Phase.PENDING))
    state.put(replace(move(1, Phase.COPYING, FIRST_STEP), bytes_copied=50, created_ms=created_ms))
    return state


def samples(*pairs: tuple[int, int]) -> Transfers:
    transfers = Transfers()
    for at_ms, done in pairs:
        transfers.see(
            Progress(
                cluster="prod", topic="t", partition=1, epoch=1, at_ms=at_ms, step=1, bytes_done=done,
                bytes_total=1000, adding=(),
            )
        )  # fmt: skip
    return transfers


def test_what_moves_comes_before_what_waits() -> None:
    rows = status_rows(copying(), Transfers())
    assert [(row.partition, row.state) for row in rows] == [(1, "copying"), (0, "pending")]


def test_bytes_cover_the_steps_before_and_after() -> None:
    row = status_rows(copying(), samples((0, 100), (1000, 300)))[0]
    assert (row.bytes_done, row.bytes_total) == (350, 2050)
    assert row.rate == 200.0
    assert row.eta_ms == 8500
    assert row.document()["percent"] == 17.1


def test_without_samples_nothing_is_made_up() -> None:
    row = status_rows(copying(), Transfers())[0]
    assert (row.bytes_total, row.rate, row.eta_ms, row.fraction, row.document()["percent"]) == (None,) * 5


def test_a_blocked_move_says_why_and_since_when() -> None:
    state = ClusterState("prod", kafka_cluster_id="kafka-1")
    state.put(move(0, Phase.CONFIRMED, FIRST_STEP, Block(Blocker.NO_LEADER, "bring it back", 7000)))
    (row,) = status_rows(state, Transfers())
    assert (row.waiting, row.since_ms) == ("no-leader: bring it back", 7000)


def test_totals_and_the_line_for_people() -> None:
    rows = status_rows(copying(), samples((0, 100), (1000, 300)))
    assert totals(rows)["states"] == {"copying": 1, "pending": 1}
    assert summary(rows) == "2 reassignments: 1 copying, 1 pending; 350 B of 2.0 kB copied, 200 B/s"
    assert summary([]) == "No reassignment is under way."


def test_a_row_for_people() -> None:
    row = status_rows(copying(), samples((0, 100), (1000, 300)))[0]
    assert status_cells(row, 61_000, several=True) == (
        "prod/t:1", "p", "copying", "1", "1,2 → 3,4", "350 B", "2.0 kB", "17", "200 B/s", "8s", "1m00s", "",
    )  # fmt: skip


def test_what_an_operator_must_know_is_said_first() -> None:
    state = copying()
    state.freeze = Freeze("ann", "why", 5)
    state.blacklist = (3,)
    state.failed_brokers = {2: 17}
    assert len(list(notices(state))) == 3
    document = cluster_document(state, "w1", 4)
    assert document["failed_brokers"] == [{"broker": 2, "at_ms": 17}]
    assert document["frozen"] == {"by": "ann", "reason": "why", "since_ms": 5}


def test_moves_of_others_are_shown_those_that_never_end_first() -> None:
    state = copying()
    state.unmanaged[TopicPartition("t", 7)] = UnmanagedMove((3, 1, 2), (3,), (2,), 1000)
    state.unmanaged[TopicPartition("t", 8)] = UnmanagedMove((1, 2, 3), (3,), (3,), 1000)
    stuck, other = unmanaged_rows(state)
    assert (stuck.partition, stuck.document()["never_ends"]) == (8, (3,))
    assert "`drover repair`" in stuck.remedy
    assert "repair" not in other.document()["remedy"]
    assert unmanaged_cells(other, 61_000, several=True)[:5] == ("prod/t:7", "3,1,2", "3", "2", "1m00s")
    assert any("drover repair" in line for line in notices(state))


def test_a_throttle_that_outlives_its_moves_is_named() -> None:
    """That of a broker which never comes back stays in the ledger."""
    state = ClusterState("prod")
    state.broker_throttles[4] = BrokerThrottle(Rates(None, None), Rates(5, 5), pending=True, release=True)
    (line,) = notices(state)
    assert "broker 4" in line


def test_a_projection_that_is_behind_is_named_with_what_it_waits_for() -> None:
    state = ClusterState("prod")
    well = ProjectionSample(cluster="prod", writer="w", role="writing", at_ms=1, lag_events=3, lag_ms=20)
    assert list(notices(state, well)) == []
    (line,) = notices(state, msgspec.structs.replace(well, lag_events=4000, lag_ms=9000, error="ZooKeeper is away"))
    assert line == "prod: ZooKeeper is 4,000 events and 9 s behind: ZooKeeper is away"
    assert cluster_document(state, "w1", 4, well)["projection"]["lag_events"] == 3
    assert cluster_document(state, "w1", 4)["projection"] is None


def test_bytes_of_the_past_have_no_rate_and_say_since_when() -> None:
    (row, _) = status_rows(copying(), samples((0, 100), (1000, 300)), now_ms=42_000)
    assert (row.rate, row.eta_ms, row.seen_ms, row.bytes_done) == (None, None, 1000, 350)
    assert "last seen 41s ago" in status_cells(row, 42_000, several=False)
    assert summary([row]) == "1 reassignment: 1 copying; 350 B of 2.0 kB copied"


def test_a_move_that_was_asked_for_again_has_no_bytes_of_the_one_before() -> None:
    stalled = [(at_ms, 900) for at_ms in range(0, 60_001, 5_000)]
    before, after = copying(), copying(created_ms=62_000)
    row = status_rows(before, samples(*stalled))[0]
    assert (row.bytes_done, row.has_stalled) == (950, True)
    row = status_rows(after, samples(*stalled))[0]
    assert (row.bytes_total, row.rate, row.waiting) == (None, None, None)
    row = status_rows(after, samples(*stalled, (63_000, 0), (64_000, 200)))[0]
    assert (row.bytes_done, row.rate, row.has_stalled) == (250, 200.0, False)


def test_a_broker_receives_nothing_for_a_move_that_has_ended() -> None:
    transfers = Transfers()
    for at_ms, held in ((0, 100), (1000, 300), (2000, 300), (3000, 350)):
        transfers.see(
            Progress(
                cluster="prod", topic="t", partition=1, epoch=1, at_ms=at_ms, step=1, bytes_done=held,
                bytes_total=1000, adding=(ReplicaBytes(3, held),), leader=1,
            )
        )  # fmt: skip
    assert [(row.broker, row.rate_in) for row in broker_rows(copying(created_ms=1500), transfers) if row.copies_in] == [
        (3, 50)
    ]


def test_what_is_unknown_is_counted_and_not_summed_up_as_nothing() -> None:
    state = copying()
    state.put(move(2, Phase.COPYING, FIRST_STEP))
    rows = status_rows(state, samples((0, 100), (1000, 300)))
    assert totals(rows)["bytes_unknown"] == 1
    assert "copied without 1 of unknown size" in summary(rows)


def test_a_cluster_out_of_reach_is_told_with_the_moment() -> None:
    state = ClusterState("prod")
    state.outage = Outage(1_790_000_000_000, "no broker answers")
    assert list(notices(state, None, 1_790_000_041_000)) == ["prod has been out of reach for 41 s: no broker answers"]
    assert cluster_document(state, "w", 1)["out_of_reach"]["since_ms"] == 1_790_000_000_000


def test_limits_that_commands_have_set_are_told_with_who_set_them() -> None:
    state = ClusterState("prod")
    state.changed_limits = {"max_moves_per_broker": ChangedLimit(1200, 5, "ann", "a quiet night", 1)}
    assert cluster_document(state, "w-1", 1)["changed_limits"]["max_moves_per_broker"]["reason"] == "a quiet night"
    (line,) = notices(state)
    assert line == ("prod: limits that commands have set: max_moves_per_broker 1,200 (ann): `drover limits show`")


def test_the_limits_of_a_cluster_are_told_under_their_first_names() -> None:
    state = ClusterState("prod")
    limits = cluster_document(state, "w-1", 1)["limits"]
    assert msgspec.json.decode(msgspec.json.encode(limits)) == {
        "max_partitions_in_flight": 1250,
        "max_moves_per_broker": 5,
        "max_replicas_per_step": 1,
        "repairs_by_itself": False,
        "stepping": "grow",
        "healing": None,
        "max_leader_movements": 1000,
        "lazy_leadership": False,
        "balances_after_return": False,
        "budgets": dict.fromkeys(Budgets.__struct_fields__),
        "adapts_to_health": False,
        "windows": None,
    }
    state.limits = replace(state.limits, stepping=Stepping.SWAP)
    assert cluster_document(state, "w-1", 1)["limits"]["stepping"] == "swap"
