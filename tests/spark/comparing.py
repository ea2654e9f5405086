"""Where two sets of tables differ."""

from collections.abc import Iterable
from typing import Any

Rows = dict[tuple[Any, ...], dict[str, Any]]


def difference(wanted: dict[str, Rows], found: dict[str, Rows], tables: Iterable[str] | None = None) -> list[str]:
    """Say where tables differ; numbers that are 0 and values that are null are as good as absent."""
    faults = []
    for name in wanted if tables is None else tables:
        keys = wanted[name].keys() | found.get(name, {}).keys()
        for key in sorted(keys, key=str):
            one, other = wanted[name].get(key, {}), found.get(name, {}).get(key, {})
            columns = {*one, *other} - {"last_error"}
            faults += [
                f"{name} {key} {column}: wanted {one.get(column)}, found {other.get(column)}"
                for column in sorted(columns)
                if (one.get(column) or 0) != (other.get(column) or 0)
            ]
    return faults
