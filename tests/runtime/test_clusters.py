"""The asyncio side of the managed clusters, with a core that owns a shard and the model cluster behind the port."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from drover.agents import calls, clusters
from drover.agents.clock import now
from drover.agents.clusters import ClusterServices
from drover.cluster.port import AlterRequest
from drover.errors import OutcomeUnknownError
from drover.events.partitions import TopicPartition
from drover.events.progress import Progress
from drover.events.reassignments import ReassignmentCompleted
from drover.facts import Observation
from drover.inventory import Inventory
from drover.planner.placement import Placement
from drover.planner.rules import NO_RULES, Rules
from drover.reconcile.contract import Attention, Urgency
from drover.reconcile.healing.brokers_to_heal import BrokersToHeal
from drover.reconcile.healing.heal_plan import HealPlan
from drover.reconcile.messages import (
    AlterPartitions,
    BytesSampled,
    CallEnded,
    HealPlanMade,
    Identified,
    Input,
    OutOfReach,
    PlanHeal,
    VersionsSeen,
)
from drover.reconcile.observations import METADATA_LAG_MS
from drover.service.metrics import Metrics
from drover.shard.core import ShardCore
from drover.shard.managed import ManagedCluster
from drover.testing.simulated import SimulatedDriver
from drover.traits import LATEST
from tests.shard.world import CLUSTER, World, alter

ORDERS = TopicPartition("orders", 0)
ABSENT = TopicPartition("absent", 0)
RULES = replace(NO_RULES, placement=Placement(leaders_in_racks=("r1",)))


@dataclass
class Bench:
    """A world whose core is watched and called for by the real services."""

    world: World
    services: ClusterServices
    metrics: Metrics
    delivered: list[Input] = field(default_factory=list)
    samples: list[Progress] = field(default_factory=list)
    faults: list[BaseException] = field(default_factory=list)
    wakes: int = 0

    @property
    def core(self) -> ShardCore:
        return self.world.core

    def wake(self) -> None:
        self.wakes += 1


@pytest.fixture
async def bench(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Bench]:
    world = World(joins_by_itself=False)
    world.model.now_ms = now().monotonic_ms
    world.core.own(world.core.fold.token, now())
    world.model.create_topic("orders", {0: [1, 2, 3]}, partition_bytes=1000)
    made: list[Bench] = []

    async def publish(samples: Sequence[Progress]) -> None:
        made[0].samples += samples

    def fail(error: BaseException) -> None:
        made[0].faults.append(error)

    metrics = Metrics()
    services = ClusterServices({CLUSTER: world.driver}, publish, fail, metrics, {CLUSTER: RULES})
    made.append(Bench(world, services, metrics))
    deliver = world.core.deliver

    def record(entry: Input) -> None:
        made[0].delivered.append(entry)
        deliver(entry)

    monkeypatch.setattr(world.core, "deliver", record)
    yield made[0]
    await services.close()
    assert made[0].faults == []


async def until(condition: Callable[[], bool] | Callable[[], Awaitable[bool]], timeout_s: float = 30.0) -> None:
    deadline = time.monotonic() + timeout_s
    while True:
        holds = condition()
        if holds if isinstance(holds, bool) else await holds:
            return
        assert time.monotonic() < deadline, "not in time"
        await asyncio.sleep(0.01)


async def test_a_heal_of_a_cluster_is_planned_by_its_own_rules(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    rules: list[Rules] = []

    def plan(_inventory: Inventory, _to_heal: BrokersToHeal, _disk_limit_percent: int, by: Rules) -> HealPlan:
        rules.append(by)
        return HealPlan((), ())

    monkeypatch.setattr(calls, "plan_heal", plan)
    inventory = await bench.world.driver.inventory()
    bench.services.start(
        bench.core, [PlanHeal(CLUSTER, inventory, BrokersToHeal((3,), frozenset({3})), 85)], bench.wake
    )
    await until(lambda: any(isinstance(entry, HealPlanMade) for entry in bench.delivered))
    assert rules == [RULES]


async def test_gathering_observes_what_is_there_and_what_is_not(bench: Bench) -> None:
    assert await bench.services.gather(bench.core, {CLUSTER: frozenset({ORDERS, ABSENT})}) == {}
    first, *others = bench.delivered
    assert {ORDERS, ABSENT} == set(getattr(first, "partitions", {}))
    assert {frozenset(getattr(again, "partitions", {})) for again in others} == {frozenset({ABSENT})}


async def test_a_topic_that_was_just_made_is_looked_for_until_every_broker_knows_it(bench: Bench) -> None:
    """A command that comes right after the topic was created would be refused, since the asked broker is behind."""
    new = TopicPartition("new", 0)
    bench.world.driver.freeze_metadata()
    bench.world.model.create_topic("new", {0: [1, 2, 3]})
    gathering = asyncio.create_task(bench.services.gather(bench.core, {CLUSTER: frozenset({new})}))
    await until(lambda: bool(bench.delivered))
    bench.world.driver.thaw_metadata()
    assert await gathering == {}
    shown = [getattr(look, "partitions", {})[new] for look in bench.delivered]
    assert shown[0] is None
    assert shown[-1] is not None


async def test_a_cluster_out_of_reach_is_named_with_its_reason_within_the_deadline(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clusters, "GATHER_DEADLINE_MS", 300)
    bench.world.driver.unreachable = True
    reasons = await bench.services.gather(bench.core, {CLUSTER: frozenset({ORDERS})})
    assert list(reasons) == [CLUSTER]
    assert reasons[CLUSTER]
    assert bench.delivered == []


async def test_a_cluster_that_has_long_been_out_of_reach_gets_one_try_a_command(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clusters, "BREAKER_MS", 0)
    bench.world.driver.unreachable = True
    tries = 0
    observe = bench.world.driver.observe

    async def counted(*arguments: Any, **options: Any) -> Observation:
        nonlocal tries
        tries += 1
        return await observe(*arguments, **options)

    monkeypatch.setattr(bench.world.driver, "observe", counted)
    assert await bench.services.gather(bench.core, {CLUSTER: frozenset({ORDERS})})
    assert tries == 1
    bench.world.driver.unreachable = False
    assert await bench.services.gather(bench.core, {CLUSTER: frozenset({ORDERS})}) == {}


async def test_old_metadata_is_read_again_until_it_shows_what_is_known(bench: Bench) -> None:
    """A command would be refused for want of a look that counts."""
    observed = bench.core.cluster(CLUSTER).observed
    observed.call_made(ORDERS, (7, 8, 9), bench.world.model.now_ms)
    gathering = asyncio.create_task(bench.services.gather(bench.core, {CLUSTER: frozenset({ORDERS})}))
    await until(lambda: len(bench.delivered) > 1)
    assert not gathering.done()
    bench.world.model.advance(METADATA_LAG_MS)
    assert await gathering == {}


async def test_a_call_ends_as_an_input_and_wakes_the_shard(bench: Bench) -> None:
    effect = AlterPartitions(CLUSTER, {ORDERS: (4, 2, 3)}, now().monotonic_ms + 1000)
    bench.services.start(bench.core, [effect], bench.wake)
    await until(lambda: any(getattr(entry, "results", None) for entry in bench.delivered))
    assert bench.wakes
    assert ORDERS in bench.world.model.moves()


async def test_a_call_that_could_not_start_in_time_is_never_sent(bench: Bench) -> None:
    effect = AlterPartitions(CLUSTER, {ORDERS: (4, 2, 3)}, now().monotonic_ms - 1)
    bench.services.start(bench.core, [effect], bench.wake)
    await until(lambda: any("1 s" in getattr(entry, "detail", "") for entry in bench.delivered))
    assert bench.world.model.moves() == {}


async def test_a_lost_answer_is_delivered_as_lost(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    taken = bench.world.driver.alter

    async def unheard(requests: Sequence[AlterRequest]) -> None:
        await taken(requests)
        raise OutcomeUnknownError("nobody heard the answer")

    monkeypatch.setattr(bench.world.driver, "alter", unheard)
    effect = AlterPartitions(CLUSTER, {ORDERS: (4, 2, 3)}, now().monotonic_ms + 1000)
    bench.services.start(bench.core, [effect], bench.wake)
    await until(lambda: any(getattr(entry, "lost", False) for entry in bench.delivered))
    assert ORDERS in bench.world.model.moves()


async def test_nothing_is_sent_for_a_shard_that_has_changed_hands_before_the_call(bench: Bench) -> None:
    effect = AlterPartitions(CLUSTER, {ORDERS: (4, 2, 3)}, now().monotonic_ms + 1000)
    bench.services.start(bench.core, [effect], bench.wake)
    bench.core.disown()
    await until(lambda: not bench.services._running)
    assert bench.world.model.moves() == {}


async def test_an_answer_that_comes_after_the_shard_has_changed_hands_is_not_heard(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = bench.world.driver.alter

    async def slow(requests: Sequence[AlterRequest]) -> object:
        answer = await taken(requests)
        bench.core.disown()
        return answer

    monkeypatch.setattr(bench.world.driver, "alter", slow)
    effect = AlterPartitions(CLUSTER, {ORDERS: (4, 2, 3)}, now().monotonic_ms + 1000)
    bench.services.start(bench.core, [effect], bench.wake)
    await until(lambda: ORDERS in bench.world.model.moves() and not bench.core.owned)
    await until(lambda: bench.wakes > 0)
    assert [entry for entry in bench.delivered if isinstance(entry, CallEnded)] == []


async def test_a_record_rouses_the_watcher_of_a_cluster_only_if_that_is_not_idle_any_more(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = 0

    async def counted(*arguments: Any) -> Any:
        nonlocal looks
        looks += 1
        return await calls.look(*arguments)

    monkeypatch.setattr(clusters, "look", counted)
    bench.services.own(bench.core, bench.wake)
    await until(lambda: bench.wakes == 1)
    for _ in range(5):
        bench.services.start(bench.core, [], bench.wake)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
    assert looks == 1
    await bench.world.send(alter({ORDERS: [4, 2, 3]}))
    bench.services.start(bench.core, [], bench.wake)
    await until(lambda: looks > 1, timeout_s=clusters.PACE_MS[Urgency.IDLE] / 2000)


async def test_a_record_that_comes_during_a_look_at_an_idle_cluster_is_not_forgotten_after_it(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = 0
    goes_on = asyncio.Event()

    async def slow(*arguments: Any) -> Any:
        nonlocal looks
        looks += 1
        seen = await calls.look(*arguments)
        await goes_on.wait()
        return seen

    monkeypatch.setattr(clusters, "look", slow)
    bench.services.own(bench.core, bench.wake)
    await until(lambda: looks == 1)
    await bench.world.send(alter({ORDERS: [4, 2, 3]}))
    bench.services.start(bench.core, [], bench.wake)
    goes_on.set()
    await until(lambda: looks > 1, timeout_s=clusters.PACE_MS[Urgency.IDLE] / 2000)


async def test_what_could_begin_if_it_were_looked_at_does_not_wait_for_the_next_look_in_turn(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clusters, "PACE_MS", dict.fromkeys(Urgency, 60_000))
    await bench.world.send(alter({ORDERS: [4, 2, 3]}))
    bench.services.own(bench.core, bench.wake)
    await until(lambda: bench.wakes >= 1)
    looks = bench.wakes
    pressing = Attention(urgency=Urgency.BUSY, is_pressing=True)
    monkeypatch.setattr(ManagedCluster, "attention", lambda *_: pressing)
    await until(lambda: bench.wakes > looks)


async def test_what_is_being_copied_is_sampled_for_the_progress_topic(bench: Bench) -> None:
    world = bench.world
    await world.send(alter({ORDERS: [4, 2, 3]}))
    await world.settle()
    assert world.core.cluster(CLUSTER).copying()
    bench.services.own(bench.core, bench.wake)
    await until(lambda: bool(bench.samples))
    sample = bench.samples[0]
    assert (sample.key, sample.step, sample.bytes_total) == (ORDERS, 1, 1000)
    assert [held.broker for held in sample.adding] == [4]


async def test_sizes_reach_decisions_also_while_nobody_takes_the_samples(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each sample waited for the progress topic: without one, sizes came every 30 s instead of every second."""
    monkeypatch.setattr(clusters, "SAMPLE_MS", 10)
    published: list[Sequence[Progress]] = []

    async def hang(samples: Sequence[Progress]) -> None:
        published.append(samples)
        await asyncio.Event().wait()

    monkeypatch.setattr(bench.services, "_publish", hang)
    await bench.world.send(alter({ORDERS: [4, 2, 3]}))
    await bench.world.settle()
    bench.services.own(bench.core, bench.wake)
    await until(lambda: sum(isinstance(entry, BytesSampled) for entry in bench.delivered) >= 3, timeout_s=10)
    assert len(published) == 1


async def test_the_size_of_a_copy_that_was_over_before_a_sample_is_asked_for_at_its_end(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clusters, "SAMPLE_MS", 10_000_000)
    world = bench.world
    bench.services.own(bench.core, bench.wake)
    await until(lambda: bench.wakes == 1)
    await world.send(alter({ORDERS: [4, 2, 3]}))
    await world.settle()
    assert world.core.cluster(CLUSTER).copying()
    world.model.advance(1)
    world.model.join_isr(ORDERS, 4)
    assert world.model.moves() == {}
    bench.services.start(bench.core, [], bench.wake)
    await until(lambda: any(isinstance(entry, BytesSampled) and entry.sizes for entry in bench.delivered))
    await until(lambda: isinstance(bench.delivered[-1], Observation))
    await world.turn()
    (completed,) = [event for event in world.events() if isinstance(event, ReassignmentCompleted)]
    assert (completed.bytes_copied, completed.bytes_unknown) == (1000, False)


async def test_brokers_are_asked_for_their_versions_again_and_again_also_after_an_outage(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clusters, "VERSIONS_MS", 20)
    monkeypatch.setattr(clusters, "UNREACHABLE_PACE_MS", 20)

    def asked() -> int:
        return sum(isinstance(entry, VersionsSeen) for entry in bench.delivered)

    bench.world.driver.unreachable = True
    bench.services.own(bench.core, bench.wake)
    await until(lambda: any(isinstance(entry, OutOfReach) for entry in bench.delivered))
    assert asked() == 0
    bench.world.driver.unreachable = False
    await until(lambda: asked() >= 2)
    await bench.world.settle()
    assert bench.world.state.traits == LATEST
    known = asked()
    await until(lambda: asked() > known)


async def test_the_metrics_of_a_cluster_go_with_its_shard(bench: Bench) -> None:
    """Old values were added to those of the next owner, so that a finished copy looked stalled for ever."""
    await bench.world.send(alter({ORDERS: [4, 2, 3]}))
    await bench.world.settle()
    bench.services.own(bench.core, bench.wake)
    named = ("drover_reassignments{", "drover_copy_remaining_bytes{", "drover_brokers_away{")
    await until(lambda: all(name in bench.metrics.render().decode() for name in named))
    bench.core.disown()
    bench.services.disown(bench.core)
    await asyncio.sleep(0)
    said = bench.metrics.render().decode()
    assert [
        name for name in (*named, "drover_brokers_away_alarmed{", "drover_partitions_unhealed{") if name in said
    ] == []


async def test_a_fault_that_nobody_expects_reaches_the_supervisor(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(self: SimulatedDriver) -> dict[TopicPartition, object]:
        raise ZeroDivisionError

    await bench.world.send(alter({ORDERS: [4, 2, 3]}))
    monkeypatch.setattr(SimulatedDriver, "list_moves", broken)
    monkeypatch.setattr(SimulatedDriver, "identify", broken)
    bench.services.own(bench.core, bench.wake)
    await until(lambda: bool(bench.faults))
    assert isinstance(bench.faults.pop(), ZeroDivisionError)


async def test_an_outage_that_lasts_becomes_an_event_and_so_does_its_end(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clusters, "OUTAGE_MS", 100)
    monkeypatch.setattr(clusters, "UNREACHABLE_PACE_MS", 20)
    bench.world.driver.unreachable = True
    bench.services.own(bench.core, bench.wake)
    await until(lambda: any(isinstance(entry, OutOfReach) for entry in bench.delivered))
    await bench.world.turn()
    outage = bench.world.state.outage
    assert outage is not None
    assert outage.since_ms <= now().wall_ms - 100
    bench.world.driver.unreachable = False
    await until(lambda: any(isinstance(entry, Identified) for entry in bench.delivered))
    await bench.world.turn()
    assert bench.world.state.outage is None
    tags = [str(event.__struct_config__.tag) for event in bench.world.events()]
    assert (tags.count("cluster-out-of-reach"), tags.count("cluster-within-reach")) == (1, 1)


async def test_a_size_that_the_leader_does_not_tell_is_no_sample() -> None:
    """Otherwise what was copied so far would look like everything."""
    copies = {ORDERS: (1, (4,), 1)}
    assert clusters._samples(CLUSTER, 1, copies, {ORDERS: {4: 500}}) == []
    (sample,) = clusters._samples(CLUSTER, 1, copies, {ORDERS: {1: 900}})
    assert (sample.bytes_done, sample.bytes_total) == (0, 900)
