"""PURE: what changed between two places in the log, as a document and as rows."""

from collections.abc import Sequence
from typing import Any

from drover.cli.past import place_document
from drover.client.differences import Change
from drover.fold.log import ShardFold

COLUMNS = ("what", "of", "before", "after")
# Of something that came or went, what tells most; the rest is in the document.
_TELLING = (
    "by", "reason", "status", "plan", "phase", "original", "target", "replicas", "adding", "removing", "baseline",
    "intended", "present",
)  # fmt: skip


def diff_document(cluster: str, before: ShardFold, after: ShardFold, changes: Sequence[Change]) -> dict[str, Any]:
    """Return the difference for programs; fields may be added and never changed."""
    return {
        "cluster": cluster,
        "from": place_document(before),
        "to": place_document(after),
        "changes": [change.document() for change in changes],
    }


def cells_of(change: Change) -> tuple[str, ...]:
    """Write one row."""
    came_or_went = change.before is None or change.after is None
    what = f"{change.kind} {change.what}" if change.kind != change.name else change.what
    return (
        f"{what}: {change.detail}" if change.detail else what,
        change.name,
        _text(change.before, brief=came_or_went),
        _text(change.after, brief=came_or_went),
    )


def _text(value: Any, *, brief: bool = False) -> str:
    match value:
        case None | [] | "":
            return "-"
        case dict():
            names = [name for name in _TELLING if value.get(name)] if brief else list(value)
            return ", ".join(f"{name.replace('_', ' ')} {_text(value[name])}" for name in names or value)
        case list():
            return ",".join(_text(one) for one in value)
        case bool():
            return "yes" if value else "no"
        case _:
            return str(value)
