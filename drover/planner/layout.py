"""The replica lists under construction, with the loads of every broker kept up to date; private to the planner."""

import math
from collections.abc import Collection, Iterator

from drover.planner.figures import largest_room_of, room_of
from drover.planner.goals import Limits
from drover.planner.loads import Load
from drover.planner.model import ClusterModel
from drover.planner.racks import Racks
from drover.planner.shares import Shares, fair_shares

# So many receivers are all tried for every replica; of more, only the least loaded of each rack.
FEW = 128
RENEWED_EVERY = 16


class Layout:
    """A working copy of the lists of a cluster. Partitions are numbered as in the model, brokers by their id.

    `replicas` keeps the places of the original lists, so that taking a change back gives the original; `first` says
    which of them leads. `ordered` puts the two together.
    `count`, `disk` and `leaders` are the loads by broker; `over_count` and `over_disk` how far they are above the
    broker's fair share. Bytes that arrive are reserved on top of what is there already, whatever
    leaves: copies arrive before anything is dropped.
    """

    def __init__(self, model: ClusterModel, limits: Limits, leaving: Collection[int] = ()) -> None:
        self.model = model
        self.limits = limits
        self.leaving = frozenset(leaving)
        self.alive = frozenset(broker.id for broker in model.brokers if broker.alive)
        # Kafka refuses every list that names one of them; those that the goal empties are in none.
        self.unregistered = frozenset(broker.id for broker in model.brokers if broker.unregistered) - self.leaving
        self.racks = Racks(model.brokers, leaving)
        self.rack = {broker.id: self.racks.of(broker.id) for broker in model.brokers}
        self.original = [partition.replicas for partition in model.partitions]
        self.replicas = [list(replicas) for replicas in self.original]
        self.first = [replicas[0] if replicas else -1 for replicas in self.original]
        self.size = [partition.size_bytes or 0 for partition in model.partitions]
        self.write = [partition.write_bytes_per_s or 0.0 for partition in model.partitions]
        self.receivers = [broker.id for broker in model.brokers if broker.may_receive and broker.id not in self.leaving]
        self.receives = frozenset(self.receivers)
        self._asked = 0
        self._likely: list[int] = []
        # What these head can be led by others of them, although not all of them should lead.
        self.may_head = self.receives
        self.may_lead = self.may_head - {broker.id for broker in model.brokers if broker.demoted}
        # The brokers to which replicas of each partition may come; None is everywhere.
        self.within = [model.within(partition.topic) for partition in model.partitions]
        # Pairs of replicas in one rack beyond what the brokers force: what a partition had, it may keep.
        self.excess = [
            self.racks.excess(replicas, within) for replicas, within in zip(self.original, self.within, strict=True)
        ]
        self._sum_up()
        self._measure_rooms()
        self.shares = self._fair_shares()
        mean_count, mean_disk = self.shares.means
        self.count_weight = 1 / mean_count**2 if mean_count else 0.0
        self.disk_weight = 1 / mean_disk**2 if mean_disk else 0.0
        self.over_count = {broker: self.count[broker] - self.shares.count.get(broker, 0.0) for broker in self.count}
        self.over_disk = {broker: self.disk[broker] - self.shares.disk.get(broker, 0.0) for broker in self.count}

    def _sum_up(self) -> None:
        numbers = {broker.id for broker in self.model.brokers}
        numbers.update(broker for replicas in self.original for broker in replicas)
        self.count = dict.fromkeys(sorted(numbers), 0)
        self.disk, self.leaders = dict(self.count), dict(self.count)
        for partition, replicas in enumerate(self.original):
            size = self.size[partition]
            for broker in replicas:
                self.count[broker] += 1
                self.disk[broker] += size
            if replicas:
                self.leaders[replicas[0]] += 1

    def _fair_shares(self) -> Shares:
        # Also what stays on dead brokers: nobody else is to hold it.
        kept = [number for number in self.count if number not in self.receives | self.leaving]
        return fair_shares(
            {number: self.racks.of(number) for number in (*self.receivers, *kept)},
            [len(replicas) for replicas in self.original],
            self.size,
            ({number: self.count[number] for number in kept}, {number: self.disk[number] for number in kept}),
            self._unequal_disks(),
        )

    def _unequal_disks(self) -> dict[int, float] | None:
        """Return the sizes of the receivers' disks; None if one is unknown, or all are the same."""
        brokers = self.model.broker_by_id
        sizes = {number: brokers[number].total_bytes for number in self.receivers}
        known = {number: float(size) for number, size in sizes.items() if size}
        return known if len(known) == len(sizes) and len(set(known.values())) > 1 else None

    def _measure_rooms(self) -> None:
        brokers = self.model.broker_by_id
        rooms = {number: room_of(brokers[number], self.limits.disk_limit) for number in self.receivers}
        largest = {number: largest_room_of(brokers[number], self.limits.disk_limit) for number in self.receivers}
        self.room = {number: math.inf if room is None else room for number, room in rooms.items()}
        self.largest_room = {number: math.inf if room is None else room for number, room in largest.items()}
        written = dict.fromkeys(self.count, 0.0)
        for partition, replicas in enumerate(self.original):
            for broker in replicas:
                written[broker] += self.write[partition]
        self.replica_room, self.network_room = dict(self.room), dict(self.room)
        for number in self.receivers:
            most, able = brokers[number].max_replicas, brokers[number].network_in_bytes_per_s
            held = self.count[number] + brokers[number].arriving_replicas
            left = self.limits.limit(Load.NETWORK_IN) * (able or 0.0) - written[number]
            self.replica_room[number] = math.inf if most is None else max(0, most - held)
            self.network_room[number] = math.inf if able is None else max(0.0, left)

    def likely(self) -> list[int]:
        """Return the receivers worth a try: all of them, or in a large cluster the least loaded of each rack.

        In a large cluster the choice is renewed now and then, so it lags a few changes behind.
        """
        if len(self.receivers) <= FEW:
            return self.receivers
        self._asked += 1
        if self._asked % RENEWED_EVERY == 1:
            ranked = sorted((self.standing(number), number) for number in self.receivers)
            racks: dict[str | int, list[int]] = {}
            for _, number in ranked:
                racks.setdefault(self.rack[number], []).append(number)
            self._likely = [number for numbers in racks.values() for number in numbers[: max(4, FEW // len(racks))]]
        return self._likely

    def standing(self, number: int) -> float:
        """Return how loaded a broker is beside its fair share, in shares of the means."""
        count = self.over_count[number] * math.sqrt(self.count_weight)
        return count + self.over_disk[number] * math.sqrt(self.disk_weight)

    def receive_only(self, brokers: Collection[int]) -> None:
        """Let only these brokers receive replicas; leaders and racks are as before."""
        self.receivers = [number for number in self.receivers if number in brokers]
        self.receives = frozenset(self.receivers)

    def is_within(self, partition: int, broker: int) -> bool:
        """Whether a broker is of the set that is set apart for the partition's topic, if there is one."""
        within = self.within[partition]
        return within is None or broker in within

    def crowding(self, partition: int) -> int:
        """Count the pairs of a partition's replicas that share a rack beyond what the brokers force."""
        return self.racks.excess(self.replicas[partition], self.within[partition])

    def fits(self, partition: int, broker: int) -> bool:
        """Whether the broker is of the topic's set, and has room for a copy: disks, network and one more replica."""
        size = self.size[partition]
        return (
            self.is_within(partition, broker)
            and size <= self.room[broker]
            and size <= self.largest_room[broker]
            and self.replica_room[broker] >= 1
            and self.write[partition] <= self.network_room[broker]
        )

    def is_overfull(self, broker: int) -> bool:
        """Whether more arrives on a broker than it has room for."""
        if broker not in self.room:
            return False
        return min(self.room[broker], self.replica_room[broker], self.network_room[broker]) < 0

    def allowed(self, partition: int, old: int | None, new: int) -> bool:
        """Whether `new` may take the place of `old`: it may receive, never had it, has room, and no racks are lost."""
        return (
            new in self.receives
            and new not in self.replicas[partition]
            and new not in self.original[partition]
            and self.keeps_spread(partition, old, new)
            and self.fits(partition, new)
        )

    def keeps_spread(self, partition: int, old: int | None, new: int) -> bool:
        """Whether the racks are as good with `new` in the place of `old`, or as good as they can be."""
        replicas = self.replicas[partition]
        rack = self.racks.of(new)
        old_rack = None if old is None else self.racks.of(old)
        if rack == old_rack:
            return True
        with_new = with_old = 0
        for broker in replicas:
            if broker != old:
                there = self.racks.of(broker)
                with_new += there == rack
                with_old += there == old_rack
        if with_new == 0 or (old is not None and with_new <= with_old):
            return True
        pairs = self.racks.pairs(replicas) + with_new - with_old
        return (
            pairs
            <= self.racks.fewest_pairs(replicas, self.within[partition], more=old is None) + self.excess[partition]
        )

    def gain(self, partition: int, old: int, new: int) -> float:
        """Return by how much the sum of squared distances from the fair shares falls if a replica moves."""
        size = self.size[partition]
        count = self.over_count[old] - self.over_count[new] - 1
        disk = size * (self.over_disk[old] - self.over_disk[new] - size)
        return 2 * (self.count_weight * count + self.disk_weight * disk)

    def imbalance(self) -> float:
        """Return the sum of squared distances of all brokers from their fair shares, in shares of the means."""
        return sum(
            self.count_weight * self.over_count[number] ** 2 + self.disk_weight * self.over_disk[number] ** 2
            for number in self.shares.count
        )

    def cost(self, partition: int, new: int) -> float:
        """Return by how much that sum rises if a broker gets a replica that comes from nowhere that counts."""
        size = self.size[partition]
        raised = self.count_weight * (2 * self.over_count[new] + 1)
        return raised + self.disk_weight * size * (2 * self.over_disk[new] + size)

    def replace(self, partition: int, old: int, new: int) -> None:
        """Put `new` in the place of `old`, also as the leader."""
        replicas = self.replicas[partition]
        replicas[replicas.index(old)] = new
        self._unload(partition, old)
        self._load(partition, new)
        if self.first[partition] == old:
            self.lead(partition, new)

    def assign(self, partition: int, wanted: list[int]) -> None:
        """Give the partition a list of the same length; whoever is in the leader's place leads."""
        present = self.replicas[partition]
        place = present.index(self.first[partition])
        for broker in present:
            if broker not in wanted:
                self._unload(partition, broker)
        for broker in wanted:
            if broker not in present:
                self._load(partition, broker)
        self.replicas[partition] = list(wanted)
        self.lead(partition, wanted[place])

    def tidy(self, partition: int) -> None:
        """Put every replica that stays into its original place, and the others into the places that are left.

        Whoever is in the first place leads then.
        """
        original, replicas = self.original[partition], self.replicas[partition]
        others = iter([broker for broker in replicas if broker not in original])
        replicas[:] = [broker if broker in replicas else next(others) for broker in original]
        self.lead(partition, replicas[0])

    def append(self, partition: int, new: int) -> None:
        """Add a replica at the end of the list."""
        self.replicas[partition].append(new)
        self._load(partition, new)

    def drop(self, partition: int, old: int) -> None:
        """Take a replica off the list; the next one in order leads if it was the first."""
        replicas = self.replicas[partition]
        replicas.remove(old)
        self._unload(partition, old)
        if self.first[partition] == old:
            self.lead(partition, replicas[0])

    def lead(self, partition: int, broker: int) -> None:
        """Put a replica first; the others keep their order."""
        self.leaders[self.first[partition]] -= 1
        self.leaders[broker] += 1
        self.first[partition] = broker

    def ordered(self, partition: int) -> tuple[int, ...]:
        """Return the list as Kafka would get it."""
        first = self.first[partition]
        replicas = self.replicas[partition]
        if not replicas or replicas[0] == first:
            return tuple(replicas)
        return (first, *(broker for broker in replicas if broker != first))

    def changed(self) -> Iterator[int]:
        """Name the partitions whose list is not the original one."""
        for partition, original in enumerate(self.original):
            if self.ordered(partition) != original:
                yield partition

    def name(self, partition: int) -> str:
        """Return the name that operators type."""
        return "{}:{}".format(*self.model.partitions[partition].name)

    def _load(self, partition: int, broker: int) -> None:
        size = self.size[partition]
        self.count[broker] += 1
        self.over_count[broker] += 1
        self.disk[broker] += size
        self.over_disk[broker] += size
        if broker in self.room and broker not in self.original[partition]:
            self.room[broker] -= size
            self.replica_room[broker] -= 1
            self.network_room[broker] -= self.write[partition]

    def _unload(self, partition: int, broker: int) -> None:
        size = self.size[partition]
        self.count[broker] -= 1
        self.over_count[broker] -= 1
        self.disk[broker] -= size
        self.over_disk[broker] -= size
        if broker in self.room and broker not in self.original[partition]:
            self.room[broker] += size
            self.replica_room[broker] += 1
            self.network_room[broker] += self.write[partition]
