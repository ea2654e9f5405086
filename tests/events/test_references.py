"""An event says who asked and why through its command's outcome, once per record."""

from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from drover.events.codec import UndecodableError, decode_record, encode_record
from drover.events.partitions import PartitionReference
from drover.events.queue_entries import QueueEntryRemoved, QueueExit
from drover.events.reassignments import (
    CancelMode,
    CancelWithdrawn,
    ReassignmentRolledBack,
    ReplacementWithdrawn,
    RollbackRequested,
    StepPostponed,
    StopRequested,
    WithdrawalReason,
)
from drover.events.records import AnyEvent, Batch, Cancelled, CancelledPartitions, Outcome
from tests.events.samples import batch_of

NAME: dict[str, Any] = {"cluster": "local", "topic": "orders"}
WHO: dict[str, Any] = {"by": "ann", "reason": "x" * 1024, "command": "cancel-7"}
OUTCOME = Outcome(
    id="cancel-7",
    cluster="local",
    type="cancel",
    by="ann",
    reason="x" * 1024,
    topic="drover.cancel",
    offset=3,
    verdict="accepted",
    accepted=tuple(PartitionReference("orders", number) for number in range(100)),
)


def with_outcome(*events: AnyEvent) -> Batch:
    batch = batch_of(*events)
    return Batch(**{field: getattr(batch, field) for field in Batch.__struct_fields__} | {"outcomes": (OUTCOME,)})


@pytest.mark.parametrize(
    "event",
    [
        RollbackRequested(**NAME, partition=0, **WHO, until_withdrawn=True),
        StopRequested(**NAME, partition=0, **WHO, until_withdrawn=True),
        CancelWithdrawn(**NAME, partition=0, **WHO),
        ReplacementWithdrawn(**NAME, partition=0, why=WithdrawalReason.CANCELLED, **WHO),
    ],
)
def test_a_reason_is_written_once_and_read_in_every_event(event: AnyEvent) -> None:
    batch = with_outcome(event)
    written = encode_record(batch)
    assert written.count(b"x" * 1024) == 1
    assert decode_record(written) == batch


def test_a_cancel_of_many_partitions_does_not_grow_with_its_reason() -> None:
    asked = [RollbackRequested(**NAME, partition=number, **WHO) for number in range(100)]
    assert len(encode_record(with_outcome(*asked))) < 20_000


def cancelled(count: int) -> list[AnyEvent]:
    """Return the events of a cancel: the first half goes back, the other half ends at once."""
    found: list[AnyEvent] = []
    for number in range(count):
        found.append(RollbackRequested(**NAME, partition=number, **WHO, until_withdrawn=True))
        if number >= count // 2:
            found.append(ReassignmentRolledBack(**NAME, partition=number, replicas=(number, 2), started=False))
    return found


def test_the_events_of_a_cancel_are_written_together_and_read_one_by_one() -> None:
    away = [QueueEntryRemoved(**NAME, partition=number, why=QueueExit.WITHDRAWN) for number in range(30)]
    others = [StepPostponed(**NAME, partition=number, step=1) for number in range(3)]
    batch = with_outcome(*away, *others, *cancelled(100), *others)
    written = encode_record(batch)
    assert written.count(b"orders") == 9, "once in each of three entries, and in each of six other events"
    assert decode_record(written) == batch


def test_a_cancel_that_accepts_more_than_it_ends_keeps_the_rest_of_its_outcome() -> None:
    batch = with_outcome(*cancelled(40))
    assert decode_record(encode_record(batch)) == batch


def test_few_events_of_a_cancel_are_written_as_they_are() -> None:
    batch = with_outcome(*cancelled(9))
    written = encode_record(batch)
    assert written.count(b"rollback-requested") == 9
    assert decode_record(written) == batch


@pytest.mark.parametrize(
    "changed",
    [{"before": 7}, {"topics": ()}, {"replicas": ()}, {"partitions": ((-1, 0),) * 20}],
    ids=lambda changed: next(iter(changed)),
)
def test_cancelled_partitions_that_name_what_is_not_there_are_not_understood(changed: dict[str, Any]) -> None:
    entry = CancelledPartitions(
        before=0,
        cluster="local",
        effect=Cancelled.ENDED,
        topics=("orders",),
        partitions=tuple((0, number) for number in range(20)),
        command="cancel-7",
        mode=CancelMode.ROLLBACK,
        replicas=((1, 2),) * 20,
    )
    batch = replace(with_outcome(), cancelled=(replace(entry, **changed),))
    with pytest.raises(UndecodableError):
        decode_record(msgspec.msgpack.encode(batch))


def test_an_event_that_says_something_else_than_its_command_is_written_whole() -> None:
    event = RollbackRequested(**NAME, partition=0, by="eve", reason="other", command="cancel-7")
    batch = with_outcome(event)
    assert decode_record(encode_record(batch)) == batch


def test_a_reference_to_a_command_of_another_record_is_not_understood() -> None:
    lost = encode_record(batch_of(RollbackRequested(**NAME, partition=0, command="cancel-8")))
    with pytest.raises(UndecodableError, match="orders:0 refers to command cancel-8"):
        decode_record(lost)
