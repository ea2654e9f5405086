"""Seeded instances of what operators move: skewed sizes and sources, slow streams, racks, ingest, replacements."""

from collections.abc import Callable, Iterator
from random import Random

from bench.ports_model import Instance, Shift
from drover.events.partitions import TopicPartition

BROKERS, RACKS, TOPICS = 12, 3, 10
PORT = 50e6
STREAM_SHARES = (1, 3, 8)
MEDIAN_BYTES = 400e6

Draw = Callable[[Random], float]


def instances(seeds: int, moves: int) -> Iterator[Instance]:
    """Make every family with every share of a port that one stream reaches, for so many seeds."""
    for share in STREAM_SHARES:
        for family, make in FAMILIES.items():
            for seed in range(seeds):
                yield make(Random(f"{family}-{share}-{seed}"), f"{family}, stream 1/{share}, {seed}", share, moves)


def _sizes(sigma: float) -> Draw:
    return lambda chance: MEDIAN_BYTES * chance.lognormvariate(0, sigma)


def _instance(name: str, share: int, shifts: list[Shift], uplink: float | None = None) -> Instance:
    racks = {broker: f"r{broker % RACKS}" for broker in range(1, BROKERS + 1)}
    return Instance(name, name.split(",", maxsplit=1)[0], racks, tuple(shifts), PORT, PORT / share, uplink)


def _moves(chance: Random, count: int, size: Draw, *, hot: float = 0.0, ingest: float = 0.0) -> Iterator[Shift]:
    """Give partitions with three replicas another last one; of `hot` of them a quarter of the brokers leads all."""
    for number in range(count):
        before = chance.sample(range(1, BROKERS + 1), 3)
        if chance.random() < hot:
            leader = 1 + chance.randrange(BROKERS // 4)
            before = [leader, *(broker for broker in before if broker != leader)][:3]
        added = chance.choice([broker for broker in range(1, BROKERS + 1) if broker not in before])
        written = PORT * ingest * chance.random() * 2
        yield Shift(_key(number), tuple(before), (*before[:2], added), size(chance), written)


def _key(number: int) -> TopicPartition:
    return TopicPartition(f"topic-{number % TOPICS}", number // TOPICS)


def _even(chance: Random, name: str, share: int, moves: int) -> Instance:
    return _instance(name, share, list(_moves(chance, moves, _sizes(0.2))))


def _skewed(chance: Random, name: str, share: int, moves: int) -> Instance:
    return _instance(name, share, list(_moves(chance, moves, _sizes(1.2))))


def _very_skewed(chance: Random, name: str, share: int, moves: int) -> Instance:
    return _instance(name, share, list(_moves(chance, moves, _sizes(1.8))))


def _hot_sources(chance: Random, name: str, share: int, moves: int) -> Instance:
    return _instance(name, share, list(_moves(chance, moves, _sizes(1.2), hot=0.5)))


def _racks(chance: Random, name: str, share: int, moves: int) -> Instance:
    return _instance(name, share, list(_moves(chance, moves, _sizes(1.2))), uplink=2 * PORT)


def _written_to(chance: Random, name: str, share: int, moves: int) -> Instance:
    return _instance(name, share, list(_moves(chance, moves, _sizes(1.2), ingest=0.001)))


def _replacement(chance: Random, name: str, share: int, moves: int) -> Instance:
    """Move all three replicas of each partition from one half of the brokers to the other."""
    half, size = BROKERS // 2, _sizes(0.8)
    shifts = [
        Shift(
            _key(number),
            tuple(chance.sample(range(1, half + 1), 3)),
            tuple(chance.sample(range(half + 1, BROKERS + 1), 3)),
            size(chance),
        )
        for number in range(moves // 3)
    ]
    return _instance(name, share, shifts)


FAMILIES: dict[str, Callable[[Random, str, int, int], Instance]] = {
    "even sizes": _even,
    "skewed sizes": _skewed,
    "very skewed sizes": _very_skewed,
    "hot sources": _hot_sources,
    "racks": _racks,
    "ingest": _written_to,
    "replacement": _replacement,
}
