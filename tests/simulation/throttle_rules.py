"""What holds for throttles that others delete and change while moves need them (S10)."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from drover.cluster.throttle_lists import parse_rates
from drover.events.plans import ClusterThrottleSet, PlanThrottleCleared
from drover.events.records import AnyEvent
from drover.events.throttles import (
    BrokerThrottleAdopted,
    BrokerThrottleChanged,
    BrokerThrottleIntended,
    BrokerThrottleLeft,
    BrokerThrottleSet,
    Rates,
)
from drover.events.topics import shard_of
from tests.simulation.throttle_scan import wanted

if TYPE_CHECKING:
    from tests.simulation.world import World

Place = tuple[str, int]
SIDES = ("leader", "follower")
# A round of readings is begun every 10 s; then a second for each of its calls, and a dead worker's session before it.
PUT_BACK_MS = 18_000


class ThrottleRules:
    """By the log alone: what Drover has found that somebody else set over its own rates is written as it was found.

    `intended_ms` says when it was decided to write each broker's present rates, `taken_away_ms` when a throttle of each
    cluster was taken away.
    """

    def __init__(self, world: "World") -> None:
        self._world = world
        self.intended_ms: dict[Place, int] = {}
        self.taken_away_ms: dict[str, int] = {}
        self._intended: dict[Place, Rates] = {}
        self._adopted: dict[Place, Rates] = {}
        self._released: set[Place] = set()
        self._written: dict[Place, Rates] = {}
        self._theirs: dict[tuple[Place, str], int] = {}

    def holds_for(self, cluster: str, plan: str) -> bool:
        """Whether a throttle holds for a plan."""
        fold = self._world.checker.folds[shard_of(cluster, self._world.settings.shards)]
        return fold.state.clusters[cluster].rate_of(plan) is not None

    def follow(self, event: AnyEvent) -> None:
        """Follow one event, and hold an intent to what was found before."""
        if isinstance(event, BrokerThrottleChanged):
            self._find((event.cluster, event.broker), event.found, event.bytes_per_second)
        elif isinstance(event, BrokerThrottleAdopted):
            self._written[event.cluster, event.broker] = self._adopted[event.cluster, event.broker] = event.found
            self._world.clusters[event.cluster].let_go(event.broker)
        elif isinstance(event, PlanThrottleCleared | ClusterThrottleSet):
            self.taken_away_ms[event.cluster] = self._world.now_ms
        elif isinstance(event, BrokerThrottleIntended):
            place = event.cluster, event.broker
            self._find(place, event.found, None)
            for side in SIDES:
                theirs = self._theirs.get((place, side))
                if theirs is not None and theirs == getattr(event.found, side):
                    assert getattr(event.rates, side) == theirs, f"S10: {event} takes the {side} rate of others"
            adopted = self._adopted.get(place)
            if adopted is not None:
                # Whoever has set the same rate since it was to be deleted has set what was to be deleted.
                same = [side for side in SIDES if getattr(adopted, side) == getattr(event.found, side)]
                keys = [f"{side}.replication.throttled.rate" for side in same]
                self._world.clusters[event.cluster].let_go(event.broker, keys)
            self._intended[place] = event.rates
            self.intended_ms[place] = self._world.checker.decided_ms
            (self._released.add if event.release else self._released.discard)(place)
        elif isinstance(event, BrokerThrottleSet):
            place = event.cluster, event.broker
            self._written[place] = self._intended[place]
            if place in self._released:
                self._forget(place)
        elif isinstance(event, BrokerThrottleLeft):
            self._forget((event.cluster, event.broker))

    def _find(self, place: Place, found: Rates, rate: int | None) -> None:
        """Take what differs from what was written for theirs, unless it is gone, or what moves ask for."""
        written = self._written.get(place)
        for side in SIDES if written is not None else ():
            seen = getattr(found, side)
            if seen is None or seen == rate:
                self._theirs.pop((place, side), None)
            elif seen != getattr(written, side):
                self._theirs[place, side] = seen

    def _forget(self, place: Place) -> None:
        self._written.pop(place, None)
        self._adopted.pop(place, None)
        for side in SIDES:
            self._theirs.pop((place, side), None)


class RatesInForce:
    """When each broker last had the rates that the log says are in force there."""

    def __init__(self) -> None:
        self._wrong_since_ms: dict[Place, int] = {}

    def s10_what_is_deleted_is_put_back(self, world: "World") -> None:
        """S10: a rate that somebody deleted is back soon, as long as moves need it; for worlds in which all is well."""
        before, self._wrong_since_ms = self._wrong_since_ms, {}
        for fold in world.checker.folds:
            for state in fold.state.clusters.values():
                for broker in wanted(state).rates:
                    known, entry = world.clusters[state.name].model.brokers[broker], state.broker_throttles.get(broker)
                    found = parse_rates(known.configs)
                    is_gone = None in (found.leader_bytes_per_second, found.follower_bytes_per_second)
                    if entry is not None and known.alive and is_gone:
                        self._hold(world, (state.name, broker), before)

    def _hold(self, world: "World", place: Place, before: Mapping[Place, int]) -> None:
        since_ms = self._wrong_since_ms[place] = before.get(place, world.now_ms)
        lasted_ms = world.now_ms - since_ms
        assert lasted_ms <= PUT_BACK_MS, f"S10: {place} has had no rate for {lasted_ms} ms while moves need one"
