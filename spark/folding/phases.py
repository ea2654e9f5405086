"""How one event changes one reassignment: the rules of `drover.reassignment.evolve`, on flat rows.

A second telling of the same rules, because flat rows are not events; a test folds simulated logs both ways and compares
every state.
"""

from collections.abc import Callable, Mapping

from drover.reassignment.phase import OPEN_PHASES, Phase
from events.reassignments import Call
from spark.folding.carry import Move
from spark.folding.rows import FoldRow

_INTENDED = {Call.STEP: Phase.INTENDED, Call.CANCEL: Phase.CANCEL_INTENDED, Call.RESTORE: Phase.RESTORE_INTENDED}
_RUNNING = {Call.STEP: Phase.COPYING, Call.CANCEL: Phase.CANCELLING, Call.RESTORE: Phase.RESTORING}
_BEFORE = {Call.STEP: Phase.PREPARED, Call.CANCEL: Phase.ROLLING_BACK, Call.RESTORE: Phase.CANCELLING}
_WEIGHTLESS = frozenset({Phase.PENDING, Phase.RESTORING, Phase.RESTORE_INTENDED})

BEGINNINGS = frozenset({"reassignment-queued", "reassignment-adopted"})
ENDS = {
    "reassignment-completed": "completed",
    "reassignment-rolled-back": "rolled-back",
    "reassignment-stopped": "stopped",
    "reassignment-failed": "failed",
}


def load_of(move: Move) -> tuple[int | None, tuple[int, ...]]:
    """Return the broker that the move copies from and those that it copies to; (None, ()) when it weighs on none."""
    if not move.replicas or move.phase in _WEIGHTLESS or move.current == move.replicas:
        return None, ()
    adding = added(move)
    return (move.leader, adding) if adding else (None, ())


def added(move: Move) -> tuple[int, ...]:
    """Return the brokers that get a copy in the running or last step."""
    return tuple(broker for broker in move.replicas if broker not in move.expected)


def begun(row: FoldRow) -> Move:
    """Make the move that an event about a new reassignment tells of."""
    original = tuple(row.original or ())
    if row.tag == "reassignment-queued":
        target = tuple(row.target or ())
        return Move(
            plan=row.plan or "",
            original=original,
            target=target,
            began_ms=row.at_ms,
            since_ms=row.at_ms,
            current=original,
        )
    return Move(
        plan=row.plan or "",
        original=original,
        target=original,
        began_ms=row.at_ms,
        since_ms=row.at_ms,
        current=tuple(row.expected or ()),
        phase=Phase.ROLLING_BACK.value,
        step=1,
        expected=tuple(row.expected or ()),
        replicas=tuple(row.replicas or ()),
        is_cancelled=True,
    )


def change(move: Move, row: FoldRow) -> None:
    """Let an event have its effect on a move under way; what changes nothing that is shown has no rule here."""
    changing = _CHANGING.get(row.tag or "")
    if changing is None:
        return
    phase = changing(move, row)
    if phase is not None and phase.value != move.phase:
        move.phase, move.since_ms = phase.value, row.at_ms


def _prepared(move: Move, row: FoldRow) -> Phase:
    _set_step(move, row)
    _unblock(move)
    return Phase.PREPARED


def _intended(move: Move, row: FoldRow) -> Phase:
    call = Call(row.call or "")
    if call is Call.STEP:
        _set_step(move, row)
    _unblock(move)
    return _INTENDED[call]


def _accepted(move: Move, row: FoldRow) -> Phase:
    _unblock(move)
    return _outcome_lost(move, row)


def _outcome_lost(move: Move, row: FoldRow) -> Phase:
    call = Call(row.call or "")
    return Phase.ROLLING_BACK if call is Call.STEP and move.is_cancelled else _RUNNING[call]


def _not_taken(move: Move, row: FoldRow) -> Phase:
    call = Call(row.call or "")
    return Phase.ROLLING_BACK if call is Call.STEP and move.is_cancelled else _BEFORE[call]


def _confirmed(move: Move, row: FoldRow) -> Phase:
    move.current = tuple(row.replicas or ())
    move.bytes_copied += row.bytes_done or 0
    move.bytes_unknown = move.bytes_unknown or bool(row.bytes_unknown)
    _unblock(move)
    return Phase.ROLLING_BACK if move.is_cancelled else Phase.CONFIRMED


def _cancelled(move: Move, _row: FoldRow) -> Phase | None:
    move.is_cancelled = True
    _unblock(move)
    return None if move.phase in OPEN_PHASES else Phase.ROLLING_BACK


def _rollback_skipped(move: Move, _row: FoldRow) -> Phase:
    move.is_cancelled = False
    _unblock(move)
    is_between = move.step is None or move.current == move.replicas
    return Phase.CONFIRMED if is_between else Phase.COPYING


def _return_begun(move: Move, row: FoldRow) -> Phase:
    # From here on it goes by steps again, whatever was asked for.
    move.is_cancelled = False
    _unblock(move)
    move.current = move.expected = move.replicas = tuple(row.replicas or ())
    return Phase.CONFIRMED


def _blocked(move: Move, row: FoldRow) -> None:
    move.reason, move.detail = row.why, row.detail


def _unblocked(move: Move, _row: FoldRow) -> None:
    _unblock(move)


def _set_step(move: Move, row: FoldRow) -> None:
    move.step = row.step
    move.expected, move.replicas = tuple(row.expected or ()), tuple(row.replicas or ())
    move.leader = None if row.leader is None or row.leader < 0 else row.leader


def _unblock(move: Move) -> None:
    move.reason = move.detail = None


_CHANGING: Mapping[str, Callable[[Move, FoldRow], Phase | None]] = {
    "step-prepared": _prepared,
    "call-intended": _intended,
    "call-accepted": _accepted,
    "call-outcome-lost": _outcome_lost,
    "call-rejected": _not_taken,
    "call-lapsed": _not_taken,
    "step-confirmed": _confirmed,
    "rollback-requested": _cancelled,
    "stop-requested": _cancelled,
    "rollback-skipped": _rollback_skipped,
    "return-begun": _return_begun,
    "step-taken-back": _return_begun,
    "reassignment-blocked": _blocked,
    "reassignment-unblocked": _unblocked,
}
