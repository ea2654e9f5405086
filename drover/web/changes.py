"""PURE: the difference of two documents, in the form that a browser applies.

A document maps names to parts. A part that is a list of maps with a `key` is a table, which changes row by row. Any
other part is replaced as a whole.
"""

from collections.abc import Mapping, Sequence
from typing import Any

Document = Mapping[str, Any]


def difference(before: Document, after: Document) -> dict[str, Any]:
    """Return the change that turns one document into the other; empty if they are equal.

    `{"set": {part: value}, "drop": [part], "tables": {part: {"put": [row], "order": [key]}}}`. `order` is there only if
    the keys, or their order, have changed, and lists all remaining keys.
    """
    whole: dict[str, Any] = {}
    tables: dict[str, Any] = {}
    for name, value in after.items():
        old = before.get(name)
        if old == value and name in before:
            continue
        if old is not None and _is_table(old) and _is_table(value):
            tables[name] = _table_difference(old, value)
        else:
            whole[name] = value
    dropped = [name for name in before if name not in after]
    parts = {"set": whole, "drop": dropped, "tables": tables}
    return {name: part for name, part in parts.items() if part}


def apply(before: Document, change: Document) -> dict[str, Any]:
    """Apply a difference as the browser does, for tests of both."""
    after = {name: value for name, value in before.items() if name not in change.get("drop", ())}
    after |= change.get("set", {})
    for name, table in change.get("tables", {}).items():
        rows = {row["key"]: row for row in after[name]} | {row["key"]: row for row in table.get("put", ())}
        after[name] = [rows[key] for key in table.get("order", [row["key"] for row in after[name]])]
    return after


def _is_table(value: object) -> bool:
    # An empty list counts as a table, because tables may become empty.
    return isinstance(value, list) and all(isinstance(row, dict) and "key" in row for row in value)


def _table_difference(before: Sequence[Document], after: Sequence[Document]) -> dict[str, Any]:
    rows_before = {row["key"]: row for row in before}
    change: dict[str, Any] = {}
    put = [row for row in after if rows_before.get(row["key"]) != row]
    if put:
        change["put"] = put
    order = [row["key"] for row in after]
    assert len(set(order)) == len(order), "every row of a table has a key of its own"
    if order != list(rows_before):
        change["order"] = order
    return change
