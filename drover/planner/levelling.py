"""Levelling: bring every load of every broker into its band, by orders first, then for the fewest copied bytes."""

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from enum import Enum, auto
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from drover.planner.budget import Budget
from drover.planner.load_table import NOBODY, Flags, Floats, LoadTable, Numbers

# What rounding may pretend to gain.
LEAST_GAIN = 1e-8
# So many changes of one broker, or of a pair of them, are made before the candidates are looked at again.
TAKEN = 3
# A change that gains less than this share of what it gained before others were made waits for the next look.
STILL_GOOD = 0.7
# So many candidates of the best bounds are looked at closely.
CLOSE = 256
MOST_CLOSE = 4_000
# So many brokers are tried for exchanges with each that is outside its bands.
PARTNERS = 5
# So many times copies are taken back and exchanged for smaller ones.
MOST_ROUNDS = 4
# A replica is taken for another one if it is smaller by so much.
SMALLER = 0.98
# So many receivers are tried for every replica; of more, only the least loaded.
MOST_RECEIVERS = 96
# A copy of nothing costs as much as this share of a copy of the mean size: small replicas do not excuse many copies.
COPY_SHARE = 0.02


class Change(NamedTuple):
    """A replica goes to a broker, or is exchanged for another one that takes its place."""

    worth: float
    gain: float
    partition: int
    place: int
    broker: int
    other: int = NOBODY
    other_place: int = NOBODY


class Reorders(Enum):
    """The partitions whose order may change: all, those that copy something, or none."""

    ALL = auto()
    COPIED = auto()
    NONE = auto()


class Levelling:
    """Changes the lists of `partitions` in a table, for the `most` bytes and copies in all.

    `bounded` says that these kept it from more. With `only_copies`, every replica stays that is no copy yet. `fixed`
    brokers neither give nor receive.
    """

    def __init__(
        self,
        table: LoadTable,
        partitions: Sequence[int],
        budget: Budget,
        most: tuple[float, float] = (math.inf, math.inf),
        *,
        only_copies: bool = False,
        reorders: Reorders = Reorders.ALL,
        fixed: Collection[int] = (),
    ) -> None:
        self.table = table
        self.partitions = np.array(partitions, dtype=np.int64)
        self.movable = np.zeros(len(table.at), dtype=bool)
        self.movable[self.partitions] = True
        self.budget = budget
        self.bytes_left, self.moves_left = most
        self.bounded = False
        self.only_copies = only_copies
        self.copy_cost = COPY_SHARE * float(table.size.mean()) + 1.0 if len(table.size) else 1.0
        self.reorders = reorders
        free = np.array([number not in fixed for number in table.numbers], dtype=bool)
        self.receivers = np.flatnonzero(table.receives & free)
        self.sources = table.counting & free

    # -- orders ------------------------------------------------------------------------------------------------------

    def reorder(self) -> int:
        """Change leaders, the best change first, until none gains; return how many were changed."""
        table, partitions = self.table, self.reorderable()
        width = table.at.shape[1]
        rows, places = np.repeat(partitions, width), np.tile(np.arange(width), len(partitions))
        there = table.at[rows, places] != NOBODY
        rows, places = rows[there], places[there]
        own, leaders = table.at[rows, places], table.at[rows, table.lead_place[rows]]
        gains = self._order_gains(rows, places)
        changed = 0
        while len(gains) and self.budget.spend(1):
            best = int(gains.argmax())
            if gains[best] <= LEAST_GAIN:
                break
            old, new = int(leaders[best]), int(own[best])
            table.lead(int(rows[best]), int(places[best]))
            changed += 1
            leaders[rows == rows[best]] = new
            stale = np.flatnonzero((leaders == old) | (leaders == new) | (own == old) | (own == new))
            gains[stale] = self._order_gains(rows[stale], places[stale])
        return changed

    def reorderable(self) -> Numbers:
        """Return the partitions whose order may change."""
        if self.reorders is Reorders.NONE:
            return self.partitions[:0]
        if self.reorders is Reorders.ALL:
            return self.partitions
        table = self.table
        copies = (table.at != NOBODY) & ~(table.at[:, :, None] == table.home[:, None, :]).any(axis=2)
        return np.flatnonzero(copies.any(axis=1) & self.movable)

    def _order_gains(self, rows: Numbers, places: Numbers) -> Floats:
        return np.where(self.table.may_lead(rows, places), self.table.order_gains(rows, places), -np.inf)

    # -- copies ------------------------------------------------------------------------------------------------------

    def level(self) -> None:
        """Move and exchange replicas until nothing brings brokers nearer to their bands."""
        while not self.budget.spent:
            self.reorder()
            if self.table.penalty() <= LEAST_GAIN and not self.table.squares:
                return
            made = self._make(self._moves())
            # Exchanges take longer to find, and are tried where moves are no longer enough.
            if made * 2 < int(self._wrong().sum()):
                made += self._exchange()
            if not made:
                return

    def finish(self) -> None:
        """Make what changes still gain, and take back what nothing needs."""
        self.reorder()
        self._make(self._moves())
        self.trim()
        self.restore_orders()

    # -- taking back -------------------------------------------------------------------------------------------------

    def trim(self) -> None:
        """Take back every copy that no band needs, and exchange others for smaller replicas, until all are needed."""
        for _ in range(MOST_ROUNDS):
            if not self._take_back() + self._shrink():
                return
        self._take_back()

    def _take_back(self) -> int:
        """Take back copies that no band needs, the largest first; return how many."""
        table = self.table
        taken = 0
        while self.budget.spend(1):
            found = self._returns()
            gains = table.gains(*found)
            good = (gains >= -LEAST_GAIN) & table.allowed_back(*found)
            rows, places, brokers = _at(good, *found)
            if not len(rows):
                return taken
            before = taken
            for best in np.argsort(-table.size[rows], kind="stable").tolist():
                change = rows[best : best + 1], places[best : best + 1], brokers[best : best + 1]
                if table.at[rows[best], places[best]] == NOBODY or not table.copied(*change[:2])[0]:
                    continue
                if table.gains(*change)[0] >= -LEAST_GAIN and table.allowed_back(*change)[0]:
                    self._pay(int(rows[best]), int(places[best]), int(brokers[best]))
                    taken += 1
            if taken == before:
                return taken
        return taken

    def _pay(self, partition: int, place: int, broker: int) -> None:
        """Take a copy back."""
        self.bytes_left += float(self.table.size[partition])
        self.moves_left += 1
        self.table.move(partition, place, broker)

    def _returns(self) -> tuple[Numbers, Numbers, Numbers]:
        """Return the copies with the brokers of their original lists, a line for each of these."""
        table = self.table
        there = (table.at != NOBODY) & self.movable[:, None]
        there &= ~(table.at[:, :, None] == table.home[:, None, :]).any(axis=2)
        rows, places = np.nonzero(there)
        width = table.home.shape[1]
        rows, places = np.repeat(rows, width), np.repeat(places, width)
        brokers = table.home[rows, np.tile(np.arange(width), len(rows) // max(1, width))]
        kept = brokers != NOBODY
        return rows[kept], places[kept], brokers[kept]

    def _shrink(self) -> int:
        """Exchange copies for smaller replicas of the broker that they come from; return how many."""
        table = self.table
        made = 0
        rows, places, homes = self._returns()
        for best in np.argsort(-table.size[rows], kind="stable").tolist():
            if not self.budget.spend(1):
                return made
            row, place, home = rows[best : best + 1], places[best : best + 1], homes[best : best + 1]
            if not table.copied(row, place)[0] or not table.allowed_back(row, place, home)[0]:
                continue
            made += self._shrink_one(int(row[0]), int(place[0]), int(home[0]))
        return made

    def _shrink_one(self, partition: int, place: int, home: int) -> bool:
        """Take a copy back and move the smallest replica instead that does as well; whether there is one."""
        table = self.table
        there = int(table.at[partition, place])
        gained = table.gains(np.array([partition]), np.array([place]), np.array([home]))[0]
        table.move(partition, place, home)
        rows, places = self._replicas_on(home)
        smaller = (table.size[rows] < table.size[partition] * SMALLER) & ~table.copied(rows, places)
        smaller &= ~(table.home[rows] == there).any(axis=1)
        rows, places = _at(smaller, rows, places)
        brokers = np.full(len(rows), there)
        good = (table.gains(rows, places, brokers) + gained >= -LEAST_GAIN) & table.allowed(rows, places, brokers)
        rows, places = _at(good, rows, places)
        if not len(rows):
            table.move(partition, place, there)
            return False
        best = int(table.size[rows].argmin())
        table.move(int(rows[best]), int(places[best]), there)
        self.bytes_left += float(table.size[partition] - table.size[rows[best]])
        return True

    def restore_orders(self) -> None:
        """Let the first of the original list lead again, wherever no broker is further outside its bands for it."""
        table = self.table
        led = table.at[np.arange(len(table.at)), table.lead_place]
        for partition in np.flatnonzero((led != table.first_home) & self.movable).tolist():
            place = np.flatnonzero(table.at[partition] == table.first_home[partition])
            row = np.array([partition])
            if not len(place) or place[0] == table.lead_place[partition] or not table.may_lead(row, place)[0]:
                continue
            if table.order_gains(row, place)[0] >= -LEAST_GAIN:
                table.lead(partition, int(place[0]))

    def _moves(self) -> list[Change]:
        """Return the best moves from and to the brokers that are outside their bands."""
        table = self.table
        slopes = table.slopes()
        found: list[Change] = []
        likely = self._likely()
        for broker in np.flatnonzero(self._wrong()).tolist():
            if not self.budget.spend(1):
                return []
            found += self._best(*self._replicas_on(broker), likely, slopes)
        if len(self.receivers) > MOST_RECEIVERS // 2 and len(found) > len(self.receivers):
            # In a large cluster it takes long to look at everything that an underloaded broker could take.
            return found
        under = np.any(table.low - table.share > LEAST_GAIN, axis=0)
        for broker in self.receivers[under[self.receivers]].tolist():
            if not self.budget.spend(1):
                return []
            found += self._best(*self._others(broker), np.array([broker]), slopes)
        return found

    def _wrong(self) -> Flags:
        """Whether brokers are outside a band, above a limit, or have too much of a topic; all, if evenness counts."""
        table = self.table
        if table.squares:
            return self.sources
        wrong: Flags = (table.outside() + table.above_limit()).sum(axis=0) > LEAST_GAIN
        if table.topic_weight:
            wrong |= (table.of_topic > table.most_of_topic).any(axis=0)
            wrong |= (table.of_topic < table.least_of_topic).any(axis=0)
        return wrong & self.sources

    def _replicas_on(self, broker: int) -> tuple[Numbers, Numbers]:
        rows, places = np.nonzero(self.table.at == broker)
        keep = self.movable[rows]
        if self.only_copies:
            keep &= self.table.copied(rows, places)
        return rows[keep], places[keep]

    def _others(self, broker: int) -> tuple[Numbers, Numbers]:
        """Return the replicas that a broker could take from others."""
        table = self.table
        held = self.sources[table.at] & (table.at != NOBODY) & self.movable[:, None]
        held &= ~(table.at == broker).any(axis=1)[:, None]
        rows, places = np.nonzero(held)
        if self.only_copies:
            copied = table.copied(rows, places)
            rows, places = rows[copied], places[copied]
        return rows, places

    def _likely(self) -> Numbers:
        """Return the receivers worth a try: all, or those that bear the least."""
        if len(self.receivers) <= MOST_RECEIVERS:
            return self.receivers
        table = self.table
        worst = np.where(table.counts > 0, table.share, 0).max(axis=0)[self.receivers]
        return np.sort(self.receivers[np.argsort(worst, kind="stable")[:MOST_RECEIVERS]])

    def _costs(self, rows: Numbers, places: Numbers, brokers: Numbers) -> tuple[Floats, Floats]:
        """Return the bytes and copies that moves add."""
        table = self.table
        at_home = (table.home[rows] == brokers[:, None]).any(axis=1)
        more = (~at_home).astype(np.float64) - table.copied(rows, places)
        return more * table.size[rows], more

    def _worth(self, gains: Floats, sizes: Floats, copies: Floats) -> Floats:
        """Return what changes gain for a byte; nothing for those that gain nothing, or are beyond the bounds."""
        afford = ((sizes <= self.bytes_left) | (sizes <= 0)) & ((copies <= self.moves_left) | (copies <= 0))
        gaining = gains > LEAST_GAIN
        self.bounded |= bool((gaining & ~afford).any())
        price = np.maximum(sizes, 0) + np.maximum(copies, 0) * self.copy_cost + 1.0
        return np.where(gaining & afford, gains / price, 0.0)

    def _best(self, rows: Numbers, places: Numbers, receivers: Numbers, slopes: Floats) -> list[Change]:
        """Return the moves that gain the most for a byte, of different partitions."""
        table = self.table
        if not len(rows):
            return []
        bounds = table.bounds(rows, places, receivers, slopes)
        bounds /= (table.size[rows] + self.copy_cost)[:, None]

        def changes(chosen: Numbers) -> Iterator[Change]:
            row, place, broker = *_at(chosen // len(receivers), rows, places), receivers[chosen % len(receivers)]
            allowed = table.allowed(row, place, broker)
            row, place, broker = _at(allowed, row, place, broker)
            gains = table.gains(row, place, broker)
            worth = self._worth(gains, *self._costs(row, place, broker))
            for best in np.argsort(-worth, kind="stable").tolist():
                yield Change(worth[best], gains[best], int(row[best]), int(place[best]), int(broker[best]))

        return _first_good(bounds, changes, 8 * TAKEN if len(self.receivers) > MOST_RECEIVERS // 2 else 2 * TAKEN)

    def _make(self, changes: Sequence[Change]) -> int:
        """Make changes, the best first, each as long as it still gains most of what it did; return how many.

        They are all moves, or all exchanges.
        """
        table = self.table
        if not changes:
            return 0
        rows, places, brokers, others, other_places = (np.array(each) for each in list(zip(*changes, strict=True))[2:])
        olds, needed = table.at[rows, places], STILL_GOOD * np.array([change.gain for change in changes])
        sizes, copies = self._costs(rows, places, brokers)
        if others[0] != NOBODY:
            back = self._costs(others, other_places, olds)
            sizes, copies = sizes + back[0], copies + back[1]
        gains = np.zeros(len(rows))
        left, stale = np.ones(len(rows), dtype=bool), np.arange(len(rows))
        made = 0
        while True:
            gains[stale] = self._gains_now(*_at(stale, rows, places, olds, brokers, others, other_places))
            worth = np.where(left & (gains >= needed), self._worth(gains, sizes, copies), 0.0)
            best = int(worth.argmax())
            while worth[best] > 0 and not self._apply(changes[best]):
                left[best], worth[best] = False, 0.0
                best = int(worth.argmax())
            if worth[best] <= 0:
                return made
            made += 1
            self.bytes_left -= float(sizes[best])
            self.moves_left -= float(copies[best])
            left &= (rows != rows[best]) & (others != rows[best])
            if others[best] != NOBODY:
                left &= (rows != others[best]) & (others != others[best])
            changed = np.array([olds[best], brokers[best]])
            stale = np.flatnonzero(left & (np.isin(olds, changed) | np.isin(brokers, changed)))

    def _gains_now(
        self,
        rows: Numbers,
        places: Numbers,
        olds: Numbers,
        brokers: Numbers,
        others: Numbers,
        other_places: Numbers,
    ) -> Floats:
        table = self.table
        if not len(rows) or others[0] == NOBODY:
            return table.gains(rows, places, brokers)
        weight = table.weights(rows, places) - table.weights(others, other_places)
        return table.exchange_gains((olds, brokers), weight, (rows, places), (others, other_places))

    def _apply(self, change: Change) -> bool:
        """Make a change if it is allowed; whether it is."""
        table, old = self.table, int(self.table.at[change.partition, change.place])
        row, place, broker = np.array([change.partition]), np.array([change.place]), np.array([change.broker])
        if change.other == NOBODY:
            if not table.allowed(row, place, broker)[0]:
                return False
            table.move(change.partition, change.place, change.broker)
            return True
        if not table.allowed(np.array([change.other]), np.array([change.other_place]), np.array([old]))[0]:
            return False
        table.move(change.other, change.other_place, old)
        if not table.allowed(row, place, broker)[0]:
            table.move(change.other, change.other_place, change.broker)
            return False
        table.move(change.partition, change.place, change.broker)
        return True

    # -- exchanges ---------------------------------------------------------------------------------------------------

    def _exchange(self) -> int:
        """Make the best exchanges of each broker that is outside its bands with others; return how many."""
        made = 0
        seen: set[tuple[int, int]] = set()
        for broker in np.flatnonzero(self._wrong()).tolist():
            slopes = self.table.slopes()
            found: list[Change] = []
            for other in self.partners(broker):
                if (other, broker) in seen:
                    continue
                seen.add((broker, other))
                if not self.budget.spend(1):
                    return made
                found += self.between(broker, other, slopes)
            made += self._make(found)
        return made

    def partners(self, broker: int) -> list[int]:
        """Return the brokers with which exchanges may help, the most different first."""
        table = self.table
        others = self.receivers[self.receivers != broker]
        if table.layout.shares.rigid:
            others = others[table.rack[others] == table.rack[broker]]
        apart = np.abs(table.share[:, others] - table.share[:, [broker]]).sum(axis=0)
        return [int(other) for other in others[np.argsort(-apart, kind="stable")[:PARTNERS]]]

    def between(self, broker: int, other: int, slopes: Floats) -> list[Change]:
        """Return the best exchanges between two brokers."""
        table = self.table
        rows, places = self._movable_replicas(broker, other)
        others, other_places = self._movable_replicas(other, broker)
        if not len(rows) or not len(others):
            return []
        weight, other_weight = table.weights(rows, places), table.weights(others, other_places)
        slope = slopes[:, broker] - slopes[:, other]
        bounds = (slope @ weight)[:, None] - slope @ other_weight
        bounds /= table.size[rows][:, None] + table.size[others] + 2 * self.copy_cost
        out, back = self._costs(rows, places, _as_array(other)), self._costs(others, other_places, _as_array(broker))

        def changes(chosen: Numbers) -> Iterator[Change]:
            here, there = chosen // len(others), chosen % len(others)
            gains = table.exchange_gains(
                (_as_array(broker), _as_array(other)),
                weight[:, here] - other_weight[:, there],
                _at(here, rows, places),
                _at(there, others, other_places),
            )
            worth = self._worth(gains, out[0][here] + back[0][there], out[1][here] + back[1][there])
            for best in np.argsort(-worth, kind="stable").tolist():
                row, column = int(here[best]), int(there[best])
                yield Change(
                    *(worth[best], gains[best], int(rows[row]), int(places[row]), other),
                    *(int(others[column]), int(other_places[column])),
                )

        return _first_good(bounds, changes)

    def _movable_replicas(self, broker: int, other: int) -> tuple[Numbers, Numbers]:
        """Return the replicas on a broker that may go to another one, as soon as that has room."""
        rows, places = self._replicas_on(broker)
        rows, places = _at(self.table.suits(rows, places, _as_array(other)), rows, places)
        return rows, places


def _as_array(broker: int) -> Numbers:
    return np.array([broker])


def _at(where: NDArray[Any], *arrays: Numbers) -> tuple[Numbers, ...]:
    return tuple(array[where] for array in arrays)


def _first_good(bounds: Floats, changes: Callable[[Numbers], Iterable[Change]], count: int = 2 * TAKEN) -> list[Change]:
    """Look at candidates by their bounds, in ever larger parts, until some are good; return a few of these."""
    flat = bounds.ravel()
    good = np.flatnonzero(flat > 0)
    done, size = 0, CLOSE
    while done < min(len(good), MOST_CLOSE):
        if len(good) > done + size:
            part = np.argpartition(-flat[good[done:]], size)
            good = np.concatenate([good[:done], good[done:][part]])
        found = list(_distinct(changes(np.sort(good[done : done + size])), count))
        if found:
            return found
        done, size = done + size, size * 4
    return []


def _distinct(changes: Iterable[Change], count: int) -> Iterator[Change]:
    """Yield a few changes that are worth something, of different partitions."""
    seen: set[int] = set()
    for change in changes:
        if change.worth <= 0 or len(seen) >= count:
            return
        partitions = {change.partition, change.other} - {NOBODY}
        if not seen & partitions:
            seen |= partitions
            yield change
