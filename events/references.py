"""Events that refer to a command: its outcome, in the same record, says once who asked and why.

A cancel of 20,000 partitions would otherwise repeat its reason 20,000 times. In memory such an event is whole; in the
record its `by` and `reason` are left out, and every reader puts them back. Older records hold them in each event.
"""

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from drover.events.reassignments import CancelWithdrawn, ReplacementWithdrawn, RollbackRequested, StopRequested
from drover.events.records import AnyEvent, Batch, Outcome

_REFERRING = (RollbackRequested, StopRequested, CancelWithdrawn, ReplacementWithdrawn)
_REFERRING_TYPES = frozenset(_REFERRING)
_Who = tuple[str, str]


class MissingCommandError(Exception):
    """An event refers to a command that its record does not hold."""


def as_recorded(event: AnyEvent) -> AnyEvent:
    """Return an event as its record holds it; the outcome of the command that it names is in the same record."""
    # Asked of every event; `isinstance` takes ten times as long with structs.
    if type(event) not in _REFERRING_TYPES:
        return event
    assert isinstance(event, _REFERRING)
    return event if event.command is None else replace(event, by="", reason="")


def shortened_batch(batch: Batch) -> Batch:
    """Leave out of its events what the outcomes say; the inverse of `whole_batch`."""
    if not _refers(batch.events):
        return batch
    said = _said(batch.outcomes)
    return replace(batch, events=tuple(_as_said(event, said) for event in batch.events))


def whole_batch(batch: Batch) -> Batch:
    """Put back into its events who asked and why.

    Raises `MissingCommandError` where an event refers to a command that has no outcome in the record.
    """
    if not _refers(batch.events):
        return batch
    said = _said(batch.outcomes)
    return replace(batch, events=tuple(_whole(event, said) for event in batch.events))


def _refers(events: Sequence[AnyEvent]) -> bool:
    # Few records have such events, and this looks through those of every record.
    return not _REFERRING_TYPES.isdisjoint(map(type, events))


def _said(outcomes: Iterable[Outcome]) -> dict[tuple[str, str], _Who]:
    """Return what the first outcome of each command says; a later one is of its repetition."""
    said: dict[tuple[str, str], _Who] = {}
    for outcome in outcomes:
        said.setdefault((outcome.cluster, outcome.id), (outcome.by, outcome.reason))
    return said


def _as_said(event: AnyEvent, said: dict[tuple[str, str], _Who]) -> AnyEvent:
    if not isinstance(event, _REFERRING) or event.command is None:
        return event
    if said.get((event.cluster, event.command)) != (event.by, event.reason):
        return event
    return replace(event, by="", reason="")


def _whole(event: AnyEvent, said: dict[tuple[str, str], _Who]) -> AnyEvent:
    if not isinstance(event, _REFERRING) or event.command is None or event.by:
        return event
    found = said.get((event.cluster, event.command))
    if found is None:
        raise MissingCommandError(f"{event.key} refers to command {event.command}, which has no outcome in the record")
    by, reason = found
    return replace(event, by=by, reason=reason)
