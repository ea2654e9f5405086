"""Fair shares: how much each broker would hold if a cluster were even, as far as its racks allow."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from drover.planner.loads import Load

# The loads that follow from who leads, and not from racks.
LED = frozenset({Load.NETWORK_OUT, Load.PROCESSOR, Load.LEADER_WRITES, Load.LEADERS})


@dataclass(frozen=True, slots=True)
class Shares:
    """Fair shares by broker; `means` are those of replicas and bytes over all brokers that may receive.

    `rigid` says that racks fix how much each rack holds, because most partitions have a replica in all of them.
    """

    count: Mapping[int, float]
    disk: Mapping[int, float]
    means: tuple[float, float]
    rigid: bool


def fair_shares(
    racks: Mapping[int, str | int],
    replicas: Sequence[int],
    sizes: Sequence[float],
    kept: tuple[Mapping[int, float], Mapping[int, float]],
    disks: Mapping[int, float] | None = None,
) -> Shares:
    """Divide the replicas and bytes that the receiving brokers hold, or will, among them.

    `replicas` and `sizes` are the number of replicas of each partition and the size of one, `kept` the replicas and the
    bytes that stay on brokers that receive nothing. `racks` has the rack of each of these and of each receiver. With
    `disks`, both are divided in proportion to these: where nothing else is known, a broker that can hold more bytes
    gets more replicas.
    """
    count = fair_share(racks, replicas, [1.0] * len(replicas), kept[0], disks)
    disk = fair_share(racks, replicas, sizes, kept[1], disks)
    number_of_racks = len({rack for number, rack in racks.items() if number not in kept[0]})
    everywhere = sum(number >= number_of_racks > 1 for number in replicas)
    mean_count, mean_disk = (sum(share.values()) / max(1, len(share)) for share in (count, disk))
    return Shares(count, disk, (mean_count, mean_disk), everywhere * 2 > len(replicas))


def fair_loads(
    load: Load,
    racks: Mapping[int, str | int],
    receiving: Collection[int],
    leading: Sequence[int],
    held: Mapping[int, float],
    leaving: Collection[int],
    weights: tuple[Sequence[int], Sequence[float]],
    capacity: Mapping[int, float] | None,
) -> dict[int, float]:
    """Return the fair load of each broker that may bear it, in proportion to its capacity if that is given.

    `racks` has the rack of each broker, and `held` what it bears now. Those in `receiving` may receive replicas, of
    them those in `leading` may lead; those that are `leaving` are being emptied. `weights` are the number of replicas
    of each partition, and what one adds to the load. What brokers bear that may not receive stays with them.
    """
    kept_loads = {
        broker: amount for broker, amount in held.items() if broker not in receiving and broker not in leaving
    }
    if load not in LED:
        bearing_racks = {broker: rack for broker, rack in racks.items() if broker in receiving or broker in kept_loads}
        return fair_share(bearing_racks, *weights, kept_loads, capacity)
    total = max(0.0, sum(held.values()) - sum(kept_loads.values()))
    able = {number: 1.0 if capacity is None else capacity[number] for number in leading}
    whole = sum(able.values())
    return {number: total * share / whole for number, share in able.items()}


def fair_share(
    racks: Mapping[int, str | int],
    replicas: Sequence[int],
    loads: Sequence[float],
    kept: Mapping[int, float],
    capacity: Mapping[int, float] | None = None,
) -> dict[int, float]:
    """Divide one load; `loads` is what each replica of a partition adds to it, `kept` what stays on some brokers.

    `racks` has the rack of these and of the receivers. Every receiver has the same share, or one in proportion to its
    `capacity`, as far as racks allow: a rack must hold a replica of every partition that has as many replicas as there
    are racks, so brokers in a small rack have more.
    """
    receivers = {number: rack for number, rack in racks.items() if number not in kept}
    weights = _by_replicas(replicas, loads)
    able = {number: 1.0 if capacity is None else capacity[number] for number in receivers}
    rooms: dict[str | int, float] = {}
    for number, rack in receivers.items():
        rooms[rack] = rooms.get(rack, 0.0) + able[number]
    kept_there: dict[str | int, float] = {}
    for number, amount in kept.items():
        kept_there[racks[number]] = kept_there.get(racks[number], 0.0) + amount
    total = max(0.0, sum(number * weight for number, weight in weights.items()) - sum(kept.values()))
    brokers = Counter(rack for rack in racks.values() if rack in rooms)
    bounds = [_bounds(brokers[rack], brokers, weights, kept_there.get(rack, 0.0)) for rack in rooms]
    held = _divide(total, list(rooms.values()), bounds)
    per_unit = {rack: part / rooms[rack] for rack, part in zip(rooms, held, strict=True)}
    return {number: per_unit[rack] * able[number] for number, rack in receivers.items()}


def _by_replicas(replicas: Sequence[int], load: Sequence[float]) -> dict[int, float]:
    """Sum up the weights of partitions by the number of their replicas."""
    found: dict[int, float] = {}
    for number, weight in zip(replicas, load, strict=True):
        found[number] = found.get(number, 0.0) + weight
    return found


def _bounds(
    room: int, brokers: Mapping[str | int, int], weights: Mapping[int, float], kept: float
) -> tuple[float, float]:
    """Return the least and the most for a rack of `room` brokers when all partitions are spread evenly.

    What is `kept` on some of these brokers is not for the others.
    """
    least = most = 0.0
    for replicas, weight in weights.items():
        each, left = divmod(replicas, len(brokers))
        least += min(each, room) * weight
        most += min(each + (left > 0), room) * weight
    least = max(0.0, least - kept)
    return least, max(least, most - kept)


def _divide(total: float, brokers: Sequence[float], bounds: Sequence[tuple[float, float]]) -> list[float]:
    """Give each rack the same per unit of its room, within its bounds, so that all is given away."""
    low, high = 0.0, max((most / room for (_, most), room in zip(bounds, brokers, strict=True)), default=0.0)
    for _ in range(60):
        level = (low + high) / 2
        given = sum(min(max(level * room, least), most) for (least, most), room in zip(bounds, brokers, strict=True))
        low, high = (level, high) if given < total else (low, level)
    held = [min(max(high * room, least), most) for (least, most), room in zip(bounds, brokers, strict=True)]
    rest = (total - sum(held)) / max(1, sum(brokers))
    return [part + rest * room for part, room in zip(held, brokers, strict=True)]
