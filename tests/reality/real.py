"""The real cluster's side of the recorder: operations as protocol requests, events as signals, and what can be seen."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, Self

from kafka.protocol.admin import (
    AlterPartitionReassignmentsRequest,
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DescribeTopicPartitionsRequest,
    ElectLeadersRequest,
    UpdateFeaturesRequest,
)
from kazoo.client import KazooClient
from msgspec.structs import replace

from drover.cluster import messages
from drover.cluster.configs import LIST_KEYS, topic_configs
from drover.cluster.port import AlterRequest
from drover.cluster.throttle_lists import parse_throttled
from drover.cluster.wire import Connection, Deadline
from drover.errors import ClusterError
from drover.events.partitions import TopicPartition
from drover.facts import NONE, REQUEST_TIMED_OUT, Move
from drover.local import LocalCluster
from drover.local.layout import CONTROLLER_ID
from drover.local.probe import known_brokers
from drover.local.processes import ProcessState
from drover.testing.controller_model import Election
from tests.cluster.support import traits_of_release
from tests.reality.operations import (
    Alter,
    Codes,
    Create,
    Delete,
    Elect,
    Grow,
    Operation,
    Place,
    Replicas,
    Throttle,
    full,
)
from tests.reality.scripts import BROKERS, Event, Kill, RestartController, Start
from tests.reality.sights import Sight, Sights, TopicSight

CALL_TIMEOUT_MS = 60_000
# Shorter than a call: in ZooKeeper mode a broker keeps the answer, and all calls behind it, until it sees the leaders.
ELECTION_TIMEOUT_MS = 5_000
EVENT_TIMEOUT_S = 60.0
POLL_S = 0.05
TOPICS_PER_DESCRIBE = 200
ELR_FEATURE = "eligible.leader.replicas.version"
SAFE_DOWNGRADE = 2
SPONTANEOUS = "because its session has timed out"


class RealCluster:
    """A local cluster of brokers 1 to 4, told and seen past Drover's own driver."""

    def __init__(self, local: LocalCluster) -> None:
        self.local = local
        self.traits = traits_of_release(local.spec.kafka, zookeeper_mode=local.spec.in_zookeeper_mode)
        self._tells_elr = self.traits.with_elr
        self._calls = Connection("recorder-calls", local.bootstrap, {}, CALL_TIMEOUT_MS)
        self._looks = Connection("recorder-looks", local.bootstrap, {}, CALL_TIMEOUT_MS)
        self._killed: list[int] = []
        self._fenced_before = self._fencings()

    async def __aenter__(self) -> Self:
        for broker in BROKERS:
            assert self.local.process_state(broker) is ProcessState.RUNNING, f"broker {broker} does not run"
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.mend()
        await asyncio.gather(self._calls.close(), self._looks.close())

    # -- what happens to brokers

    async def befall(self, event: Event | None) -> None:
        """Let an event happen and return when the whole cluster has taken notice."""
        match event:
            case Kill(broker):
                await self.local.kill(broker)
                self._killed.append(broker)
                await self._until(lambda: self._known(broker, wanted=False), f"broker {broker} to be fenced")
            case Start(broker):
                await self.local.start(broker)
                self._killed.remove(broker)
                await self._until(lambda: self._known(broker, wanted=True), f"broker {broker} to be known")
            case RestartController():
                await self._change_controller()
                await self._until(self._lists, "the controller to answer")
            case None:
                return

    async def _change_controller(self) -> None:
        """Kill the controller and start it again; in ZooKeeper mode let the brokers elect another one."""
        if not self.traits.zookeeper_mode:
            await self.local.kill(CONTROLLER_ID)
            await self.local.start(CONTROLLER_ID)
            return
        await asyncio.to_thread(depose_controller, self.local.zookeeper)

    async def mend(self) -> None:
        """Bring back whoever a script that was broken off has left dead."""
        if not self.traits.zookeeper_mode and self.local.process_state(CONTROLLER_ID) is ProcessState.DEAD:
            await self.local.start(CONTROLLER_ID)
        for broker in tuple(self._killed):
            await self.befall(Start(broker))

    def disturbances(self) -> int:
        """How many brokers the controller has fenced by now that nobody had killed: this machine was too slow."""
        return self._fencings() - self._fenced_before

    def _fencings(self) -> int:
        if self.traits.zookeeper_mode:
            return 0
        log = self.local.log_file(CONTROLLER_ID).read_text(encoding="utf-8", errors="replace")
        return log.count(SPONTANEOUS)

    async def _known(self, broker: int, *, wanted: bool) -> bool:
        living = [node for node in self.local.spec.brokers if node.id not in self._killed]
        views = await asyncio.gather(*(known_brokers(node.port) for node in living))
        done = all((broker in view) is wanted and view for view in views)
        if done and not wanted:
            self._fenced_before += 1
        return done

    async def _lists(self) -> bool:
        """Whether both connections have found the controller."""
        try:
            for connection in (self._looks, self._calls):
                await self._moves(connection)
        except ClusterError:
            return False
        return True

    async def _until(self, condition: Callable[[], Awaitable[bool]], what: str) -> None:
        deadline = time.monotonic() + EVENT_TIMEOUT_S
        while not await condition():
            assert time.monotonic() < deadline, f"waited {EVENT_TIMEOUT_S:.0f} s for {what}"
            await asyncio.sleep(POLL_S)

    async def switch_elr_off(self) -> None:
        """Turn KIP-966 off for the whole cluster, for good."""
        update = UpdateFeaturesRequest.FeatureUpdateKey(
            feature=ELR_FEATURE, max_version_level=0, upgrade_type=SAFE_DOWNGRADE
        )
        request = UpdateFeaturesRequest(timeout_ms=CALL_TIMEOUT_MS, feature_updates=[update], validate_only=False)
        response = await self._call(request)
        assert response.error_code == NONE, f"{response.error_code}: {response.error_message}"
        self.traits = replace(self.traits, with_elr=False)

    # -- operations

    async def apply(self, prefix: str, operation: Operation) -> Codes:
        """Carry an operation out and return Kafka's code for each thing it names."""
        match operation:
            case Alter(requests):
                return await self._alter(prefix, requests)
            case Elect(places, election):
                return await self._elect(prefix, places, election)
            case Create(topic, lists, configs):
                return {topic: await self._create(prefix + topic, lists, configs)}
            case Delete(topic):
                request = DeleteTopicsRequest(
                    topics=[DeleteTopicsRequest.DeleteTopicState(name=prefix + topic)],
                    timeout_ms=CALL_TIMEOUT_MS,
                )
                return {topic: (await self._call(request)).responses[0].error_code}
            case Grow(topic, lists):
                return {topic: await self._grow(prefix + topic, lists)}
            case Throttle(topic):
                operations = {prefix + topic: operation.config_operations()}
                response = await self._call(messages.alter_configs_request(messages.TOPIC_RESOURCE, operations))
                return {topic: messages.read_alter_configs(response)[prefix + topic].code}

    async def delete(self, topics: Sequence[str]) -> None:
        """Delete topics that may be there."""
        states = [DeleteTopicsRequest.DeleteTopicState(name=topic) for topic in topics]
        await self._call(DeleteTopicsRequest(topics=states, timeout_ms=CALL_TIMEOUT_MS))

    async def _call(self, request: Any) -> Any:
        return await self._calls.send(request, Deadline.after_ms(CALL_TIMEOUT_MS), changes=True)

    async def _alter(self, prefix: str, requests: Sequence[tuple[Place, Replicas | None]]) -> Codes:
        sent = [AlterRequest(full(prefix, place), replicas) for place, replicas in requests]
        request: AlterPartitionReassignmentsRequest = messages.alter_request(sent)
        answers = messages.read_alter(await self._call(request), sent)
        return {str(place): answers[full(prefix, place)].code for place, _ in requests}

    async def _elect(self, prefix: str, places: Sequence[Place], election: Election) -> Codes:
        topics: dict[str, list[int]] = {}
        for place in places:
            topics.setdefault(prefix + place.topic, []).append(place.partition)
        request = ElectLeadersRequest(
            election_type=1 if election is Election.UNCLEAN else 0,
            topic_partitions=list(topics.items()),
            timeout_ms=ELECTION_TIMEOUT_MS,
        )
        response = await self._call(request)
        answers = {
            (result.topic, partition.partition_id): self._code_of_election(partition.error_code)
            for result in response.replica_election_results
            for partition in result.partition_result
        }
        return {str(place): answers.get((prefix + place.topic, place.partition), -1) for place in places}

    def _code_of_election(self, code: int) -> int:
        """Read a code; in ZooKeeper mode 7 says that a leader was elected but that the asked broker does not see it."""
        return NONE if self.traits.zookeeper_mode and code == REQUEST_TIMED_OUT else code

    async def _create(self, name: str, lists: Sequence[Replicas], configs: Sequence[tuple[str, str]]) -> int:
        topic = CreateTopicsRequest.CreatableTopic(
            name=name,
            num_partitions=-1,
            replication_factor=-1,
            assignments=[(number, list(replicas)) for number, replicas in enumerate(lists)],
            configs=list(configs),
        )
        request = CreateTopicsRequest(topics=[topic], timeout_ms=CALL_TIMEOUT_MS, validate_only=False)
        code: int = (await self._call(request)).topics[0].error_code
        return code

    async def _grow(self, name: str, lists: Sequence[Replicas]) -> int:
        topics = CreatePartitionsRequest.CreatePartitionsTopic
        described = await self._described([name])
        found = described[name]
        assert found is not None, f"{name} is grown where it does not exist"
        topic = topics(
            name=name,
            count=len(found) + len(lists),
            assignments=[topics.CreatePartitionsAssignment(broker_ids=list(replicas)) for replicas in lists],
        )
        request = CreatePartitionsRequest(topics=[topic], timeout_ms=CALL_TIMEOUT_MS, validate_only=False)
        code: int = (await self._call(request)).results[0].error_code
        return code

    # -- sights

    async def sights(self, prefixes: Mapping[str, Sequence[str]]) -> dict[str, Sights]:
        """Look at the topics of many scripts at once: prefix to letters in, prefix to what was seen out."""
        names = [prefix + letter for prefix, letters in prefixes.items() for letter in letters]
        described, moves = await asyncio.gather(self._described(names), self._moves(self._looks))
        existing = [name for name, partitions in described.items() if partitions is not None]
        configs = await topic_configs(self._looks, existing, LIST_KEYS, Deadline.after_ms(CALL_TIMEOUT_MS))
        seen: dict[str, TopicSight | None] = {}
        for name, partitions in described.items():
            if partitions is None or name not in configs:
                seen[name] = None
                continue
            lists = parse_throttled(configs[name].own)
            seen[name] = TopicSight(
                {
                    one.partition_index: _sight(
                        one,
                        moves.get(TopicPartition(name, one.partition_index)),
                        with_elr=self._tells_elr,
                        with_epoch=not self.traits.zookeeper_mode,
                    )
                    for one in partitions
                },
                (frozenset(lists.leader), frozenset(lists.follower)),
            )
        return {prefix: {letter: seen[prefix + letter] for letter in letters} for prefix, letters in prefixes.items()}

    async def _moves(self, connection: Connection) -> dict[TopicPartition, Move]:
        response = await connection.send(messages.list_request(), Deadline.after_ms(CALL_TIMEOUT_MS))
        if response.error_code != NONE:
            raise ClusterError(f"no list: Kafka error {response.error_code}")
        return messages.read_list(response)

    async def _described(self, names: Sequence[str]) -> dict[str, list[Any] | None]:
        if not self._tells_elr:
            return await self._described_by_metadata(names)
        described: dict[str, list[Any] | None] = {}
        for start in range(0, len(names), TOPICS_PER_DESCRIBE):
            some = sorted(names[start : start + TOPICS_PER_DESCRIBE])
            request = DescribeTopicPartitionsRequest(
                topics=[DescribeTopicPartitionsRequest.TopicRequest(name=name) for name in some],
                response_partition_limit=2000,
                cursor=None,
            )
            response = await self._looks.send(request, Deadline.after_ms(CALL_TIMEOUT_MS))
            assert response.next_cursor is None, "too many partitions for one answer"
            for topic in response.topics:
                described[topic.name] = list(topic.partitions) if topic.error_code == NONE else None
        return described

    async def _described_by_metadata(self, names: Sequence[str]) -> dict[str, list[Any] | None]:
        """Ask as every version understands it; it knows no eligible leaders."""
        response = await self._looks.send(messages.metadata_request(names), Deadline.after_ms(CALL_TIMEOUT_MS))
        return {
            topic.name: sorted(topic.partitions, key=lambda found: found.partition_index)
            if topic.error_code == NONE
            else None
            for topic in response.topics
        }


def _sight(found: Any, move: Move | None, *, with_elr: bool, with_epoch: bool) -> Sight:
    last_known = (found.last_known_elr or ()) if with_elr else ()
    return Sight(
        replicas=tuple(found.replica_nodes),
        isr=frozenset(found.isr_nodes),
        leader=None if found.leader_id < 0 else found.leader_id,
        leader_epoch=found.leader_epoch if with_epoch else None,
        elr=frozenset((found.eligible_leader_replicas or ()) if with_elr else ()),
        last_known_leader=last_known[0] if last_known else None,
        adding=() if move is None else move.adding,
        removing=() if move is None else move.removing,
    )


def depose_controller(zookeeper: str) -> None:
    """Delete the node that says who the controller is: the brokers elect one, and none of them dies."""
    client = KazooClient(zookeeper)
    client.start(timeout=CALL_TIMEOUT_MS / 1000)
    try:
        client.delete("/controller")
    finally:
        client.stop()
        client.close()


assert tuple(BROKERS) == (1, 2, 3, 4), "the local cluster numbers its brokers from 1"
