"""Runs a seed, or a script; a failure carries everything that is needed to see it again."""

from collections.abc import Iterable
from random import Random

from msgspec import Struct, json

from drover.errors import DroverError
from tests.simulation.actions import Action, perform
from tests.simulation.generate import Generator
from tests.simulation.liveness import check_the_end, heal
from tests.simulation.settings import Settings, drawn
from tests.simulation.world import World

# Whatever broken code raises; a fault of the simulation itself looks the same, and is as bad.
FAULTS = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    DroverError,
    LookupError,
    RuntimeError,
    TypeError,
    ValueError,
)


class Script(Struct, frozen=True):
    """A world and what happens in it."""

    settings: Settings
    actions: tuple[list[object], ...]

    def __str__(self) -> str:
        """One action a line."""
        lines = [f"settings {json.encode(self.settings).decode()}"]
        return "\n".join([*lines, *(json.encode(action).decode() for action in self.actions)])


class Finished(Struct, frozen=True):
    """How a run went: how much was done, how much virtual time passed, and what was broken, if anything.

    `heal_chunks` is how many chunks of heals began.
    """

    script: Script
    steps: int
    virtual_ms: int
    trace: str
    failure: str | None = None
    heal_chunks: int = 0

    @property
    def rule(self) -> str | None:
        """Which promise was broken, without the words: two runs with one rule have failed alike."""
        return None if self.failure is None else ":".join(self.failure.split(":")[:2])[:40]


def run_seed(seed: int, steps: int) -> Finished:
    """Draw a world and so many actions, heal it, and judge the end."""
    random = Random(seed)
    settings = drawn(random)
    world = World(settings)
    generator = Generator(random, settings)
    done: list[Action] = []

    def actions() -> Iterable[Action]:
        for _ in range(steps):
            action = generator.next(world)
            done.append(action)
            yield action

    return _run(world, actions(), done)


def run_script(script: Script) -> Finished:
    """Do what a script says."""
    done: list[Action] = [tuple(action) for action in script.actions]
    return _run(World(script.settings), iter(done), done)


def _run(world: World, actions: Iterable[Action], done: list[Action]) -> Finished:
    failure = None
    steps = 0
    with world.inside():
        try:
            for action in actions:
                steps += 1
                perform(world, action)
            heal(world)
            check_the_end(world)
        except FAULTS as error:
            failure = f"{type(error).__name__}: {error}"
    script = Script(world.settings, tuple(list(action) for action in done[:steps]))
    return Finished(script, world.checker.steps, world.now_ms, world.trace(), failure, world.checker.healing.chunks)
