"""Explanations of a plan: the loads of one broker, the changes that would improve them, and what rules these out."""

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

import numpy as np

from drover.planner.assess import why_not
from drover.planner.budget import Budget
from drover.planner.eligibility import movable, why_not_movable
from drover.planner.goals import Band, Limits
from drover.planner.layout import Layout
from drover.planner.levelling import LEAST_GAIN, Levelling
from drover.planner.load_table import NOBODY, Flags, LoadTable, Numbers
from drover.planner.loads import CAPACITIES, Load, measures_of
from drover.planner.model import ClusterModel
from drover.planner.proposal import Targets
from drover.planner.weighing import LEAST_SHOWN, STEP

NOTHING_GAINED = "would gain nothing: the other broker, or another load, would be as far outside"
WOULD_GAIN = "would help: the plan spared their bytes, or its bounds or its time were used up"
NO_LEADER = "would lead where the broker should not lead, or has no room for it"


@dataclass(frozen=True, slots=True)
class Standing:
    """One load of a broker before and after a plan, as shares of what is fair for it, and its band.

    `used` is the share of its capacity that it uses afterwards, `limit` how much it may use; None where the load has no
    capacity.
    """

    load: str
    before: float
    after: float
    lowest: float
    highest: float
    used: float | None
    limit: float | None

    @property
    def verdict(self) -> str:
        """Say in a word or two whether it is where it should be."""
        if self.used is not None and self.limit is not None and self.used > self.limit:
            return "above the limit"
        if self.after > self.highest + LEAST_SHOWN:
            return "overloaded"
        return "underloaded" if self.after < self.lowest - LEAST_SHOWN else "in its band"


@dataclass(frozen=True, slots=True)
class Attempt:
    """One kind of change: how many such changes there are, and how many of them each obstacle rules out."""

    kind: str
    count: int
    obstacles: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Explanation:
    """The loads of a broker, the changes that would improve them, and what rules these out.

    `outside` says why the broker has no fair share, in words; empty if it has one.
    """

    broker: int
    outside: str
    standings: tuple[Standing, ...]
    attempts: tuple[Attempt, ...]


def explain(
    model: ClusterModel, targets: Targets, limits: Limits, broker: int, leaving: Collection[int] = ()
) -> Explanation:
    """Explain where a broker of the model stands once these targets are reached, and why it does not stand better.

    Every single change of the lists that takes something off the broker, or gives it something, is looked at again.
    """
    measures = measures_of(model)
    if not measures.has_rates and not limits.asks_for_bands:
        limits = _by_count(limits)
    layout = Layout(model, limits, leaving)
    for index, partition in enumerate(model.partitions):
        after = targets.get(partition.name, partition.replicas)
        for added in after:
            if added not in partition.replicas:
                layout.append(index, added)
        for removed in partition.replicas:
            if removed not in after:
                layout.drop(index, removed)
        if after:
            layout.lead(index, after[0])
    refusal = why_not(model.broker_by_id, broker)
    if broker in leaving:
        return Explanation(broker, f"broker {broker} is being emptied", (), ())
    if refusal is not None:
        return Explanation(broker, refusal[1], (), ())
    table = LoadTable(layout, measures, limits)
    # As the search did in the end.
    table.step = STEP
    place = table.index[broker]
    standings = tuple(_standing(table, row, place) for row in range(len(table.loads)))
    wrong = {each.verdict for each in standings}
    attempts = []
    if wrong & {"overloaded", "above the limit"}:
        attempts += [_left_alone(layout, broker), _giving(table, layout, place), _leading_less(table, layout, place)]
    if "underloaded" in wrong:
        attempts += [_taking(table, layout, place), _leading_more(table, layout, place)]
    if wrong != {"in its band"}:
        attempts.append(_exchanging(table, layout, place))
    return Explanation(broker, "", standings, tuple(each for each in attempts if each.count))


def _by_count(limits: Limits) -> Limits:
    """Return the bands that hold where only replicas and bytes are known."""
    band = Band(limits.above, limits.below)
    leaders = Band(limits.leaders_above, 1.0)
    return replace(limits, bands={Load.DISK: band, Load.REPLICAS: band, Load.LEADERS: leaders})


def _standing(table: LoadTable, row: int, place: int) -> Standing:
    load, unit = table.loads[row], float(table.unit[row, place])
    limit = table.limits.limit(load) if load in CAPACITIES and np.isfinite(table.limit[row, place]) else None
    after = float(table.share[row, place])
    return Standing(
        load=load.value,
        before=float(table.before[row, place]) * unit,
        after=after,
        lowest=float(table.low[row, place]),
        highest=float(table.high[row, place]),
        used=None if limit is None else after / float(table.limit[row, place]) * limit,
        limit=limit,
    )


def _left_alone(layout: Layout, broker: int) -> Attempt:
    """Count the partitions on a broker that no plan may change, by the reason."""
    reasons = [
        refusal[1]
        for partition, replicas in enumerate(layout.replicas)
        if broker in replicas and (refusal := why_not_movable(layout, partition)) is not None
    ]
    return Attempt("replicas that no plan may change", len(reasons), Counter(reasons))


def _giving(table: LoadTable, layout: Layout, place: int) -> Attempt:
    rows, places = _on(table, layout, place)
    others = np.flatnonzero(table.receives & (np.arange(len(table.numbers)) != place))
    return _moves(
        table,
        "moves of its replicas to other brokers",
        np.repeat(rows, len(others)),
        np.repeat(places, len(others)),
        np.tile(others, len(rows)),
    )


def _taking(table: LoadTable, layout: Layout, place: int) -> Attempt:
    free = np.zeros(len(table.at), dtype=bool)
    free[movable(layout)] = True
    held = (table.at != NOBODY) & (table.at != place) & free[:, None] & table.counting[table.at]
    rows, places = np.nonzero(held)
    return _moves(table, "moves of replicas from other brokers", rows, places, np.full(len(rows), place))


def _moves(table: LoadTable, kind: str, rows: Numbers, places: Numbers, brokers: Numbers) -> Attempt:
    """Look at moves of replicas to brokers, and count them by the first thing that stands in the way."""
    if not len(rows):
        return Attempt(kind, 0, {})
    gains = table.gains(rows, places, brokers) > LEAST_GAIN
    checks = (
        ("have a replica of the partition there already", table.holds(rows, brokers)),
        ("are to a broker outside the topic's broker set", ~table.is_within(rows, brokers)),
        ("would lose racks", ~table.keeps_spread(rows, places, brokers)),
        ("have no room there below a limit", ~table.has_room(rows, brokers)),
        (NO_LEADER, ~table.may_head(rows, places, brokers)),
        (NOTHING_GAINED, ~gains),
        (WOULD_GAIN, gains),
    )
    return Attempt(kind, len(rows), _count(len(rows), checks))


def _leading_less(table: LoadTable, layout: Layout, place: int) -> Attempt:
    rows, places = _on(table, layout, place)
    led = rows[table.lead_place[rows] == places]
    width = table.at.shape[1]
    rows, others = np.repeat(led, width), np.tile(np.arange(width), len(led))
    there = (table.at[rows, others] != NOBODY) & (table.lead_place[rows] != others)
    return _orders(table, "orders by which others would lead", rows[there], others[there])


def _leading_more(table: LoadTable, layout: Layout, place: int) -> Attempt:
    rows, places = _on(table, layout, place)
    follows = table.lead_place[rows] != places
    return _orders(table, "orders by which it would lead", rows[follows], places[follows])


def _orders(table: LoadTable, kind: str, rows: Numbers, places: Numbers) -> Attempt:
    if not len(rows):
        return Attempt(kind, 0, {})
    gains = table.order_gains(rows, places) > LEAST_GAIN
    checks = (
        ("have a replica that is out of sync, should not lead, or has no room", ~table.may_lead(rows, places)),
        (NOTHING_GAINED, ~gains),
        (WOULD_GAIN, gains),
    )
    return Attempt(kind, len(rows), _count(len(rows), checks))


def _exchanging(table: LoadTable, layout: Layout, place: int) -> Attempt:
    """Look for an exchange of two replicas that gains, with each other broker that the search tries."""
    run = Levelling(table, movable(layout), Budget(None, lambda: False))
    partners = run.partners(place)
    gaining = sum(bool(run.between(place, other, table.slopes())) for other in partners)
    counts = {NOTHING_GAINED: len(partners) - gaining, WOULD_GAIN: gaining}
    kind = "brokers with which it could exchange replicas"
    return Attempt(kind, len(partners), {why: count for why, count in counts.items() if count})


def _on(table: LoadTable, layout: Layout, place: int) -> tuple[Numbers, Numbers]:
    """Return the replicas on a broker that may move."""
    free = np.zeros(len(table.at), dtype=bool)
    free[movable(layout)] = True
    rows, places = np.nonzero((table.at == place) & free[:, None])
    return rows, places


def _count(total: int, checks: Collection[tuple[str, Flags]]) -> dict[str, int]:
    """Count by the first check that holds."""
    left = np.ones(total, dtype=bool)
    counts = {}
    for why, holds in checks:
        counts[why] = int((left & holds).sum())
        left &= ~holds
    return {why: count for why, count in counts.items() if count}
