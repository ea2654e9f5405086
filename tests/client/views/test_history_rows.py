"""The audit trail as rows: who, what, why, where."""

from collections.abc import Iterable
from typing import Any

import msgspec

from drover.cli.history import history_cells
from drover.client.history import FoldedLog, ValidRecord
from drover.client.views.history_rows import Chronicle, HistoryRow, Selection, Wanted, event_detail, outcome_detail
from drover.events.brokers import BlacklistSet
from drover.events.clusters import ClusterFrozen
from drover.events.leadership import LeaderOrdersAnswered, LeaderOrdersIntended, OrderChange, OrderOutcome
from drover.events.partitions import PartitionReference, TopicPartition
from drover.events.plans import PlanOpened, PlansForgotten
from drover.events.queue_entries import QueueEntryAdded, QueueEntryRemoved, QueueExit
from drover.events.reassignments import (
    ReassignmentCompleted,
    ReassignmentCreated,
    ReassignmentRolledBack,
    ReassignmentStopped,
    ReplacementWithdrawn,
    RollbackRequested,
    StopRequested,
    TargetReplaced,
    WithdrawalReason,
)
from drover.events.refusals import Refusal, RefusalCode
from drover.events.unmanaged import UnmanagedMoveSeen
from drover.journal.reader import LogRecord
from tests.client.log import CLUSTER, Writer, outcome

KEY = TopicPartition("orders", 3)
YEAR_MS = 365 * 86_400_000
NAME: dict[str, Any] = {"cluster": CLUSTER, "topic": KEY.topic, "partition": KEY.partition}


def story() -> list[ValidRecord]:
    """One plan by ann, rolled back by ben; between them a freeze, and something a fenced owner wrote."""
    writer = Writer()
    writer.begin()
    accepted = outcome(
        "a1", type="alter", by="ann", plan="p", accepted=(PartitionReference(*KEY),),
        refusals=(Refusal(RefusalCode.UNKNOWN_TOPIC_OR_PARTITION, "no such thing", "gone", 0),),
    )  # fmt: skip
    queued = ReassignmentCreated(**NAME, topic_id="id", plan="p", original=(1, 2), target=(2, 3))
    writer.say(PlanOpened(cluster=CLUSTER, plan="p", by="ann", reason="drain"), queued, outcomes=(accepted,))
    writer.say(ClusterFrozen(cluster=CLUSTER, by="ann", reason="lunch"))
    late = writer.batch(outcomes=(outcome("never"),))
    writer.acquire("w2")
    writer.append(late)
    writer.say(RollbackRequested(**NAME, by="ben", reason="too slow"))
    writer.say(ReassignmentRolledBack(**NAME, replicas=(1, 2), started=False))
    log = FoldedLog({0: Writer().fold})
    return log.take([LogRecord(0, offset, 0, payload, ()) for offset, payload in enumerate(writer.records)])


def rows(**wanted: Any) -> list[HistoryRow]:
    return select(story(), **wanted)


def select(records: Iterable[ValidRecord], **wanted: Any) -> list[HistoryRow]:
    selection = Selection(Wanted(**wanted))
    selection.add(records)
    return selection.rows()


def test_everything_that_counts_is_told_in_order_with_its_place() -> None:
    assert [(row.offset, row.what, row.by, row.reason) for row in rows()] == [
        (2, "alter accepted", "ann", "why"),
        (2, "plan-opened", "ann", "drain"),
        (2, "reassignment-created", "ann", "drain"),
        (3, "cluster-frozen", "ann", "lunch"),
        (6, "rollback-requested", "ben", "too slow"),
        (7, "reassignment-rolled-back", "ben", "too slow"),
    ]


def test_what_waits_is_told_with_who_caused_it_and_under_which_plan() -> None:
    writer = Writer()
    writer.begin()
    plans = [PlanOpened(cluster=CLUSTER, plan=plan, by=by, reason=by) for plan, by in (("p", "ann"), ("q", "ben"))]
    writer.say(
        *plans,
        QueueEntryAdded(**NAME, id="a2", plan="q", target=(4, 5)),
        ReassignmentCreated(**NAME, topic_id="id", plan="p", original=(1, 2), target=(2, 3)),
        StopRequested(**NAME, by="cay", reason="enough"),
        TargetReplaced(**NAME, plan="q", target=(4, 5)),
        ReplacementWithdrawn(**NAME, why=WithdrawalReason.CANCELLED, by="dot", reason="no"),
        TargetReplaced(**NAME, plan="q", target=(4, 5)),
        ReplacementWithdrawn(**NAME, why=WithdrawalReason.FAILED),
        ReassignmentStopped(**NAME, replicas=(1, 2)),
        QueueEntryRemoved(**NAME, why=QueueExit.REFUSED, detail="no such thing"),
        UnmanagedMoveSeen(**NAME, replicas=(1, 2), adding=(2,), removing=()),
    )
    log = FoldedLog({0: Writer().fold})
    records = log.take([LogRecord(0, offset, 0, payload, ()) for offset, payload in enumerate(writer.records)])
    found = select(records)
    assert [(row.what, row.id, row.by, row.plan) for row in found if row.what != "plan-opened"] == [
        ("queue-entry-added", "a2", "ben", "q"),
        ("reassignment-created", None, "ann", "p"),
        ("stop-requested", None, "cay", "p"),
        ("target-replaced", None, "ben", "q"),
        ("replacement-withdrawn", None, "dot", "q"),
        ("target-replaced", None, "ben", "q"),
        ("replacement-withdrawn", None, "ben", "q"),
        ("reassignment-stopped", None, "cay", "p"),
        ("queue-entry-removed", None, "ben", "q"),
        ("unmanaged-move-seen", None, "", None),
    ]


def test_filters() -> None:
    assert [row.offset for row in rows(by="ben")] == [6, 7]
    assert [row.offset for row in rows(plan="p")] == [2, 2, 2, 6, 7]
    assert [row.offset for row in rows(partition=KEY)] == [2, 2, 6, 7]
    assert [row.what for row in rows(topic="gone")] == ["alter accepted"]
    assert [row.what for row in rows(id="a1")] == ["alter accepted"]
    assert [row.offset for row in rows(since_ms=3000)] == [6, 7]
    assert rows(cluster="other") == []


def test_details_leave_out_what_has_its_own_column() -> None:
    first, _, queued, *_ = rows()
    assert first.detail == "1 accepted; gone:0: unknown-topic-or-partition, no such thing"
    assert queued.detail == "original [1,2], target [2,3]"
    assert event_detail(ReassignmentRolledBack(**NAME, replicas=(1,), started=False)) == "replicas [1], started no"
    duplicate = outcome("a", verdict="duplicate", first_offset=7)
    assert outcome_detail(duplicate) == "already decided at offset 7"
    many = outcome("a", refusals=(Refusal(RefusalCode.MALFORMED, "x"),) * 5)
    assert outcome_detail(many).endswith("and 2 more refused")


def test_a_row_for_people_and_for_programs() -> None:
    row = rows()[0]
    assert history_cells(row)[:7] == (
        "1970-01-01T00:00:01.000Z", "0@2", CLUSTER, "alter accepted", "orders:3 +1", "p", "ann",
    )  # fmt: skip
    document = row.document()
    assert document["kind"] == "command"
    assert document["partitions"] == [{"topic": "orders", "partition": 3}, {"topic": "gone", "partition": 0}]


def test_bytes_that_nobody_measured_are_told_as_the_least_there_were() -> None:
    name: dict[str, Any] = {"cluster": CLUSTER, "topic": "t", "partition": 0}
    known = ReassignmentCompleted(**name, replicas=(3, 4), bytes_copied=7)
    assert event_detail(known) == "replicas [3,4], bytes copied 7"
    assert event_detail(msgspec.structs.replace(known, bytes_unknown=True)) == "replicas [3,4], bytes copied >= 7"


def test_an_event_about_many_partitions_is_told_for_each_of_them() -> None:
    writer = Writer()
    writer.begin()
    listed = BlacklistSet(cluster=CLUSTER, brokers=(3,), previous_brokers=(), by="ann", reason="slow disk")
    changes = (OrderChange((3, 1, 2), (3, 1, 2), (1, 2, 3), elects=True), OrderChange((2, 3, 1), (2, 3, 1), (2, 1, 3)))
    intended = LeaderOrdersIntended(cluster=CLUSTER, topic=KEY.topic, partitions=(3, 4), topic_id="id", changes=changes)
    answered = LeaderOrdersAnswered(
        cluster=CLUSTER, topic=KEY.topic, partitions=(3, 4), outcome=OrderOutcome.REORDERED, restored=(4,)
    )
    writer.say(listed, intended)
    writer.say(answered)
    log = FoldedLog({0: Writer().fold})
    records = log.take([LogRecord(0, offset, 0, payload, ()) for offset, payload in enumerate(writer.records)])
    told = {
        number: [(row.what, row.by, row.detail) for row in select(records, partition=TopicPartition(KEY.topic, number))]
        for number in (3, 4)
    }
    assert told == {
        3: [
            ("leader-orders-intended", "ann", "canonical [3,1,2], expected [3,1,2], replicas [1,2,3], elects yes"),
            ("leader-orders-answered", "ann", "outcome reordered"),
        ],
        4: [
            ("leader-orders-intended", "ann", "canonical [2,3,1], expected [2,3,1], replicas [2,1,3]"),
            ("leader-orders-answered", "ann", "outcome reordered, restored yes"),
        ],
    }


def with_equal_times(shard: int = 0) -> list[ValidRecord]:
    """Six freezes, two at a time."""
    writer = Writer(shard, 2)
    writer.begin()
    for number in range(6):
        frozen = ClusterFrozen(cluster=CLUSTER, by="ann", reason=str(number))
        writer.append(msgspec.structs.replace(writer.batch(frozen), at_ms=1000 * (number // 2 + 1)))
    log = FoldedLog({shard: Writer(shard, 2).fold})
    return log.take([LogRecord(shard, offset, 0, payload, ()) for offset, payload in enumerate(writer.records)])


def test_the_rows_of_a_shard_keep_its_order_and_lie_between_those_of_others() -> None:
    found = select([*with_equal_times(1), *with_equal_times(0)])
    assert [f"{row.reason}@{row.shard}" for row in found] == (
        ["0@0", "1@0", "0@1", "1@1", "2@0", "3@0", "2@1", "3@1", "4@0", "5@0", "4@1", "5@1"]
    )
    assert "".join(row.reason for row in select(with_equal_times(), since_ms=2000)) == "2345"


def test_whoever_follows_for_months_keeps_only_plans_that_the_state_keeps() -> None:
    writer, chronicle = Writer(), Chronicle()
    writer.begin()
    told: list[HistoryRow] = []
    for number in range(50):
        opened = PlanOpened(cluster=CLUSTER, plan=f"p{number}", by="ann", reason="drain")
        forgotten = PlansForgotten(cluster=CLUSTER, plans=(f"p{number - 10}",))
        told += chronicle.rows(ValidRecord(0, number, writer.batch(opened, forgotten)))
    assert len(chronicle._plans) == 10
    assert [row.by for row in told if row.what == "plan-opened"] == ["ann"] * 50
