"""PURE: the differences between two states of a cluster, as a list."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

import msgspec

from drover.client.time_travel import Ended
from drover.events.partitions import TopicPartition
from drover.state.cluster import ClusterState
from drover.state.declared import declarations
from drover.state.plans import Plan, PlanStatus
from drover.state.reassignment import Reassignment

# The parts of a cluster's state that are compared: single values, and maps with the name of their entries.
_DESCRIBED = {name: declared for name, declared in declarations(ClusterState).items() if declared.described_as}
_VALUES = tuple((name, declared) for name, declared in _DESCRIBED.items() if len(declared.described_as) == 1)
_ENTRIES = tuple((name, declared) for name, declared in _DESCRIBED.items() if len(declared.described_as) > 1)
# Derived parts of the state, which repeat the information of the others.
_SILENT = frozenset({"key", "number"})


@dataclass(frozen=True, slots=True)
class Change:
    """One difference: `kind` and `name` identify the thing, and `what` says how it changed.

    `before` and `after` hold the fields that differ, or all fields of a thing that appeared or disappeared; None stands
    for its absence.
    """

    kind: str
    name: str
    what: str
    before: Any
    after: Any
    detail: str = ""

    def document(self) -> dict[str, Any]:
        """Return the change for programs; fields may be added and never changed."""
        return {
            "kind": self.kind,
            "name": self.name,
            "what": self.what,
            "before": self.before,
            "after": self.after,
            "detail": self.detail,
        }


def diff(before: ClusterState, after: ClusterState, ended: Sequence[Ended] = ()) -> tuple[Change, ...]:
    """Compare two states of one cluster; `ended` holds the reassignments that ended in between, and how.

    The result is ordered by kind, and within a kind by age. A reassignment that both began and ended in between appears
    only because of `ended`.
    """
    return (*_values(before, after), *_entries(before, after, _by_partition(before.name, ended)))


def _values(before: ClusterState, after: ClusterState) -> Iterator[Change]:
    for field, declared in _VALUES:
        was, now = getattr(before, field), getattr(after, field)
        if was != now:
            (name,) = declared.described_as
            if field == "freeze" and None in (was, now):
                yield Change("freeze", "", "frozen" if was is None else "unfrozen", plain(was), plain(now))
            elif isinstance(was, msgspec.Struct) and isinstance(now, msgspec.Struct):
                yield Change(name, "", "changed", *_differing(was, now))
            else:
                yield Change(name, "", "changed", plain(was), plain(now))


def _entries(before: ClusterState, after: ClusterState, ended: Mapping[TopicPartition, Ended]) -> Iterator[Change]:
    for field, declared in _ENTRIES:
        kind, came, went = declared.described_as
        old: Mapping[Any, Any] = getattr(before, field)
        new: Mapping[Any, Any] = getattr(after, field)
        endings = ended if field == "reassignments" else {}
        for key in (*old, *(key for key in new if key not in old)):
            ending = "" if key not in endings else endings[key].how.removeprefix("reassignment-")
            if key not in new:
                yield Change(kind, str(key), went, plain(old[key]), None, ending)
            elif key not in old:
                yield Change(kind, str(key), came, None, plain(new[key]))
            elif old[key] != new[key]:
                how = _what(old[key], new[key])
                yield Change(kind, str(key), how, *_differing(old[key], new[key]), ending)
        for key in sorted(endings.keys() - old.keys() - new.keys()):
            yield Change(kind, str(key), "begun and ended", None, None, endings[key].how.removeprefix("reassignment-"))


def _what(was: object, now: object) -> str:
    if isinstance(was, Plan) and isinstance(now, Plan) and was.status is not now.status is not PlanStatus.OPEN:
        return now.status.value
    if isinstance(was, Reassignment) and isinstance(now, Reassignment) and was.number != now.number:
        return "ended and begun again"
    return "changed"


def _by_partition(cluster: str, ended: Sequence[Ended]) -> dict[TopicPartition, Ended]:
    return {ending.partition: ending for ending in ended if ending.cluster == cluster}


def _differing(was: object, now: object) -> tuple[Any, Any]:
    old, new = plain(was), plain(now)
    if not (isinstance(old, dict) and isinstance(new, dict)):
        return old, new
    fields = [field for field in old if old[field] != new.get(field) and field not in _SILENT]
    return {field: old[field] for field in fields}, {field: new[field] for field in fields}


def plain(value: object) -> Any:
    """Return a value of the state as maps, lists, text and numbers, defaults included."""
    match value:
        case msgspec.Struct():
            return {
                name: plain(getattr(value, field))
                for field, name in zip(value.__struct_fields__, value.__struct_encode_fields__, strict=True)
            }
        case Enum():
            return value.value
        case TopicPartition():
            return {"topic": value.topic, "partition": value.partition}
        case tuple() | list():
            return [plain(element) for element in value]
        case dict():
            return {str(key): plain(element) for key, element in value.items()}
        case bytes():
            return value.hex()
        case _:
            return value
