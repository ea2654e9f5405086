"""The lists under construction as arrays, with every load of every broker kept up to date; private to the planner."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from drover.planner.goals import Limits, TopicSpread
from drover.planner.layout import Layout
from drover.planner.loads import Load, Measures, capacity_of, weights_of
from drover.planner.placement import leading_brokers
from drover.planner.shares import fair_loads
from drover.planner.spreading import LEFT_OUT, SEVERAL

Floats = NDArray[np.float64]
Numbers = NDArray[np.int64]
Flags = NDArray[np.bool_]

NOBODY = -1
# How much more it counts to be above a limit than outside a band.
LIMIT_WEIGHT = 20.0
ROUNDING = 1e-9
# What copies need room for at any moment, whatever has been dropped by then.
ROOMS = (Load.DISK, Load.NETWORK_IN, Load.NETWORK_OUT, Load.REPLICAS)


class LoadTable:
    """Replica lists by partition and place, and loads by broker, as shares of what is fair for it.

    Partitions are numbered as in the layout, brokers by their place in `numbers`. `at` has the broker of each replica,
    `home` the one of the original list; `NOBODY` where a list is shorter. `lead_place` says which replica leads.

    `share` has a row for each load. A broker is outside its band by what its share is above `high` or below `low`; what
    it is above `limit` counts `LIMIT_WEIGHT` times more. `room` has what each broker may still take on of `ROOMS`,
    although nothing has been dropped yet.
    """

    def __init__(self, layout: Layout, measures: Measures, limits: Limits) -> None:
        self.layout = layout
        self.loads = measures.loads
        self.limits = limits
        self.numbers = list(layout.count)
        self.index = {number: place for place, number in enumerate(self.numbers)}
        self.size = np.array(layout.size, dtype=np.float64)
        self._read_lists()
        self._read_brokers()
        self._weigh(measures)
        self._measure_rooms(measures)
        self._count_topics()
        self.squares = self.step = 0.0

    # -- reading the layout ------------------------------------------------------------------------------------------

    def _read_lists(self) -> None:
        layout, index = self.layout, self.index
        width = max((len(each) for each in (*layout.replicas, *layout.original)), default=1)
        shape = (len(layout.replicas), width)
        self.at, self.home = np.full(shape, NOBODY, dtype=np.int64), np.full(shape, NOBODY, dtype=np.int64)
        for array, lists in ((self.at, layout.replicas), (self.home, layout.original)):
            for partition, replicas in enumerate(lists):
                array[partition, : len(replicas)] = [index[broker] for broker in replicas]
        self.lead_place = np.array(
            [replicas.index(first) for replicas, first in zip(layout.replicas, layout.first, strict=True)],
            dtype=np.int64,
        )
        self.first_home = self.home[:, 0].copy()
        self.factor = np.array([len(replicas) for replicas in layout.replicas], dtype=np.int64)

    def _read_brokers(self) -> None:
        layout, numbers = self.layout, self.numbers
        names = {name: place for place, name in enumerate(dict.fromkeys(map(layout.racks.of, numbers)))}
        self.rack = np.array([names[layout.racks.of(number)] for number in numbers], dtype=np.int64)
        self.receives = np.array([number in layout.receives for number in numbers])
        self.leaving = np.array([number in layout.leaving for number in numbers])
        self.able = np.array([number in layout.may_lead for number in numbers])
        # Those that have a fair share, although a goal may let fewer receive.
        self.counting = np.array([number in layout.may_head for number in numbers])
        self.most_pairs = np.array(
            [
                layout.racks.fewest_pairs(replicas, within) + excess
                for replicas, within, excess in zip(layout.replicas, layout.within, layout.excess, strict=True)
            ],
            dtype=np.int64,
        )
        in_sync = np.zeros(self.home.shape, dtype=bool)
        for partition, facts in enumerate(layout.model.partitions):
            for place, replica in enumerate(layout.original[partition]):
                in_sync[partition, place] = replica in facts.isr
        self._in_sync = in_sync
        topics = {topic: place for place, topic in enumerate(dict.fromkeys(p.topic for p in layout.model.partitions))}
        self.topic = np.array([topics[facts.topic] for facts in layout.model.partitions], dtype=np.int64)
        self.topics = len(topics)
        self._within = np.ones((self.topics, len(numbers)), dtype=bool)
        for topic, place in topics.items():
            own = layout.model.set_of(topic)
            if own is not None:
                self._within[place] = [number in own.brokers for number in numbers]
        self._minimum = np.zeros((self.topics, len(numbers)))
        for topic, place in topics.items():
            brokers = leading_brokers(layout.model, topic, layout.leaving) if layout.model.min_leaders else ()
            least = layout.model.min_leaders_of(topic)
            if least * len(brokers) <= int((self.topic == place).sum()):
                self._minimum[place, [self.index[number] for number in brokers]] = least
        self._demoted = np.zeros((self.topics, len(numbers)), dtype=bool)
        for broker in layout.model.brokers:
            for topic in broker.demoted_topics:
                if topic in topics:
                    self._demoted[topics[topic], self.index[broker.id]] = True

    def _weigh(self, measures: Measures) -> None:
        layout = self.layout
        weights = weights_of(layout.model, measures, self.factor.tolist())
        shape = (len(self.loads), len(layout.replicas))
        self.leader, self.follower = np.zeros(shape), np.zeros(shape)
        for row, load in enumerate(self.loads):
            self.leader[row] = [weight.leader for weight in weights[load]]
            self.follower[row] = [weight.follower for weight in weights[load]]
        self.held = self._sums(self.at, self.lead_place)
        self.before = self._sums(self.home, np.zeros(len(self.home), dtype=np.int64))
        self._set_bands(measures)
        self.share = self.held * self.unit

    def _sums(self, lists: Numbers, leading: Numbers) -> Floats:
        """Add up what brokers bear with these lists."""
        held = np.zeros((len(self.loads), len(self.numbers)))
        for place in range(lists.shape[1]):
            there = np.flatnonzero(lists[:, place] != NOBODY)
            leads = leading[there] == place
            for row in range(len(self.loads)):
                weight = np.where(leads, self.leader[row, there], self.follower[row, there])
                held[row] += np.bincount(lists[there, place], weight, minlength=len(self.numbers))
        return held

    def _set_bands(self, measures: Measures) -> None:
        shape = self.held.shape
        self.unit, self.high, self.low = np.zeros(shape), np.full(shape, np.inf), np.full(shape, -np.inf)
        self.limit, self.counts = np.full(shape, np.inf), np.zeros(shape)
        for row, load in enumerate(self.loads):
            band = self.limits.band(load)
            for number, fair in self._fair(row, load, measures).items():
                if fair <= ROUNDING:
                    continue
                broker = self.index[number]
                self.unit[row, broker], self.counts[row, broker] = 1 / fair, 1.0
                high, low = 1 + band.above, 1 - band.below
                if load in (Load.REPLICAS, Load.LEADERS):
                    # They are whole: the fair number rounded either way is inside.
                    high, low = max(high, np.ceil(fair - ROUNDING) / fair), min(low, np.floor(fair + ROUNDING) / fair)
                self.high[row, broker], self.low[row, broker] = high + ROUNDING, low - ROUNDING
                if load in measures.absolute:
                    able = measures.capacity[load][number]
                    self.limit[row, broker] = self.limits.limit(load) * able / fair

    def _fair(self, row: int, load: Load, measures: Measures) -> dict[int, float]:
        """Return the fair load of each broker that counts."""
        layout = self.layout
        return fair_loads(
            load,
            {number: layout.racks.of(number) for number in self.numbers},
            layout.may_head,
            sorted(layout.may_lead),
            dict(zip(self.numbers, self.held[row].tolist(), strict=True)),
            layout.leaving,
            (self.factor.tolist(), self.leader[row].tolist()),
            measures.capacity.get(load),
        )

    def _measure_rooms(self, measures: Measures) -> None:
        """Measure what each broker may take on beside what it had before, and take off what the lists add already."""
        layout, limits = self.layout, self.limits
        brokers = layout.model.broker_by_id
        self.room = np.full((len(ROOMS), len(self.numbers)), np.inf)
        self.largest_room = np.full(len(self.numbers), np.inf)
        for number in layout.receivers:
            place, broker = self.index[number], brokers[number]
            self.room[0, place] = layout.room[number]
            self.room[1, place] = layout.network_room[number]
            self.room[3, place] = layout.replica_room[number]
            self.largest_room[place] = layout.largest_room[number]
            able = capacity_of(broker, Load.NETWORK_OUT)
            if able and Load.NETWORK_OUT in measures.absolute:
                held = self.before[self.loads.index(Load.NETWORK_OUT), place]
                self.room[2, place] = max(0.0, limits.limit(Load.NETWORK_OUT) * able - held)
        zeros = np.zeros(len(self.size))
        rows = {load: row for row, load in enumerate(self.loads)}
        self.arrival = np.stack(
            [
                self.size,
                np.array(layout.write, dtype=np.float64),
                self.follower[rows[Load.NETWORK_OUT]] if Load.NETWORK_OUT in rows else zeros,
                np.ones(len(self.size)),
            ]
        )
        out = rows.get(Load.NETWORK_OUT)
        self.leading = zeros if out is None else self.leader[out] - self.follower[out]
        for partition in np.flatnonzero((self.at != self.home).any(axis=1) | (self.lead_place != 0)).tolist():
            # The layout has reserved the others.
            self._reserve(partition, -1.0, rows=slice(2, 3))

    def _reserve(self, partition: int, sign: float, rows: slice = slice(None)) -> None:
        """Take what a partition's copies need off the rooms, or give it back."""
        home = self.home[partition].tolist()
        for place, broker in enumerate(self.at[partition].tolist()):
            if broker == NOBODY:
                continue
            if broker not in home:
                self.room[rows, broker] += sign * self.arrival[rows, partition]
            if place == self.lead_place[partition] and broker != home[0]:
                self.room[2, broker] += sign * self.leading[partition]

    def _count_topics(self) -> None:
        """Count replicas and leaders of each topic on each broker, and set how many there may be."""
        shape = (self.topics, len(self.numbers))
        self.of_topic, self.led_of_topic = np.zeros(shape), np.zeros(shape)
        for place in range(self.at.shape[1]):
            there = np.flatnonzero(self.at[:, place] != NOBODY)
            np.add.at(self.of_topic, (self.topic[there], self.at[there, place]), 1)
        everybody = np.arange(len(self.at))
        np.add.at(self.led_of_topic, (self.topic, self.at[everybody, self.lead_place]), 1)
        spreads = self.limits.topic_spread is not TopicSpread.OFF
        self.topic_weight = self._one_replica() if spreads or self._minimum.any() else 0.0
        receiving = max(1, len(self.layout.may_head))
        self.most_of_topic, self.least_of_topic = self._bounds(self.of_topic, receiving)
        self.most_led, self.least_led = self._bounds(self.led_of_topic, max(1, int(self.able.sum())))
        # Who is to lead so many has to have as many replicas.
        self.least_of_topic, self.least_led = (
            np.maximum(least, np.where(self._minimum > 0, self._minimum, -np.inf))
            for least in (self.least_of_topic, self.least_led)
        )
        self._more, self._less, self._more_led, self._less_led = (np.zeros(shape) for _ in range(4))
        self._weigh_topics(slice(None), slice(None))

    def _weigh_topics(self, topics: slice | int, brokers: slice | Sequence[int], *, led: bool = True) -> None:
        """Note what one replica, or leader, of topics more or less on brokers gains."""
        at = topics, brokers
        bounds = (self.of_topic, self.most_of_topic, self.least_of_topic, self._more, self._less, self.counting)
        led_bounds = (self.led_of_topic, self.most_led, self.least_led, self._more_led, self._less_led, self.able)
        for counts, most, least, more, less, judged in (bounds, led_bounds)[: 1 + led]:
            weight = self.topic_weight * judged[brokers]
            now = _beyond(counts[at], most[at], least[at])
            more[at] = weight * (now - _beyond(counts[at] + 1, most[at], least[at]))
            less[at] = weight * (now - _beyond(counts[at] - 1, most[at], least[at]))

    def _one_replica(self) -> float:
        row = self.loads.index(Load.REPLICAS)
        return float(self.unit[row].max(initial=0.0))

    def _bounds(self, counts: Floats, brokers: int) -> tuple[Floats, Floats]:
        """Return by topic and broker the most and the fewest that there should be; infinite where there is no bound.

        A broker that can bear more of a load than others may have more of a topic, and one that can bear less, less.
        """
        fair = counts.sum(axis=1, keepdims=True) / brokers
        # A topic of a set of brokers is spread over these only, of which nothing is said here.
        spread = (fair >= 1) & self._within.all(axis=1, keepdims=True)
        spread &= self.limits.topic_spread is not TopicSpread.OFF
        able = np.where(self.unit > 0, 1 / np.where(self.unit > 0, self.unit, 1), np.nan)
        with_most = np.ones(len(self.numbers))
        with_least = np.ones(len(self.numbers))
        for row in range(len(self.loads)):
            mean = np.nanmean(able[row]) if self.counts[row].any() else 1.0
            relative = np.nan_to_num(able[row] / mean, nan=1.0)
            with_most, with_least = np.maximum(with_most, relative), np.minimum(with_least, relative)
        high, low = fair * with_most, fair * with_least
        most, least = np.floor(high + 1 + ROUNDING), np.ceil(low - 1 - ROUNDING)
        if self.limits.topic_spread is TopicSpread.LOOSE:
            # A topic that leaves out brokers is spread as strictly as it can be, since it has to be copied anyway.
            left_out = np.sum(counts[:, self.counting] == 0, axis=1, keepdims=True) * LEFT_OUT >= brokers
            left_out &= fair >= SEVERAL
            most = np.where(left_out, most, np.ceil(high * 1.5) + 1)
            least = np.where(left_out, least, np.floor(low / 2) - 1)
        return np.where(spread, most, np.inf), np.where(spread, np.maximum(least, 0.0), -np.inf)

    # -- judging -----------------------------------------------------------------------------------------------------

    def outside(self) -> Floats:
        """Return how far each broker is outside its band, by load."""
        return np.maximum(self.share - self.high, 0) + np.maximum(self.low - self.share, 0)

    def above_limit(self) -> Floats:
        """Return how far each broker is above its limit, by load."""
        return np.maximum(self.share - self.limit, 0)

    def only_limits(self) -> None:
        """Let nothing count from now on but limits."""
        self.high[:], self.low[:] = np.inf, -np.inf
        self.topic_weight = self.squares = 0.0

    def penalty(self) -> float:
        """Return how far all brokers are outside their bands and above their limits, and topics are unspread."""
        bands = float(self.outside().sum() + LIMIT_WEIGHT * self.above_limit().sum())
        return bands + self.topic_penalty()

    def topic_penalty(self) -> float:
        """Return how far topics are from being spread."""
        if not self.topic_weight:
            return 0.0
        counting = self.counting
        over = _beyond(self.of_topic, self.most_of_topic, self.least_of_topic)
        led = _beyond(self.led_of_topic, self.most_led, self.least_led)
        return float(self.topic_weight * (over[:, counting].sum() + led[:, counting & self.able].sum()))

    # -- what a change gains -----------------------------------------------------------------------------------------

    def slopes(self) -> Floats:
        """Return by how much the penalty rises with each load of each broker, in the load's own unit.

        Costs are convex: a change never gains more than the slopes say, which sorts out most candidates by one product.
        """
        slope = (self.share > self.high).astype(np.float64) - (self.share < self.low)
        slope += LIMIT_WEIGHT * (self.share > self.limit)
        if self.squares:
            slope += 2 * self.squares * self.counts * (self.share - 1)
        return slope * self.unit

    def weights(self, rows: Numbers, places: Numbers) -> Floats:
        """Return what replicas add to each load: a row for each load."""
        return np.where(self.lead_place[rows] == places, self.leader[:, rows], self.follower[:, rows])

    def bounds(self, rows: Numbers, places: Numbers, receivers: Numbers, slopes: Floats) -> Floats:
        """Return the most that replicas could gain by going to receivers: a row each, a column per receiver."""
        olds, weight = self.at[rows, places], self.weights(rows, places)
        bound = self._change(olds, -weight)[:, None] - weight.T @ slopes[:, receivers]
        if self.topic_weight:
            topics = self.topic[rows]
            bound += self._topic_slope(topics, olds)[:, None] - self._topic_slope(topics[:, None], receivers)
        return bound

    def _topic_slope(self, topics: Numbers, brokers: Numbers) -> Floats:
        counts = self.of_topic[topics, brokers]
        slope = (counts > self.most_of_topic[topics, brokers]).astype(np.float64)
        slope -= counts < self.least_of_topic[topics, brokers]
        return self.topic_weight * slope * self.counting[brokers]

    def gains(self, rows: Numbers, places: Numbers, brokers: Numbers) -> Floats:
        """Return by how much the penalty falls if a replica goes to a broker, for each of as many of these."""
        olds, weight = self.at[rows, places], self.weights(rows, places)
        gain = self._change(olds, -weight) + self._change(brokers, weight)
        if self.topic_weight:
            topics = self.topic[rows]
            gain += self._less[topics, olds] + self._more[topics, brokers]
            led = self._less_led[topics, olds] + self._more_led[topics, brokers]
            gain += led * (self.lead_place[rows] == places)
        return gain

    def exchange_gains(
        self,
        brokers: tuple[Numbers, Numbers],
        weight: Floats,
        replicas: tuple[Numbers, ...],
        others: tuple[Numbers, ...],
    ) -> Floats:
        """Return by how much the penalty falls if replicas of the first brokers go to the second ones for others.

        Both are given by partitions and places, as many of each, with as many brokers or one; `weight` is what the
        first ones add more to each load.
        """
        here, there = brokers
        gain = self._change(here, -weight) + self._change(there, weight)
        if self.topic_weight:
            topic, other = self.topic[replicas[0]], self.topic[others[0]]
            leads, led = self.lead_place[replicas[0]] == replicas[1], self.lead_place[others[0]] == others[1]
            # Two replicas of one topic, or two leaders of it, change nothing.
            apart, led_apart = topic != other, (topic != other) | (leads != led)
            for topics, old, new, leading in ((topic, here, there, leads), (other, there, here, led)):
                gain += (self._less[topics, old] + self._more[topics, new]) * apart
                gain += (self._less_led[topics, old] + self._more_led[topics, new]) * (led_apart & leading)
        return gain

    def order_gains(self, rows: Numbers, places: Numbers) -> Floats:
        """Return by how much the penalty falls if these replicas lead, each alone."""
        olds, news = self.at[rows, self.lead_place[rows]], self.at[rows, places]
        weight = self.leader[:, rows] - self.follower[:, rows]
        gain = self._change(olds, -weight) + self._change(news, weight)
        if self.topic_weight:
            topics = self.topic[rows]
            gain += self._less_led[topics, olds] + self._more_led[topics, news]
        return gain

    def _change(self, brokers: Numbers, weight: Floats) -> Floats:
        """Return by how much the penalty falls if each of the brokers bears so much more: a row for each load."""
        share = self.share[:, brokers]
        return (self._cost(share, brokers) - self._cost(share + weight * self.unit[:, brokers], brokers)).sum(axis=0)

    def _cost(self, share: Floats, brokers: Numbers) -> Floats:
        """Return what shares cost on these brokers: a row for each load."""
        cost = np.maximum(share - self.high[:, brokers], self.low[:, brokers] - share)
        np.maximum(cost, 0, out=cost)
        cost += LIMIT_WEIGHT * np.maximum(share - self.limit[:, brokers], 0)
        if self.step:
            cost += self.step * (cost > 0)
        if self.squares:
            cost += self.squares * self.counts[:, brokers] * (share - 1) ** 2
        return cost

    # -- what is allowed ---------------------------------------------------------------------------------------------

    def copied(self, rows: Numbers, places: Numbers) -> Flags:
        """Whether these replicas are copies, and not where one was."""
        return ~(self.home[rows] == self.at[rows, places][:, None]).any(axis=1)

    def allowed(self, rows: Numbers, places: Numbers, brokers: Numbers) -> Flags:
        """Whether replicas may go to brokers, for each of as many of these.

        The broker may receive, has no replica of the partition, and has room, or had one before. No racks are lost, and
        a broker that should not lead is given no leader.
        """
        return self.has_room(rows, brokers) & self.suits(rows, places, brokers)

    def suits(self, rows: Numbers, places: Numbers, brokers: Numbers) -> Flags:
        """Whether replicas may go to brokers, or for all of them to one broker, as soon as these have room."""
        suits = self.receives[brokers] & ~self.holds(rows, brokers) & self.is_within(rows, brokers)
        return suits & self.may_head(rows, places, brokers) & self.keeps_spread(rows, places, brokers)

    def holds(self, rows: Numbers, brokers: Numbers) -> Flags:
        """Whether brokers have replicas of partitions."""
        holds: Flags = (self.at[rows] == brokers[:, None]).any(axis=1)
        return holds

    def is_within(self, rows: Numbers, brokers: Numbers) -> Flags:
        """Whether brokers are of the sets of the partitions' topics, or had replicas of them before."""
        is_within: Flags = self._within[self.topic[rows], brokers] | (self.home[rows] == brokers[:, None]).any(axis=1)
        return is_within

    def has_room(self, rows: Numbers, brokers: Numbers) -> Flags:
        """Whether copies of partitions fit on brokers, or had been there before."""
        fits: Flags = self.size[rows] <= self.largest_room[brokers]
        for row in (0, 1, 3):
            fits &= self.arrival[row, rows] <= self.room[row, brokers]
        return fits | (self.home[rows] == brokers[:, None]).any(axis=1)

    def may_head(self, rows: Numbers, places: Numbers, brokers: Numbers) -> Flags:
        """Whether brokers may take over replicas that lead; those that do not lead always."""
        leads = (self.leading[rows] <= self.room[2, brokers]) | (self.first_home[rows] == brokers)
        leads &= self.able[brokers] & ~self._demoted[self.topic[rows], brokers]
        return leads | (self.lead_place[rows] != places)

    def allowed_back(self, rows: Numbers, places: Numbers, brokers: Numbers) -> Flags:
        """Whether copies may go back to brokers of their original lists, which are not being emptied."""
        allowed = ~self.leaving[brokers] & ~(self.at[rows] == brokers[:, None]).any(axis=1)
        leads = (self.leading[rows] <= self.room[2, brokers]) | (self.first_home[rows] == brokers)
        leads &= self.able[brokers] & ~self._demoted[self.topic[rows], brokers]
        leads |= (self.lead_place[rows] != places) | (self.first_home[rows] == brokers)
        return allowed & leads & self.keeps_spread(rows, places, brokers)

    def keeps_spread(self, rows: Numbers, places: Numbers, brokers: Numbers) -> Flags:
        """Whether racks are as good as before, or as they can be, with brokers in the places of replicas."""
        others = self.at[rows]
        each = np.arange(len(rows))
        olds = others[each, places]
        others[each, places] = NOBODY
        racks = np.where(others == NOBODY, NOBODY, self.rack[others])
        new = (racks == self.rack[brokers][:, None]).sum(axis=1)
        old = (racks == self.rack[olds][:, None]).sum(axis=1)
        return (new <= old) | (self._pairs(rows) + new - old <= self.most_pairs[rows])

    def _pairs(self, rows: Numbers) -> Numbers:
        """Count the pairs of replicas in one rack."""
        lists = self.at[rows]
        racks = np.where(lists == NOBODY, NOBODY - np.arange(lists.shape[1]), self.rack[lists])
        same = racks[:, :, None] == racks[:, None, :]
        return (same.sum(axis=(1, 2)) - lists.shape[1]) // 2

    def may_lead(self, rows: Numbers, places: Numbers) -> Flags:
        """Whether replicas could lead instead of the present leaders: in sync or copied anew, and with room for it."""
        brokers = self.at[rows, places]
        homes = self.home[rows] == brokers[:, None]
        fit = ~homes.any(axis=1) | (homes & self._in_sync[rows]).any(axis=1)
        fit &= self.able[brokers] & ~self._demoted[self.topic[rows], brokers]
        within = (self.leading[rows] <= self.room[2, brokers]) | (self.first_home[rows] == brokers)
        return (brokers != NOBODY) & fit & within & (self.lead_place[rows] != places)

    # -- changing ----------------------------------------------------------------------------------------------------

    def move(self, partition: int, place: int, broker: int) -> None:
        """Put a broker in the place of another, also as the leader."""
        old = int(self.at[partition, place])
        leads = self.lead_place[partition] == place
        weight = self.leader[:, partition] if leads else self.follower[:, partition]
        self._reserve(partition, 1.0)
        self.at[partition, place] = broker
        self._reserve(partition, -1.0)
        self.share[:, old] -= weight * self.unit[:, old]
        self.share[:, broker] += weight * self.unit[:, broker]
        topic = self.topic[partition]
        self.of_topic[topic, old] -= 1
        self.of_topic[topic, broker] += 1
        if leads:
            self.led_of_topic[topic, old] -= 1
            self.led_of_topic[topic, broker] += 1
        if self.topic_weight:
            self._weigh_topics(topic, [old, broker], led=leads)

    def lead(self, partition: int, place: int) -> None:
        """Let another replica lead."""
        old, new = int(self.at[partition, self.lead_place[partition]]), int(self.at[partition, place])
        weight = self.leader[:, partition] - self.follower[:, partition]
        self._reserve(partition, 1.0)
        self.lead_place[partition] = place
        self._reserve(partition, -1.0)
        self.share[:, old] -= weight * self.unit[:, old]
        self.share[:, new] += weight * self.unit[:, new]
        topic = self.topic[partition]
        self.led_of_topic[topic, old] -= 1
        self.led_of_topic[topic, new] += 1
        if self.topic_weight:
            self._weigh_topics(topic, [old, new])

    def store(self, partitions: Sequence[int]) -> None:
        """Write these lists back to the layout; replicas that stay keep their places."""
        layout, numbers = self.layout, self.numbers
        for partition in partitions:
            wanted = [numbers[broker] for broker in self.at[partition].tolist() if broker != NOBODY]
            first = numbers[int(self.at[partition, self.lead_place[partition]])]
            layout.assign(partition, wanted)
            if len(wanted) == len(layout.original[partition]):
                layout.tidy(partition)
            layout.lead(partition, first)


def _beyond(counts: Floats, most: Floats, least: Floats) -> Floats:
    """Return how far counts are beyond their bounds."""
    return np.maximum(counts - most, 0) + np.maximum(least - counts, 0)
