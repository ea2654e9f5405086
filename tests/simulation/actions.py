"""Everything that can happen, as a table: adding a kind is adding a line. An action is a name and plain arguments.

`choose` draws arguments, or None when it makes no sense now; `act` does it, and does nothing where it does not apply,
so that any part of a script is a script.
"""

from collections.abc import Callable
from typing import Any

from tests.simulation.kinds import a_shard
from tests.simulation.people import PEOPLE
from tests.simulation.trouble import TROUBLE, WORKERS, turn
from tests.simulation.world import World

# -- what goes on all the time; chosen by `tests.simulation.generate`


def _fetch(world: World, worker: int, shard: int, topic_index: int, count: int) -> None:
    found = a_shard(world, worker, shard)
    if found is not None and found.assigned:
        found.fetch(topic_index, count)


def _look(world: World, worker: int, shard: int, cluster: str, delay_ms: int = 0) -> None:
    found = a_shard(world, worker, shard)
    if found is not None and cluster in found.looks and found.core.owned:
        found.look(cluster, delay_ms)


def _sample(world: World, worker: int, shard: int, cluster: str) -> None:
    found = a_shard(world, worker, shard)
    if found is not None and found.core.owned:
        found.sample(cluster)


def _call(world: World, number: int) -> None:
    able = [call for call in world.calls if call.may_go_on]
    if able:
        world.step_call(able[number % len(able)])


def _project(world: World, shard: int, count: int, dies: bool) -> None:
    world.projectors[shard % world.settings.shards].project(count, dies=dies)


def _tick(world: World, elapsed_ms: int) -> None:
    world.tick(elapsed_ms)


def _run(world: World, duration_ms: int) -> None:
    world.settle()
    world.run(duration_ms)


EVERYDAY: dict[str, Callable[..., None]] = {
    "turn": turn,
    "fetch": _fetch,
    "look": _look,
    "sample": _sample,
    "call": _call,
    "project": _project,
    "tick": _tick,
    "run": _run,
}
KINDS = (*PEOPLE, *WORKERS, *TROUBLE)
ACTS: dict[str, Callable[..., None]] = {**EVERYDAY, **{kind.name: kind.act for kind in KINDS}}

Action = tuple[Any, ...]


def perform(world: World, action: Action) -> None:
    """Let one action happen, and check what must hold after it."""
    ACTS[action[0]](world, *action[1:])
    world.checker.step()
