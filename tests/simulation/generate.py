"""Draws the next action: mostly what goes on all the time, now and then what people, brokers, networks or others do."""

from random import Random

from tests.simulation.actions import KINDS, Action
from tests.simulation.settings import Settings
from tests.simulation.world import World

_TICKS = (1, 5, 20, 50, 100, 100, 150, 150, 300, 500, 1000)


class Generator:
    """One seed's chance; `next` looks at the world, so that little of what it draws comes to nothing."""

    def __init__(self, random: Random, settings: Settings) -> None:
        self._random = random
        self._kinds = KINDS
        self._weights: list[float] = []
        groups = {kind.group for kind in KINDS}
        totals = {group: sum(kind.weight for kind in KINDS if kind.group == group) for group in groups}
        share = 0.0
        self._rare = 0.0
        for kind in KINDS:
            share += settings.rates.get(kind.group, 0) * kind.weight / totals[kind.group]
            self._weights.append(share)
        self._rare = sum(settings.rates.values()) / 100

    def next(self, world: World) -> Action:
        """Draw the next action."""
        random = self._random
        if self._weights[-1] and random.random() < self._rare:
            kind = random.choices(self._kinds, cum_weights=self._weights)[0]
            arguments = kind.choose(random, world)
            if arguments is not None:
                return (kind.name, *arguments)
        return self._everyday(world)

    def _everyday(self, world: World) -> Action:
        random = self._random
        drawn = random.random()
        if drawn < 0.015:
            return ("project", random.randrange(world.settings.shards), random.choice((1, 5, 50)), drawn < 0.001)
        if drawn < 0.15:
            return ("tick", random.choice(_TICKS))
        options: list[Action] = []
        for number, worker in enumerate(world.workers):
            if worker.paused:
                continue
            for shard in worker.shards:
                if shard.barrier is not None or shard.awake or shard.loop is not None:
                    options.append(("turn", number, shard.number))
                if not shard.assigned:
                    continue
                ends = world.commands.ends(shard.number)
                options += [("fetch", number, shard.number, at) for at in range(4) if shard.positions[at] < ends[at]]
                options += [
                    ("look", number, shard.number, name) for name, at in shard.looks.items() if at <= world.now_ms
                ]
        able = sum(call.may_go_on for call in world.calls)
        if able:
            options += [("call", random.randrange(able))] * min(able, 4)
        if not options:
            return ("tick", random.choice(_TICKS))
        return self._in_detail(options[int(random.random() * len(options))])

    def _in_detail(self, action: Action) -> Action:
        random = self._random
        if action[0] == "turn" and random.random() < 0.15:
            return (*action, random.choice((1, 1, 2, 3)))
        if action[0] == "fetch":
            return (*action, random.choice((1, 2, 100)))
        if action[0] == "look":
            drawn = random.random()
            if drawn < 0.1:
                return ("sample", *action[1:])
            if drawn < 0.2:
                return (*action, random.choice((50, 200, 1500)))
        return action
