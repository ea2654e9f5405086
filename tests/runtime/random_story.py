"""A story for random workers: what goes wrong while clients ask for something, and what must hold at the end.

`python -m tests.runtime.random_story FIRST COUNT` plays so many, and names those that fail.
"""

import asyncio
import random
import sys
from collections import Counter, defaultdict
from collections.abc import Callable
from typing import Any

import structlog

from drover.events.codec import Malformed, decode_command
from drover.events.records import Outcome
from drover.events.topics import shard_of
from drover.testing.memory_log import MemoryLog
from drover.testing.virtual_time import run_in_virtual_time
from tests.runtime.random_clients import Clients
from tests.runtime.random_workers import World
from tests.runtime.slow_connections import BROKERS
from tests.runtime.world import CLUSTERS, SHARDS

COMMANDS = 120
# So many of them come right after another one.
BURSTS = 0.6
STORY_S = 120.0
PATIENCE_S = 900.0
# At most that far apart.
TROUBLES_S = 8.0
LONGEST_HANG_S = 25.0


async def play(seed: int) -> None:
    """Play one story to its end: all is decided, all moves are over, and every throttle is taken off again."""
    world, chance = World(seed), random.Random(seed + 1)
    random.seed(seed)  # workers that contest a shard pause for random times
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: world.faults.append((context["message"], context.get("exception"))))
    clients, log = Clients(world.broker, chance), Log(world)
    for _ in range(2):
        world.start_worker()
    troubling = loop.create_task(_trouble(world, chance))
    for number in range(COMMANDS):
        if chance.random() > BURSTS:
            await asyncio.sleep(chance.random() * 2 * STORY_S / COMMANDS / (1 - BURSTS))
        clients.write_one(number)
    troubling.cancel()
    world.calm_down()
    # Those in the wrong place are sent on meanwhile, and a freeze that came last would hold up everything.
    await _until_over(world, log, log.undecided)
    for cluster in CLUSTERS:
        clients.unfreeze(cluster)
    await _until_over(world, log, lambda: [*log.undecided(), *log.under_way(), *world.moving(), *world.throttled()])
    assert not world.unexpected_faults(), world.unexpected_faults()
    _check_outcomes(world, clients, log)
    world.end()


async def _trouble(world: World, chance: random.Random) -> None:
    """Whatever may happen to workers and clusters."""
    while True:
        await asyncio.sleep(chance.random() * TROUBLES_S)
        running = world.running()
        kind = chance.random()
        if kind < 0.2 or not running:
            world.start_worker()
        elif kind < 0.4:
            chance.choice(running).die()
        elif kind < 0.55:
            world.hang(chance.choice(running), chance.random() * LONGEST_HANG_S)
        elif kind < 0.65:
            world.stop(chance.choice(running))
        elif kind < 0.8:
            world.rebalance_soon()
        else:
            model = chance.choice(list(world.clusters.values()))
            absent = set(BROKERS) - set(model.live_brokers())
            for broker in absent:
                model.start_broker(broker)
            if not absent:
                model.stop_broker(chance.choice(BROKERS), clean=chance.random() < 0.5)


class Log(MemoryLog):
    """The log, as its readers see it, and what is not decided yet."""

    def __init__(self, world: World) -> None:
        super().__init__(world.broker, SHARDS)

    def outcomes_by_place(self) -> defaultdict[tuple[str, int, int], list[Outcome]]:
        """Return the valid outcomes by the topic, the shard and the offset of their commands."""
        outcomes: defaultdict[tuple[str, int, int], list[Outcome]] = defaultdict(list)
        for shard in range(SHARDS):
            for batch in self.batches(shard):
                for outcome in batch.outcomes:
                    outcomes[outcome.topic, shard, outcome.offset].append(outcome)
        return outcomes

    def undecided(self) -> list[Any]:
        """Return where commands are that nobody has decided; the end of a transaction is none."""
        places = []
        for shard, fold in enumerate(self.folds):
            for index, topic in enumerate(self._broker.topics.commands):
                records = self._broker.partitions[topic, shard]
                first = fold.cursors[index].next_offset if fold.cursors else 0
                places += [(topic, shard, place) for place in range(first, len(records)) if records[place] is not None]
        return places

    def under_way(self) -> list[Any]:
        """Return the moves that have not ended."""
        return [(name, key) for name in CLUSTERS for key in self.state(name).reassignments]


async def _until_over(world: World, log: Log, left: Callable[[], list[Any]]) -> None:
    loop = asyncio.get_running_loop()
    deadline_s = loop.time() + PATIENCE_S
    while True:
        world.clusters.catch_up()
        log.read()
        if not left():
            return
        assert loop.time() < deadline_s, (left(), world.faults)
        await asyncio.sleep(1)


def _check_outcomes(world: World, clients: Clients, log: Log) -> None:
    """Each command has one outcome where its cluster is, and of those that are the same one is no duplicate."""
    verdicts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    outcomes = log.outcomes_by_place()
    for topic in world.broker.topics.commands:
        for shard in range(SHARDS):
            for offset, record in enumerate(world.broker.partitions[topic, shard]):
                command = None if record is None else decode_command(record.value)
                found = outcomes.pop((topic, shard, offset), [])
                is_here = not isinstance(command, Malformed | None) and shard_of(command.cluster, SHARDS) == shard
                if isinstance(command, Malformed):
                    assert len(found) <= 1, f"{topic}/{shard} at {offset}: {found}"
                else:
                    assert len(found) == is_here, f"{topic}/{shard} at {offset}: {command} has {found}"
                    verdicts.update({found[0].id: verdicts[found[0].id] + Counter([found[0].verdict])} if found else {})
    assert not outcomes, f"decided, and not there: {dict(outcomes)}"
    assert verdicts.keys() == {command.id for _, command in clients.sent}
    for identity, counted in verdicts.items():
        assert counted["accepted"] + counted["refused"] == 1, f"{identity} was decided {counted}"


def main(first: int, count: int) -> int:
    """Play stories, and say which have failed."""
    structlog.configure(logger_factory=structlog.ReturnLoggerFactory())
    failed = []
    for seed in range(first, first + count):
        try:
            run_in_virtual_time(play(seed))
        except AssertionError as error:
            failed.append(seed)
            print(f"seed {seed}: {error}"[:1000], flush=True)
    print(f"{count} stories, {len(failed)} failed: {failed}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
