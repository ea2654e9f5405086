"""A dict, or anything else, where a command holds a struct: the error shows the call that makes the struct."""

import re
from collections.abc import Callable
from typing import Any

import pytest

from drover.events.commands import Alter, Blacklist, Cancel, Demote, PartitionTarget, Repair, RestoreThrottles
from drover.events.plans import Stepping
from drover.events.python_calls import call_of, form_of

ENVELOPE: dict[str, Any] = {"id": "a1", "cluster": "prod", "by": "ann", "reason": "drain"}


@pytest.mark.parametrize(
    ("make", "call"),
    [
        (
            lambda: Alter(**ENVELOPE, partitions=({"topic": "orders", "partition": 0, "replicas": [4, 2, 3]},)),  # type: ignore[arg-type]
            "partitions holds a dict: write PartitionTarget(topic='orders', partition=0, replicas=(4, 2, 3))",
        ),
        (
            lambda: Alter(**ENVELOPE, partitions=("orders:0",)),  # type: ignore[arg-type]
            "partitions holds a str: write PartitionTarget(topic=..., partition=..., replicas=...)",
        ),
        (
            lambda: Cancel(**ENVELOPE, mode="stop", partitions=({"topic": "orders", "partition": 0},)),  # type: ignore[arg-type]
            "partitions holds a dict: write PartitionName(topic='orders', partition=0)",
        ),
        (
            lambda: Repair(**ENVELOPE, partitions=(("orders", 0),)),  # type: ignore[arg-type]
            "partitions holds a tuple: write PartitionName(topic=..., partition=...)",
        ),
        (
            lambda: Blacklist(**ENVELOPE, brokers=(), entries=({"broker": 3, "topics": ["orders"]},)),  # type: ignore[arg-type]
            "entries holds a dict: write BlacklistEntry(broker=3, topics=('orders',))",
        ),
        (
            lambda: RestoreThrottles(**ENVELOPE, brokers=({"broker": 3, "leader": 1000},)),  # type: ignore[arg-type]
            "brokers holds a dict: write LeftoverRates(broker=3, leader=1000)",
        ),
    ],
)  # fmt: skip
def test_a_field_that_holds_no_struct_is_a_type_error_with_the_right_call(
    make: Callable[[], object], call: str
) -> None:
    with pytest.raises(TypeError, match=re.escape(call) + "$"):
        make()


def test_a_call_leaves_out_defaults_and_makes_the_same_struct() -> None:
    target = PartitionTarget(topic="orders", partition=0, replicas=(4, 2, 3))
    alter = Alter(**ENVELOPE, partitions=(target,), stepping=Stepping.SWAP)
    call = call_of(alter)
    assert call == (
        "Alter(id='a1', cluster='prod', by='ann', reason='drain', partitions=(PartitionTarget(topic='orders', "
        "partition=0, replicas=(4, 2, 3)),), stepping=Stepping.SWAP)"
    )
    assert eval(call) == alter  # noqa: S307 - the text was made above


def test_the_form_of_a_call_has_what_must_be_given() -> None:
    assert form_of(Demote) == "Demote(id=..., cluster=..., by=..., reason=..., broker=...)"
