"""One scenario from its first record to its last oracle."""

import time
from collections import Counter
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from drover.cluster.port import AddThrottledReplicas, SetBrokerRates
from drover.cluster.throttle_lists import LEADER_RATE, LEADER_REPLICAS
from drover.cluster.topics import TopicSpec, create_topics
from drover.events.partitions import TopicPartition
from drover.events.topics import DEFAULT_SHARDS, shard_of
from drover.facts import BrokerRates, ThrottledReplicas
from drover.local import LocalCluster
from tests.faults import oracles, records
from tests.faults.crew import Crew
from tests.faults.disks import Disk
from tests.faults.injuries import SESSION_TIMEOUT_S, Scene
from tests.faults.planning import Planning
from tests.faults.scenarios import TOPIC_REPLICAS, Length, Scenario
from tests.faults.traffic import Traffic, read_back
from tests.integration.support import CREATED_WITHIN_MS, MANAGED, Installation, holds_within, installation, wait_for

HEARD_WITHIN_S = 5.0
# What another operator had set before: Drover must find it again as it was.
OTHER_RATES = SetBrokerRates(3, BrokerRates(50_000_000, None))
OTHER_ENTRIES = ThrottledReplicas(("0:1",), ())


@dataclass
class Report:
    """What came of it: `faults` must be empty, the rest is for people."""

    scenario: str
    seed: int
    faults: list[str] = field(default_factory=list)
    figures: dict[str, object] = field(default_factory=dict)

    def count(self, figure: str, name: str) -> int:
        """One number of a figure that has several."""
        counts = self.figures[figure]
        assert isinstance(counts, dict)
        return int(counts.get(name, 0))

    def __str__(self) -> str:
        figures = "\n".join(f"  {name}: {value}" for name, value in self.figures.items())
        faults = "\n".join(f"  FAULT {fault}" for fault in self.faults) or "  no fault found"
        return f"{self.scenario}, seed {self.seed}\n{figures}\n{faults}"


async def play(
    scenario: Scenario, length: Length, seed: int, cluster: LocalCluster, disk: Disk, directory: Path
) -> Report:
    """Play a scenario on a cluster that is well, and judge; the cluster is well again afterwards."""
    random = Random(f"{scenario.name} {seed}")
    report = Report(scenario.name, seed)
    began = time.monotonic()
    topic = f"{scenario.name}-{seed}-moved"
    keys = tuple(TopicPartition(topic, number) for number in range(scenario.partitions))
    async with installation(
        cluster,
        directory,
        f"{scenario.name}-{seed}",
        session_timeout_ms=int(SESSION_TIMEOUT_S * 1000),
        max_moves_per_broker=10,
    ) as made:
        brokers = tuple(broker.id for broker in cluster.spec.brokers)
        before = await _create(made, scenario, topic, brokers, random)
        planning = Planning(made.connection, keys, brokers, Random(random.random()))
        log = await made.replicas(TopicPartition(made.names.events, shard_of(MANAGED, DEFAULT_SHARDS)))
        scene = Scene(cluster, made, Crew(made), planning, disk, log, length.quorum_gone_s)
        traffic = Traffic(cluster.bootstrap, seed, keys)
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(traffic.running(scenario.records_per_second, scenario.filling_kilobytes))
            await stack.enter_async_context(scene.crew.working())
            stack.push_async_callback(scene.mend)
            await wait_for(scene.crew.all_serve, "every worker to own shards")
            scene.say(f"{scenario.name}: everything runs")
            await scenario.act(scene, random, length)
            await scene.mend()
            scene.say("everything is mended")
            await _settle(scene, report)
            scene.say("everything has settled")
        await _judge(scene, traffic, before, report)
    report.figures["seconds"] = round(time.monotonic() - began)
    return report


async def _create(
    made: Installation, scenario: Scenario, topic: str, brokers: tuple[int, ...], random: Random
) -> oracles.Configs:
    """Create the topic, throttle it as another operator would, and return what is set then."""
    assignments = {number: tuple(random.sample(brokers, TOPIC_REPLICAS)) for number in range(scenario.partitions)}
    spec = TopicSpec(
        topic, scenario.partitions, TOPIC_REPLICAS, {"min.insync.replicas": str(scenario.min_isr)}, assignments
    )
    answer = (await create_topics(made.cluster.bootstrap, [spec], timeout_ms=CREATED_WITHIN_MS))[topic]
    assert answer.accepted, answer

    async def led() -> bool:
        seen = await made.driver.observe([TopicPartition(topic, number) for number in assignments])
        facts = [seen.partitions.get(TopicPartition(topic, number)) for number in assignments]
        return all(one is not None and one.leader is not None for one in facts)

    await wait_for(led, f"every partition of {topic} to have a leader")
    await made.change_throttles(OTHER_RATES, AddThrottledReplicas(topic, OTHER_ENTRIES))

    # Any broker answers for a topic: what one shows already another may not, so that the last look is what counts.
    found: oracles.Configs = {}

    async def shown() -> bool:
        nonlocal found
        found = await oracles.configs_set(made.cluster.bootstrap, brokers, (topic,))
        rate = found[f"broker {OTHER_RATES.broker}"].get(LEADER_RATE)
        return rate == str(OTHER_RATES.rates.leader_bytes_per_second) and LEADER_REPLICAS in found[f"topic {topic}"]

    await wait_for(shown, "the other operator's throttle to be shown")
    return found


async def _settle(scene: Scene, report: Report) -> None:
    """Wait until everything that was asked for has ended; what waits for a reason that has a name may go on waiting."""

    async def settled() -> bool:
        state = await scene.installation.state()
        # A queued entry is no reassignment yet, and keeps its plan open.
        return not (state.reassignments or state.queue or state.broker_throttles or state.topic_throttles)

    async def decided() -> bool:
        verdicts = (await oracles.judge_commands(scene))[1]
        return not any("no cursor has passed it" in fault for fault in verdicts.faults)

    try:
        await wait_for(decided, "every command to be decided")
        await wait_for(settled, "every reassignment to end")
    except AssertionError as late:
        state = await scene.installation.state()
        report.figures["late"] = f"{late}; waiting: {oracles.blocked(state)}"


async def _configs_afterwards(scene: Scene, traffic: Traffic, before: oracles.Configs) -> oracles.Configs:
    """Read what is set at the end; a broker that has not heard of the last change yet is asked again."""
    topics = tuple({key.topic for key in traffic.keys})
    after: oracles.Configs = {}

    async def agree() -> bool:
        nonlocal after
        after = await oracles.configs_set(traffic.bootstrap, scene.brokers, topics)
        return after == before

    # Who reads what was found judges it.
    await holds_within(agree, HEARD_WITHIN_S)
    return after


async def _judge(scene: Scene, traffic: Traffic, before: oracles.Configs, report: Report) -> None:
    made, planning, crew = scene.installation, scene.planning, scene.crew
    faults, verdicts, story = await oracles.judge_commands(scene)
    state = await made.state()
    after = await _configs_afterwards(scene, traffic, before)
    stored = await read_back(traffic.bootstrap, traffic.keys)
    report.faults += [
        *(f"read back: {fault}" for fault in records.judge(traffic.seed, traffic.ledgers, stored)),
        *(f"followed: {fault}" for fault in records.judge(traffic.seed, traffic.ledgers, traffic.read)),
        *traffic.errors,
        *faults,
        *oracles.judge_state(state),
        *await oracles.judge_cluster(made, traffic.keys, story),
        *oracles.judge_configs(before, after),
        *await oracles.judge_replay(made),
        *crew.faults,
        *crew.broken(),
    ]
    ends = Counter(event for key in traffic.keys for event in story.terminal(key))
    blocks = Counter(
        str(event["why"])
        for events in story.events.values()
        for event in events
        if event["type"] == "reassignment-blocked"
    )
    report.figures |= {
        "records": dict(records.count(traffic.ledgers)),
        "slowest acknowledgement, s": round(traffic.slowest_s, 1),
        "commands": dict(planning.kinds),
        "commands acknowledged": len(planning.acknowledged),
        "outcomes": dict(Counter(str(outcome["verdict"]) for outcome in verdicts.decided.values())),
        "plans": dict(Counter(str(plan.status) for plan in state.plans.values())),
        "reassignments ended": dict(ends),
        "blocked on the way": dict(blocks),
        "batches": verdicts.batches,
        "fenced batches": verdicts.fenced_batches,
        "acquires": verdicts.acquires,
        "owners": sorted(verdicts.owners),
        "workers ended": dict(crew.ends),
        "worker starts by clock error, s": dict(crew.clocks),
    }
