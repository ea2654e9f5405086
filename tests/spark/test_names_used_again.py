"""Plans whose names are used again, once the log has let go of them: no figure of one is another one's."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest

from drover.events.plans import PlanCancelled, PlanFinished, PlanOpened, PlansForgotten
from drover.events.reassignments import ReassignmentCompleted, ReassignmentCreated
from drover.events.records import AnyEvent
from drover.spark.audit.parts import AuditSpan
from drover.spark.audit.report import Report, report
from drover.spark.audit.shard_report import ShardReport, Wanted
from drover.spark.audit.shards import audited
from drover.spark.folding.parts import folded
from drover.spark.merge import part_of
from drover.spark.sinks.port import Applied, Sink
from tests.spark.comparing import difference
from tests.spark.kafka_rows import BEGAN_MS, NAMES, Stored, acquire, batch, shard
from tests.spark.oracle import Oracle
from tests.spark.pure import PureJob, in_order
from tests.spark.test_sinks import FIRST, MAKERS

WEEK_MS = 7 * 86_400_000
TOKEN = b"o" * 16
NAMED: dict[str, Any] = {"cluster": "local", "topic": "t", "partition": 0}
FRIDAY: dict[str, Any] = {"cluster": "local", "plan": "friday"}


def moved(target: tuple[int, ...], copied: int) -> Sequence[AnyEvent]:
    return (
        ReassignmentCreated(**NAMED, topic_id="id", plan="friday", original=(1, 2), target=target),
        ReassignmentCompleted(**NAMED, replicas=target, bytes_copied=copied),
        PlanFinished(**FRIDAY, completed=1, rolled_back=0, failed=0),
    )


def batches(*told: tuple[int, Sequence[AnyEvent]]) -> list[Stored]:
    payloads, last = [acquire(1, TOKEN)], None
    for number, (at_ms, events) in enumerate(told, start=1):
        last = batch(number, *events, token=TOKEN, at_ms=BEGAN_MS + at_ms, after=last)
        payloads.append(last)
    return shard(*payloads)


def two_fridays() -> list[Stored]:
    """Each Friday somebody moves something under the same name; the first time it was cancelled in the end."""
    return batches(
        (0, (PlanOpened(**FRIDAY, by="ann", reason="drain broker 2"), *moved((1, 3), 500))),
        (1000, (PlanCancelled(**FRIDAY, by="ann", reason="done"),)),
        (WEEK_MS - 1, (PlansForgotten(cluster="local", plans=("friday",)),)),
        (WEEK_MS, (PlanOpened(**FRIDAY, by="bob", reason="fill broker 4"),)),
        (WEEK_MS + 1000, moved((1, 4), 70)),
    )


def audit(log: Iterable[Stored], span: AuditSpan | None = None) -> Report:
    records, span = list(log), span or AuditSpan()
    lines = audited(in_order(records), span, Wanted())
    shards = [line for line in lines if isinstance(line, ShardReport)]
    return report(shards, span, {0: 0}, {0: len(records)})


def test_the_table_of_plans_counts_only_what_the_plan_did_that_has_the_name_now() -> None:
    job = PureJob().take(two_fridays())
    (row,) = job.rows["plans"].values()
    assert (row["requester"], row["accepted"], row["completed"]) == ("bob", 1, 1)
    assert (row["bytes_copied"], row["replicas_planned"], row["cancelled_ms"]) == (70, 1, None)


@pytest.mark.parametrize("kind", MAKERS)
@pytest.mark.parametrize("cut", range(1, 6))
def test_a_sink_begins_a_row_of_plans_anew_wherever_the_batches_of_the_stream_end(
    kind: str, cut: int, tmp_path: Path
) -> None:
    log = two_fridays()
    sink: Sink = MAKERS[kind](tmp_path)
    carry: dict[str, bytes] = {}
    for number, records in enumerate((log[:cut], log[cut:])):
        part = part_of(folded(in_order(records), carry))
        carry |= part.carried
        assert sink.apply(FIRST, Applied(number, part, 1))
    (row,) = sink.rows("plans")
    sink.close()
    assert (row["requester"], row["bytes_copied"], row["replicas_planned"]) == ("bob", 70, 1)
    assert row["cancelled_ms"] is None


def test_the_plain_fold_says_the_same_of_plans_whose_names_are_used_again() -> None:
    log = two_fridays()
    wanted = Oracle().read(log, NAMES.progress).tables()
    assert difference(wanted, PureJob().take(log).tables(), ("plans", "requests", "ended")) == []


def test_an_audit_says_of_each_move_the_reason_of_its_own_plan_and_sums_up_no_other_one() -> None:
    found = audit(two_fridays())
    moves = [(row["requester"], row["plan_reason"], row["bytes_copied"]) for row in found.sections["reassignments"]]
    assert moves == [("ann", "drain broker 2", 500), ("bob", "fill broker 4", 70)]
    (plan,) = found.sections["plans"]
    assert (plan["requester"], plan["bytes_copied"], plan["cancelled_ms"]) == ("bob", 70, None)
    assert found.totals["bytes_copied"] == 570


def test_an_audit_of_the_time_before_a_name_was_used_again_says_what_the_plan_was_then() -> None:
    found = audit(two_fridays(), AuditSpan(until_ms=BEGAN_MS + WEEK_MS - 1))
    (plan,) = found.sections["plans"]
    assert (plan["requester"], plan["bytes_copied"]) == ("ann", 500)
    assert plan["cancelled_ms"] == BEGAN_MS + 1000
