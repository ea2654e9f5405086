"""Every event is told to a table, or named as one that no table needs."""

from typing import get_args

import pytest

from drover.events.records import AnyEvent
from drover.fold.evolve import APPLYING
from drover.fold.moves import EVOLVING
from drover.spark.tables.handlers import CapabilityTables
from drover.spark.tables.registry import CAPABILITIES, tables_of
from drover.spark.tables.schema import Merge


def test_every_event_is_told_to_a_table_or_is_named_as_one_that_none_needs() -> None:
    """An event that is added shows up here: tell it in the `tables.py` of its capability, or name it in `unhandled`."""
    told = {kind for one in CAPABILITIES for kind in one.handlers}
    unhandled = [kind for one in CAPABILITIES for kind in one.unhandled]
    assert set(get_args(AnyEvent)) == told | set(unhandled)
    assert not told & set(unhandled)
    assert len(unhandled) == len(set(unhandled))
    assert set(get_args(AnyEvent)) == APPLYING.keys() | EVOLVING.keys()


@pytest.mark.parametrize("capability", CAPABILITIES, ids=lambda one: one.name)
def test_a_capability_has_the_rows_that_only_the_state_can_fill(capability: CapabilityTables) -> None:
    for table in capability.rows:
        assert table in {one.name for one in capability.tables}
    assert capability.memory() == capability.memory(), "it begins with nothing"


def test_no_two_capabilities_bring_a_table_of_one_name() -> None:
    assert len(tables_of(CAPABILITIES)) == sum(len(one.tables) for one in CAPABILITIES)
    assert len({one.name for one in CAPABILITIES}) == len(CAPABILITIES)


@pytest.mark.parametrize("name", tables_of(CAPABILITIES))
def test_keys_come_first(name: str) -> None:
    merges = [column.merge for column in tables_of(CAPABILITIES)[name].columns]
    assert merges == sorted(merges, key=lambda merge: merge is not Merge.KEY)
