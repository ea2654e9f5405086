"""What must be true when everything is well again; each oracle returns what is wrong, one line a fault."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import psutil

from drover.cluster import messages
from drover.cluster.configs import topic_configs
from drover.cluster.messages import BROKER_RESOURCE
from drover.cluster.wire import Connection, Deadline
from drover.events.commands import AnyCommand
from drover.events.partitions import TopicPartition
from drover.facts import PartitionFacts
from drover.state.cluster import ClusterState
from drover.state.plans import PlanStatus
from tests.faults.injuries import Scene
from tests.integration.story import Story, read_story
from tests.integration.support import Installation, holds_within
from tests.kill.hostile import EVIL
from tests.kill.verifier import Verdicts, verify_log

TIMEOUT_MS = 15_000
# A broker that has stood still for a moment catches up sooner.
IN_SYNC_WITHIN_S = 30.0

# Every config that is set on a broker or a topic itself, by resource.
Configs = Mapping[str, Mapping[str, str]]


async def configs_set(bootstrap: str, brokers: tuple[int, ...], topics: tuple[str, ...]) -> Configs:
    """Read what is set dynamically on brokers and topics, whoever set it."""
    connection, deadline = Connection("oracle", bootstrap, {}, TIMEOUT_MS), Deadline.after_ms(TIMEOUT_MS)
    try:
        found = {
            f"topic {name}": described.own
            for name, described in (await topic_configs(connection, topics, None, deadline)).items()
        }
        for broker in brokers:
            request = messages.configs_request(BROKER_RESOURCE, [str(broker)], None)
            answer = messages.read_configs(await connection.send(request, deadline, broker=broker))
            found[f"broker {broker}"] = answer[str(broker)].own
        return found
    finally:
        await connection.close()


def judge_configs(before: Configs, after: Configs) -> list[str]:
    """Throttles are restored exactly, and nothing else was touched."""
    return [
        f"{name}: {dict(before.get(name, {}))} was set before, {dict(after.get(name, {}))} is now"
        for name in sorted(before.keys() | after.keys())
        if before.get(name) != after.get(name)
    ]


def judge_state(state: ClusterState) -> list[str]:
    """Nothing is frozen, and every plan has ended, or what is left of it waits for a reason that has a name."""
    unnamed = [
        f"{key} of plan {one.plan} is {one.phase} and nothing says what it waits for"
        for key, one in state.reassignments.items()
        if one.block is None
    ]
    waiting = Counter(one.plan for one in state.reassignments.values())
    open_plans = [
        f"plan {plan.name} is {plan.status} with {plan.active} active, but {waiting[plan.name]} reassignments wait"
        for plan in state.plans.values()
        if plan.active != waiting[plan.name] or (plan.status is PlanStatus.OPEN and not plan.active)
    ]
    ledger = [*map(str, state.broker_throttles), *state.topic_throttles] if not state.reassignments else []
    frozen = [f"the cluster is still frozen by {one.by} ({one.reason})" for one in state.freezes]
    return [*frozen, *unnamed, *open_plans, *(f"the throttle ledger still holds {name}" for name in ledger)]


def blocked(state: ClusterState) -> list[str]:
    """Name what waits."""
    return [f"{key}: {one.block.why}: {one.block.detail}" for key, one in state.reassignments.items() if one.block]


def is_whole(facts: PartitionFacts) -> bool:
    """Whether a partition has a leader, and all its replicas are in sync."""
    return facts.leader is not None and set(facts.isr) == set(facts.replicas)


async def judge_cluster(installation: Installation, keys: tuple[TopicPartition, ...], story: Story) -> list[str]:
    """Each partition stands where its last reassignment ended, whole and in sync, and nothing moves."""
    moves = (await installation.driver.list_moves()).moves
    faults = [f"{key} is still being moved: {move}" for key, move in moves.items()]

    async def are_whole() -> bool:
        return all([is_whole(await installation.facts(key)) for key in keys])

    await holds_within(are_whole, IN_SYNC_WITHIN_S)
    for key in keys:
        facts = await installation.facts(key)
        if not is_whole(facts):
            faults.append(f"{key} is not in sync: {facts}")
        ends = [event for event in story.events.get(key, ()) if event["type"] in story.terminal(key)]
        if ends and tuple(ends[-1]["replicas"]) != facts.replicas:
            faults.append(f"{key} ended as {ends[-1]['type']} at {ends[-1]['replicas']} and is at {facts.replicas}")
    return faults


async def judge_commands(scene: Scene) -> tuple[list[str], Verdicts, Story]:
    """No command is lost, none has an effect twice, nothing forged counts: by two readers that are not Drover's."""
    planning, connection = scene.planning, scene.installation.connection
    sent = [(one.topic, one.shard, one.offset, one.command.id) for one in planning.acknowledged]
    verdicts = await verify_log(connection, sent)
    story = await read_story(connection)
    decided = Counter(outcome["id"] for outcome in verdicts.decided.values() if outcome["verdict"] != "duplicate")
    return [*verdicts.faults, *story.faults, *judge_decided(planning.sent, decided)], verdicts, story


def judge_decided(sent: list[AnyCommand], decided: Counter[str]) -> list[str]:
    """Every id that was sent was decided once, and no other."""
    wanted = {command.id for command in sent}
    return [
        *(f"command {one} was decided {decided[one]} times" for one in sorted(wanted) if decided[one] != 1),
        *(f"{one} was decided and never sent" for one in sorted(decided.keys() - wanted)),
        *(["what the forger wrote counts"] if EVIL in decided else []),
    ]


async def judge_replay(installation: Installation) -> list[str]:
    """The product itself replays the log and comes to every state hash in it."""
    replayed = await installation.drover("replay", "--verify")
    return [] if replayed.code == 0 else [f"replay --verify ended with {replayed.code}: {replayed.errors}"]


@dataclass(frozen=True)
class Processes:
    """The processes below this one at some moment."""

    pids: frozenset[int]

    @classmethod
    def now(cls) -> "Processes":
        return cls(frozenset(child.pid for child in _children()))

    def left_behind(self) -> list[str]:
        """Processes that came since and are still there."""
        return [
            f"process {child.pid} was left behind: {child.name()}"
            for child in _children()
            if child.pid not in self.pids
        ]


def _children() -> list[psutil.Process]:
    return [child for child in psutil.Process().children(recursive=True) if child.status() != psutil.STATUS_ZOMBIE]
