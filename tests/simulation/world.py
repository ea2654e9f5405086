"""The simulated world: workers, their log, their clusters and the time, moved by one action at a time.

Nothing in it draws a number at random: the same settings and the same actions make the same records, in any process.
"""

import asyncio
import hashlib
import types
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from drover.agents import shards as hosting
from drover.cluster.port import AlterRequest
from drover.events.codec import decode_record
from drover.events.records import Record
from drover.events.topics import shard_of
from drover.fold import log as folding
from drover.fold.log import Folded
from drover.reconcile.messages import Timestamp
from drover.state.plans import PlanStatus
from tests.simulation.calls import Call
from tests.simulation.checker import Checker
from tests.simulation.cluster import SimulatedCluster
from tests.simulation.log import CommandTopics, EventLog
from tests.simulation.projector import Projector
from tests.simulation.settings import WALL_START_MS, Settings
from tests.simulation.worker import Shard, Silence, Worker

SESSION_TIMEOUT_MS = 10_000
# How long a worker that was stopped goes on before it hears that the group has gone on without it.
HEARTBEAT_MS = 100


class World:
    """One world; use it inside `with world.inside()`, which puts its clock and its chance into the hosting."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.now_ms = 0
        self.generation = 0
        self.caller: Call | None = None
        self.calls: list[Call] = []
        self.sent: list[tuple[int, bytes]] = []
        self.folded: tuple[list[Folded], ...] = tuple([] for _ in range(settings.shards))
        self.commands = CommandTopics(settings.shards)
        self.checker = Checker(self)
        self.clusters = {name: SimulatedCluster(name, settings, self.checker) for name in settings.names}
        self.log = EventLog(settings.shards)
        self.projectors = tuple(Projector(self, shard) for shard in range(settings.shards))
        self._trace = hashlib.blake2b(digest_size=16)
        self._tokens = 0
        self._workers_made = 0
        self._unserved_since_ms: int | None = None
        self._decoded: dict[bytes, Record] = {}
        self.log.listener = self._appended
        self.workers: list[Worker] = []
        self.interrupt: Callable[[Worker], bool] | None = None

    @contextmanager
    def inside(self) -> Iterator[None]:
        """Let the hosting of shards live in this world."""
        replaced = {
            "now": self.now,
            "monotonic": lambda: self.now_ms / 1000,
            "random": types.SimpleNamespace(random=lambda: 0.5),
            "asyncio": types.SimpleNamespace(Event=asyncio.Event, sleep=_sleep),
            "_log": Silence(),
        }
        kept = {name: getattr(hosting, name) for name in replaced}
        for name, value in replaced.items():
            setattr(hosting, name, value)
        folding.decode_record = self._decode  # type: ignore[attr-defined]  # every reader would decode the same again
        try:
            if not self.workers:
                self._begin()
            yield
        finally:
            self._close()
            folding.decode_record = decode_record  # type: ignore[attr-defined]
            for name, value in kept.items():
                setattr(hosting, name, value)

    def _begin(self) -> None:
        self.log.begin()
        for _ in range(self.settings.workers):
            self.start_worker()
        self.rebalance()
        self.settle()

    def _close(self) -> None:
        for worker in self.workers:
            worker.close()
        for call in self.calls:
            call.drop()

    def now(self) -> Timestamp:
        """The present moment."""
        return Timestamp(WALL_START_MS + self.now_ms, self.now_ms)

    def trace(self) -> str:
        """Everything that became durable and every call that reached a cluster, as one hash (S18)."""
        return self._trace.hexdigest()

    def trace_calls(self, requests: Sequence[AlterRequest]) -> None:
        """Take a call into the trace."""
        self._trace.update(repr(requests).encode())

    # -- commands

    def put(self, kind: int, payload: bytes, cluster: str, shard: int | None = None) -> None:
        """Write a command to its topic, into the partition of its cluster unless another one is said."""
        partition = shard_of(cluster, self.settings.shards) if shard is None else shard % self.settings.shards
        self.sent.append((kind, payload))
        self.commands.put(kind, partition, payload, self.now().wall_ms)

    # -- workers

    def is_interrupted(self, worker: Worker) -> bool:
        """At each boundary: whether something has just happened to the worker, so that it cannot go on."""
        return self.interrupt is not None and self.interrupt(worker)

    def start_worker(self) -> None:
        """Start a process: it replays the log and waits for the group."""
        self.workers.append(Worker(self, f"worker-{self._workers_made}"))
        self._workers_made += 1

    def crash(self, worker: Worker, delay_ms: int = 0) -> None:
        """Kill a process where it stands; what it had put on the wire may arrive all the same, so much later."""
        self.workers.remove(worker)
        worker.close()
        for call in [call for call in self.calls if call.shard.worker is worker]:
            call.is_orphan = True
            call.delay(delay_ms)
            if call.begun_ms is None or not call.is_on_the_wire:
                call.drop()
                self.calls.remove(call)

    def resume(self, worker: Worker) -> None:
        """Let a stopped process go on; it hears of the group a moment later."""
        worker.paused = False
        worker.resumed_ms = self.now_ms

    def rebalance(self) -> None:
        """Let the group share the shards among those who answer, in the eager way: everybody lets go first."""
        self.generation += 1
        members = [worker for worker in self.workers if not worker.paused]
        for worker in members:
            worker.source.generation = self.generation
            worker.follow()
            for shard in worker.shards:
                shard.revoke()
        for number in range(self.settings.shards if members else 0):
            worker = members[(number + self.generation) % len(members)]
            worker.shards[number].begin_barrier(self.generation)

    # -- time

    def tick(self, elapsed_ms: int) -> None:
        """Let time pass; what is due then becomes ready, and nothing else happens."""
        self.now_ms += elapsed_ms
        for cluster in self.clusters.values():
            cluster.advance(elapsed_ms)
        for worker in self.workers:
            if not worker.paused:
                worker.follow()
                for shard in worker.shards:
                    shard.hear()
                    if shard.due_ms is not None and shard.due_ms <= self.now_ms:
                        shard.due_ms = None
                        shard.wake()
        self._keep_the_group()

    def _keep_the_group(self) -> None:
        stale = [
            worker
            for worker in self.workers
            if not worker.paused
            and worker.source.generation != self.generation
            and self.now_ms - worker.resumed_ms >= HEARTBEAT_MS
        ]
        if stale or self._session_is_over():
            self._unserved_since_ms = None
            self.rebalance()

    def _session_is_over(self) -> bool:
        served = {
            shard.number
            for worker in self.workers
            if not worker.paused
            for shard in worker.shards
            if shard.assigned or shard.barrier is not None
        }
        if len(served) == self.settings.shards:
            self._unserved_since_ms = None
            return False
        if self._unserved_since_ms is None:
            self._unserved_since_ms = self.now_ms
        return self.now_ms - self._unserved_since_ms >= SESSION_TIMEOUT_MS

    # -- what could happen now

    def ready(self) -> Iterator[Shard]:
        """The shards of running workers."""
        for worker in self.workers:
            if not worker.paused:
                yield from worker.shards

    def settle(self) -> None:
        """Let everything that is ready happen, in a fixed order, until nothing is."""
        for _ in range(500):
            if not self._settle_once():
                return
        raise AssertionError("L8: the world never comes to rest")

    def _settle_once(self) -> bool:
        done = self.checker.steps
        for shard in list(self.ready()):
            if shard.barrier is not None and self._runs(shard.worker):
                shard.enter(None)
                self.checker.step()
            if shard.assigned and self._runs(shard.worker):
                for index in range(4):
                    shard.fetch(index, 1000)
            if (shard.awake or shard.loop is not None) and self._runs(shard.worker):
                shard.turn(None)
                self.checker.step()
        for call in list(self.calls):
            if call in self.calls and call.may_go_on:
                self.step_call(call)
                self.checker.step()
        return self.checker.steps > done

    def _runs(self, worker: Worker) -> bool:
        return worker in self.workers and not worker.paused

    def step_call(self, call: Call) -> None:
        """Let a call take its next step."""
        if call.step():
            self.calls.remove(call)
        if not call.is_orphan:
            self.is_interrupted(call.shard.worker)

    def look(self) -> None:
        """Look wherever a look is due."""
        for shard in list(self.ready()):
            for cluster, due_ms in list(shard.looks.items()):
                if due_ms <= self.now_ms and shard.core.owned:
                    shard.look(cluster)
                    self.checker.step()

    def run(self, duration_ms: int) -> None:
        """Let time pass in which everything happens that can, in longer strides where nothing is under way."""
        end_ms = self.now_ms + duration_ms
        while self.now_ms < end_ms:
            self.tick(100 if self.calls or self._is_busy() else 500)
            self.checker.step()
            self.look()
            self.settle()

    def _is_busy(self) -> bool:
        return any(
            state.moves.in_flight or state.broker_throttles or state.topic_throttles or state.leaders_under_way
            for fold in self.checker.folds
            for state in fold.state.clusters.values()
        )

    @property
    def is_idle(self) -> bool:
        """Whether by the log nothing is under way, no plan is open and no throttle is held."""
        return not self.calls and not any(
            state.reassignments
            or state.heal is not None
            or state.heal_running is not None
            or state.queue
            or state.leaders_under_way
            or state.balance is not None
            or state.broker_throttles
            or state.topic_throttles
            or any(plan.status is PlanStatus.OPEN for plan in state.plans.values())
            for fold in self.checker.folds
            for state in fold.state.clusters.values()
        )

    # -- inside

    def _appended(self, shard: int, offset: int, payload: bytes) -> None:
        self._trace.update(payload)
        self.checker.appended(shard, offset, payload)

    def new_token(self) -> bytes:
        """Return the next token."""
        self._tokens += 1
        return b"token-%010d" % self._tokens

    def _decode(self, payload: bytes) -> Record:
        record = self._decoded.get(payload)
        if record is None:
            record = self._decoded[payload] = decode_record(payload)
        return record


async def _sleep(_seconds: float) -> None:
    """Time passes only where the world says so."""
