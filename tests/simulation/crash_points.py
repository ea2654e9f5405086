"""One fault at every boundary of a scenario: the owner dies there, or stands still until another one has taken over."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from tests.simulation.actions import perform
from tests.simulation.liveness import check_the_end, heal
from tests.simulation.scenarios import Scenario
from tests.simulation.worker import Worker
from tests.simulation.world import SESSION_TIMEOUT_MS, World

ZOMBIE_MS = SESSION_TIMEOUT_MS + 8000


class Fault(StrEnum):
    """What happens to a worker at a boundary."""

    RESTART = "restart"
    ZOMBIE = "zombie"


@dataclass(frozen=True, slots=True)
class End:
    """What is compared: where replicas are, what clusters are configured with, what became of plans and commands."""

    replicas: dict[str, dict[str, tuple[int, ...]]]
    configs: dict[str, dict[str, dict[str, str]]]
    plans: dict[str, dict[str, tuple[str, int, int, int]]]
    verdicts: dict[str, str]


class Interruption:
    """Counts boundaries; at the chosen one the worker that stands there is struck."""

    def __init__(self, world: World, chosen: int | None, fault: Fault) -> None:
        self.count = 0
        self.zombie: Worker | None = None
        self._world = world
        self._chosen = chosen
        self._fault = fault

    def __call__(self, worker: Worker) -> bool:
        """Tell whether the worker cannot go on."""
        here = self.count
        self.count += 1
        if here != self._chosen:
            return False
        if self._fault is Fault.ZOMBIE:
            worker.paused = True
            self.zombie = worker
        else:
            self._world.crash(worker, delay_ms=3500)
            self._world.start_worker()
            self._world.rebalance()
        for projector in self._world.projectors:
            projector.project(3, dies=here % 2 == 0)
        return True


def play(scenario: Scenario, chosen: int | None = None, fault: Fault = Fault.RESTART) -> tuple[End, int]:
    """Play a scenario with one fault at a boundary, or with none; returns its end and the number of boundaries."""
    world = World(scenario.settings)
    with world.inside():
        struck = world.interrupt = Interruption(world, chosen, fault)
        for action in scenario.actions:
            perform(world, action)
        if struck.zombie is not None:
            # The session runs out and another worker takes over; then the first one goes on as if nothing had been.
            world.run(ZOMBIE_MS)
            world.resume(struck.zombie)
            world.run(SESSION_TIMEOUT_MS)
        world.interrupt = None
        heal(world)
        check_the_end(world)
        return _end(world), struck.count


def every_point(scenario: Scenario) -> Iterator[tuple[int, Fault, End]]:
    """Play a scenario once for each boundary and each fault."""
    _, boundaries = play(scenario)
    for fault in Fault:
        for chosen in range(boundaries):
            end, _ = play(scenario, chosen, fault)
            yield chosen, fault, end


def _end(world: World) -> End:
    states = [(name, state) for fold in world.checker.folds for name, state in sorted(fold.state.clusters.items())]
    return End(
        replicas={
            name: {
                f"{topic}:{number}": partition.replicas
                for topic, known in cluster.model.topics.items()
                for number, partition in known.partitions.items()
            }
            for name, cluster in world.clusters.items()
        },
        configs={
            name: {
                **{f"broker {broker}": dict(known.configs) for broker, known in cluster.model.brokers.items()},
                **{
                    topic: {key: value for key, value in known.configs.items() if value}
                    for topic, known in cluster.model.topics.items()
                },
            }
            for name, cluster in world.clusters.items()
        },
        plans={
            name: {
                plan.name: (plan.status.value, plan.completed, plan.rolled_back, plan.failed)
                for plan in state.plans.values()
            }
            for name, state in states
        },
        verdicts=_verdicts(world),
    )


def _verdicts(world: World) -> dict[str, str]:
    """What became of each command that stood for the first time; retries are answered alike."""
    found: dict[str, str] = {}
    for folded in (folded for shard in world.folded for folded in shard):
        for outcome in getattr(folded.record, "outcomes", ()) if folded.verdict.value == "valid" else ():
            found.setdefault(outcome.id, outcome.verdict)
    return found
