"""An event says who asked and why through its command's outcome, once per record."""

from typing import Any

import pytest

from drover.events.codec import UndecodableError, decode_record, encode_record
from drover.events.partitions import PartitionReference
from drover.events.reassignments import (
    CancelWithdrawn,
    ReplacementWithdrawn,
    RollbackRequested,
    StopRequested,
    WithdrawalReason,
)
from drover.events.records import AnyEvent, Batch, Outcome
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


def test_an_event_that_says_something_else_than_its_command_is_written_whole() -> None:
    event = RollbackRequested(**NAME, partition=0, by="eve", reason="other", command="cancel-7")
    batch = with_outcome(event)
    assert decode_record(encode_record(batch)) == batch


def test_a_reference_to_a_command_of_another_record_is_not_understood() -> None:
    lost = encode_record(batch_of(RollbackRequested(**NAME, partition=0, command="cancel-8")))
    with pytest.raises(UndecodableError, match="orders:0 refers to command cancel-8"):
        decode_record(lost)
