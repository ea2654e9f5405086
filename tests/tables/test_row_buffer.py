"""Rows under construction join values as every sink does."""

import itertools

import pytest

from drover.spark.tables.row_buffer import RowBuffer, joined
from drover.spark.tables.schema import CLUSTER, INTEGER, Column, Merge, Table

MERGES = tuple(merge for merge in Merge if merge is not Merge.KEY)
VALUES = (None, 1, 5)


@pytest.mark.parametrize("merge", MERGES)
@pytest.mark.parametrize("values", list(itertools.product(VALUES, repeat=3)))
def test_values_are_joined_as_the_schema_says(merge: Merge, values: tuple[int | None, ...]) -> None:
    table = Table("t", "", "", (CLUSTER, Column("n", INTEGER, merge, "count", "how many")))
    buffer = RowBuffer({"t": table})
    wanted = None
    for value in values:
        buffer.put("t", ("c",), n=value)
        wanted = joined(merge, wanted, value)
    ((_, (row,)),) = buffer.complete()
    assert (row[0], row[1] or 0) == ("c", wanted or 0)
