"""A call on its way: begun by a worker, carried over the wire, answered; each of these may come late or never."""

from dataclasses import replace
from typing import TYPE_CHECKING

from drover.agents.calls import carry_out, has_answer
from drover.agents.clusters import UNREACHABLE_PACE_MS
from drover.errors import OutcomeUnknownError
from drover.reconcile.healing.heal_plan import plan_heal
from drover.reconcile.messages import (
    AlterPartitions,
    ChangeThrottles,
    Effect,
    ElectLeaders,
    HealPlanMade,
    Input,
    PlanHeal,
    ReadThrottles,
    TakeInventory,
    ThrottlesChanged,
    ThrottlesRead,
)
from tests.simulation.coroutines import Point, Running, TinyLoop, reach

if TYPE_CHECKING:
    from tests.simulation.worker import Shard
    from tests.simulation.world import World

# The client gives up after this; the controller's own deadline is shorter, so nothing happens later either.
CALL_DEADLINE_MS = 4000
_loop = TinyLoop()


class Call:
    """One effect of a core. Not begun: it is gone with its worker. Begun: the request may arrive all the same."""

    def __init__(self, world: "World", shard: "Shard", effect: Effect) -> None:
        self.effect = effect
        self.shard = shard
        self.token = shard.core.token
        self.is_orphan = False
        self.begun_ms: int | None = None
        self._not_before_ms = 0
        self._ended_with: Input | None = None
        self._world = world
        self._running: Running[Input | None] = Running(self._carry())

    @property
    def may_go_on(self) -> bool:
        """Whether there is somebody to take its next step: its worker, or the network."""
        if self._not_before_ms > self._world.now_ms:
            return False
        waits_for_nobody = self.is_orphan or (self._running.point is Point.REQUEST and not self._is_late)
        return waits_for_nobody or not self.shard.worker.paused

    def delay(self, delay_ms: int) -> None:
        """Let the network take its time with the next step."""
        self._not_before_ms = self._world.now_ms + delay_ms

    @property
    def is_on_the_wire(self) -> bool:
        """Whether its request has left and not arrived."""
        return self._running.point is Point.REQUEST

    @property
    def _is_late(self) -> bool:
        return self.begun_ms is not None and self._world.now_ms - self.begun_ms > CALL_DEADLINE_MS

    def step(self) -> bool:
        """Take the next step; whether it is over."""
        if self.begun_ms is None:
            self.begun_ms = self._world.now_ms
        if self._running.done:
            return self._deliver(self._ended_with)
        if self._is_late:
            return self.is_orphan or self._ended(self._running.advance(OutcomeUnknownError("the deadline has passed")))
        self._world.caller = self
        return self._ended(self._running.advance())

    def drop(self) -> None:
        """Forget it."""
        self._running.close()

    def _ended(self, done: bool) -> bool:
        if not done:
            return self.is_orphan and self._running.point is Point.ANSWER
        ended = self._ended_with = self._running.result
        if isinstance(self.effect, ReadThrottles) and ended is not None and not has_answer(ended):
            # Reading again at once would only hammer a cluster that does not answer.
            self._not_before_ms = self._world.now_ms + UNREACHABLE_PACE_MS
            return False
        return self._deliver(ended)

    def _deliver(self, ended: Input | None) -> bool:
        if ended is not None and not self.is_orphan:
            if self.shard.core.token == self.token:
                self.shard.core.deliver(ended)
            self.shard.wake()
        return True

    async def _carry(self) -> Input | None:
        if self.shard.core.token != self.token:
            # The shard has changed hands since: its intents are the next owner's to look after.
            return None
        wire = self._world.clusters[self.effect.cluster].wire
        match self.effect:
            case AlterPartitions() | ElectLeaders() | TakeInventory():
                return await carry_out(wire, self.effect, self._world.now)
            case ReadThrottles() | ChangeThrottles():
                return await self._carry_throttles(self.effect)
            case PlanHeal(cluster, inventory, to_heal, disk_limit_percent):
                return HealPlanMade(cluster, to_heal, plan_heal(inventory, to_heal, disk_limit_percent))

    async def _carry_throttles(self, effect: ReadThrottles | ChangeThrottles) -> Input:
        """Throttle settings are read and written at one moment, the answer comes at another."""
        wire, started = self._world.clusters[effect.cluster].wire, self._world.now()
        try:
            await reach(Point.REQUEST)
            ended = _loop.run(carry_out(wire, effect, lambda: started))
            await reach(Point.ANSWER)
        except OutcomeUnknownError:
            if isinstance(effect, ReadThrottles):
                return ThrottlesRead(effect.cluster, self._world.now_ms, {}, {})
            return ThrottlesChanged(effect.cluster, self._world.now_ms, {}, {})
        assert isinstance(ended, ThrottlesRead | ThrottlesChanged)
        return replace(ended, ended_ms=self._world.now_ms)
