"""PURE: plans as rows, and a cluster's figures: counts of moves, bytes, rates, and the estimated ends of plans.

One pass over the moves in flight serves all plans; only copying moves are looked up in the samples.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from heapq import nsmallest
from typing import Any, TypeAlias

from drover.client.transfers import Transfers
from drover.client.views.plan_end import Tally, bound_ends
from drover.client.views.status_rows import COPYING, StatusRow, status_row
from drover.state.cluster import ClusterState
from drover.state.plans import Copied, Plan, PlanStatus
from drover.state.reassignment import Reassignment

MOST_WAITING_SHOWN = 3

# Blocked, returning and moving reassignments, in the order of their importance to an operator.
Ranked: TypeAlias = tuple[list[Reassignment], list[Reassignment], list[Reassignment]]


@dataclass(frozen=True, slots=True)
class PlanRow:
    """A plan; `accepted` counts all partitions that it ever accepted.

    `throttle_bytes_per_second` is the throttle in force per broker: the plan's own, or else the cluster's.
    `copied_bytes` are those of completed partitions, except `unmeasured` ones. `took_ms` is the time from its first
    partition to its end; None before its end.
    """

    cluster: str
    plan: str
    by: str
    reason: str
    opened_ms: int
    status: str
    throttle_bytes_per_second: int | None
    accepted: int
    completed: int
    rolled_back: int
    stopped: int
    failed: int
    withdrawn: int
    queued: int
    copied_bytes: int
    unmeasured: int
    took_ms: int | None
    tally: Tally

    @property
    def ended(self) -> int:
        """The number of partitions that have ended, in any way."""
        return self.completed + self.rolled_back + self.stopped + self.failed + self.withdrawn

    @property
    def fraction(self) -> float | None:
        """How much of the plan is done, 0 to 1: by bytes where they are measured or estimated, else by partitions.

        None for a plan without partitions.
        """
        tally = self.tally
        done, total = self.copied_bytes + tally.bytes_done, self.copied_bytes + tally.bytes_total
        if self.took_ms is None and tally.rest_bytes is not None and total + tally.rest_bytes > 0:
            return min(1.0, done / (total + tally.rest_bytes))
        return self.ended / self.accepted if self.accepted else None

    def document(self) -> dict[str, Any]:
        """Return the row for programs; fields may be added and never changed."""
        row = asdict(self)
        row["tally"].pop("shown")
        fraction = self.fraction
        return {**row, "percent": None if fraction is None else round(fraction * 100, 1)}


@dataclass(slots=True)
class Figures:
    """A cluster in figures: a tally of all plans, and one for each."""

    total: Tally = field(default_factory=Tally)
    plans: dict[str, Tally] = field(default_factory=dict)

    def of(self, plan: str) -> Tally:
        """Return the tally of a plan."""
        tally = self.plans.get(plan)
        if tally is None:
            tally = self.plans[plan] = Tally()
        return tally


def figures(state: ClusterState, transfers: Transfers, now_ms: int = 0, shown_per_plan: int = 0) -> Figures:
    """Count a cluster's reassignments, with the rates at `now_ms` (wall clock).

    Also chooses up to `shown_per_plan` reassignments of each plan to show, blocked ones first, each kind in the order
    of acceptance. The number of waiting reassignments comes from the state's index, without visiting each of them.
    """
    counted = Figures()
    ranked: dict[str, Ranked] = {}
    for entry in (*_in_flight(state), *_blocked_pending(state)):
        tally = counted.of(entry.plan)
        rank = _count(tally, entry)
        _count(counted.total, entry)
        if entry.phase in COPYING:
            _add_bytes((tally, counted.total), status_row(state, entry, transfers, now_ms))
        if shown_per_plan:
            ranked.setdefault(entry.plan, ([], [], []))[rank].append(entry)
    counted.total.waiting = state.moves.unblocked_pending
    for plan, waiting in state.moves.unblocked_of.items():
        counted.of(plan).waiting = waiting
    if shown_per_plan:
        _choose_shown(counted, ranked, state, shown_per_plan)
    for queued in state.queue.values():
        counted.of(queued.plan)
    bound_ends(state, counted.plans, counted.total)
    return counted


def _in_flight(state: ClusterState) -> Iterator[Reassignment]:
    return (state.reassignments[key] for key in state.moves.in_flight)


def _blocked_pending(state: ClusterState) -> Iterator[Reassignment]:
    moves = state.moves
    if len(moves.pending) == moves.unblocked_pending:
        return iter(())
    return (entry for key in moves.pending if (entry := state.reassignments[key]).block is not None)


def _count(tally: Tally, entry: Reassignment) -> int:
    """Count a reassignment that is not just waiting, and return its rank for showing, 0 first."""
    if entry.block is not None:
        tally.blocked += 1
        return 0
    if entry.is_cancelled:
        tally.returning += 1
        return 1
    tally.moving += 1
    return 2


def _choose_shown(counted: Figures, ranked: Mapping[str, Ranked], state: ClusterState, most: int) -> None:
    """Choose the reassignments to show of each plan; waiting ones, which are all alike, come last."""
    lacking: dict[str, list[Reassignment]] = {}
    for plan, tally in counted.plans.items():
        groups = ranked.get(plan, ())
        tally.shown = [entry.key for group in groups for entry in nsmallest(most, group, key=_number)][:most]
        if tally.waiting and len(tally.shown) < most:
            lacking[plan] = []
    if not lacking:
        return
    for key in state.moves.pending:
        entry = state.reassignments[key]
        if entry.block is None and (waiting := lacking.get(entry.plan)) is not None:
            waiting.append(entry)
    for plan, waiting in lacking.items():
        shown = counted.plans[plan].shown
        shown += [entry.key for entry in nsmallest(min(MOST_WAITING_SHOWN, most - len(shown)), waiting, key=_number)]


def _number(entry: Reassignment) -> int:
    return entry.number


def _add_bytes(tallies: Iterable[Tally], row: StatusRow) -> None:
    if row.bytes_done is None or row.bytes_total is None:
        return
    for tally in tallies:
        tally.stalled += row.has_stalled
        tally.sampled += 1
        tally.bytes_done += row.bytes_done
        tally.bytes_total += row.bytes_total
        tally.rate += row.rate or 0.0
        if row.eta_ms is not None:
            tally.latest_ms = max(tally.latest_ms or 0, row.eta_ms)


def plan_rows(state: ClusterState, counted: Figures) -> list[PlanRow]:
    """Return the unfinished plans of a cluster: plans with moves under way first, then the newest."""

    def rank(plan: Plan) -> tuple[bool, int, str]:
        tally = counted.plans.get(plan.name, Tally())
        return not (tally.moving or tally.blocked or tally.returning), -plan.opened_ms, plan.name

    plans = [plan for plan in state.plans.values() if plan.status is PlanStatus.OPEN or not plan.is_idle]
    return [_row(state, plan, counted) for plan in sorted(plans, key=rank)]


def every_plan_row(state: ClusterState, counted: Figures) -> list[PlanRow]:
    """Return the plans that the state has, ended ones included, the newest first."""
    plans = sorted(state.plans.values(), key=lambda plan: (-plan.opened_ms, plan.name))
    return [_row(state, plan, counted) for plan in plans]


def plan_row(state: ClusterState, plan: str, counted: Figures) -> PlanRow | None:
    """Return a plan, even if it has ended; None if the state does not know it, or has forgotten it."""
    return None if plan not in state.plans else _row(state, state.plans[plan], counted)


def _row(state: ClusterState, plan: Plan, counted: Figures) -> PlanRow:
    ended = plan.completed + plan.rolled_back + plan.stopped + plan.failed + plan.withdrawn
    copied = state.copied.get(plan.name, Copied())
    ended_ms = state.ended_plans.get(plan.name)
    return PlanRow(
        cluster=state.name,
        plan=plan.name,
        by=plan.by,
        reason=plan.reason,
        opened_ms=plan.opened_ms,
        status=plan.status.value,
        throttle_bytes_per_second=state.rate_of(plan.name),
        accepted=plan.active + plan.waiting + ended,
        completed=plan.completed,
        rolled_back=plan.rolled_back,
        stopped=plan.stopped,
        failed=plan.failed,
        withdrawn=plan.withdrawn,
        queued=plan.waiting,
        copied_bytes=copied.bytes,
        unmeasured=plan.completed - copied.partitions,
        took_ms=None if ended_ms is None else ended_ms - plan.opened_ms,
        tally=counted.plans.get(plan.name, Tally()),
    )
