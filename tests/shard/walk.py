"""A seeded random walk over the shard core: who does what at each step, and what must hold after it."""

import random
from collections.abc import Callable, Mapping, Sequence

from drover.cluster.model import ClusterModel
from drover.cluster.port import AlterRequest, ThrottleChange
from drover.cluster.simulated import Loss, SimulatedDriver
from drover.reassignment.facts import CallResult
from drover.reassignment.state import Limits, PlanStatus
from drover.runtime.calls import carry_out
from drover.shard.messages import AlterPartitions, Effect
from drover.shard.track import FRESH_MS
from events.codec import encode_command
from events.commands import Freeze, Unfreeze
from events.partitions import TopicPartition
from events.reassignments import CallIntended, ReassignmentAdopted, RollbackRequested
from tests.shard.invariants import BEGINNINGS, check
from tests.shard.world import CLUSTER, Death, World, alter, full_hash, rollback

BROKERS = 6
TOPICS = ("orders", "payments")
PARTITIONS = tuple(TopicPartition(topic, number) for topic in TOPICS for number in range(3))
LATE_MS = 4000


class Watchman(SimulatedDriver):
    """The driver, with every alter call held against the log before it is made (S1, S6, S20)."""

    def __init__(self, model: ClusterModel, cluster_name: str) -> None:
        super().__init__(model, cluster_name)
        self.world: World
        self.foreign: set[TopicPartition] = set()
        self.recreated_ms: dict[str, int] = {}
        self.loss: Loss | None = None
        self.is_late = False

    async def alter(self, requests: Sequence[AlterRequest]) -> Mapping[TopicPartition, CallResult]:
        for request in requests:
            self._hold_against_the_log(request)
        self._begin_change()
        return await super().alter(requests)

    async def change_throttles(self, changes: Sequence[ThrottleChange]) -> Mapping[ThrottleChange, CallResult]:
        self._begin_change()
        return await super().change_throttles(changes)

    def _begin_change(self) -> None:
        found = self.world.state.mismatched_kafka_cluster_id
        assert found is None or self.is_late, f"a call to {found}, which is another cluster"
        if self.loss is not None:
            self.lose_next(self.loss)
            self.loss = None

    def _hold_against_the_log(self, request: AlterRequest) -> None:
        key, replicas = request.partition, request.replicas
        about = [event for event in self.world.events() if getattr(event, "key", None) == key]
        began = max(index for index, event in enumerate(about) if isinstance(event, BEGINNINGS))
        intents = [event for event in about[began:] if isinstance(event, CallIntended)]
        assert intents, f"{key}: a call without a durable intent"
        assert intents[-1].replicas == replicas, f"{key}: {replicas} is sent, {intents[-1]} was intended"
        moving = (partition := self.model.partition(key)) is not None and partition.moving
        if replicas is None:
            asked = any(isinstance(event, (RollbackRequested, ReassignmentAdopted)) for event in about[began:])
            assert asked, f"{key}: a cancel that nobody asked for"
        else:
            assert replicas, f"{key}: an empty list"
            assert len(set(replicas)) == len(replicas), f"{key}: {replicas} names a broker twice"
            assert set(replicas) <= set(self.model.brokers), f"{key}: {replicas} names an unknown broker"
            assert not moving or key in self.foreign, f"{key}: a re-target of a moving partition"
        queued = about[began]
        assert isinstance(queued, BEGINNINGS)
        topic = self.model.topics.get(key.topic)
        if topic is not None and topic.topic_id != queued.topic_id:
            # Kafka's call names no topic id: what was seen up to 2 s ago, or sent by a predecessor, may be too old.
            since_ms = self.model.now_ms - self.recreated_ms[key.topic]
            assert since_ms <= FRESH_MS + LATE_MS, f"{key}: a call for a recreated topic"
            self.foreign.add(key)


class Walk:
    """One world and one seed; `script` is what was done so far, for the failure message."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.limits = Limits(
            max_partitions_in_flight=self.random.choice([2, 4, 1250]),
            max_moves_per_broker=self.random.choice([1, 2, 5]),
            max_replicas_per_step=self.random.choice([1, 1, 2]),
        )
        self.world = World(
            brokers=BROKERS,
            limits=self.limits,
            copy_bytes_per_second=self.random.choice([None, 400_000]),
            session_timeout_ms=self.random.choice([0, 700]),
        )
        self.driver = Watchman(self.world.model, CLUSTER)
        self.driver.world = self.world
        self.world.driver = self.driver
        self.has_others = self.random.choice([0, 1])
        self.stale_since_ms: int | None = None
        self.script: list[str] = []
        self.sent: list[tuple[int, bytes]] = []
        self.late: list[tuple[int, Effect]] = []
        self.hashes: list[tuple[int, bytes]] = []
        self.min_isr = self.random.choice(["1", "2"])
        for topic in TOPICS:
            self._create(topic)
        for broker in (1, 3):
            self.world.model.brokers[broker].configs["leader.replication.throttled.rate"] = "5000000"
        self.configs_before = self.configs()

    def configs(self) -> dict[int, dict[str, str]]:
        return {broker: dict(state.configs) for broker, state in self.world.model.brokers.items()}

    def _create(self, topic: str) -> None:
        assignments = {number: [(number + place) % BROKERS + 1 for place in range(3)] for number in range(3)}
        if not all(state.alive for state in self.world.model.brokers.values()):
            # A partition that was never led would never be.
            return
        self.world.model.create_topic(
            topic, assignments, partition_bytes=300_000, configs={"min.insync.replicas": self.min_isr}
        )

    @property
    def foreign(self) -> set[TopicPartition]:
        return self.driver.foreign

    # -- one step

    async def step(self) -> None:
        actions: list[tuple[int, Callable[[], object]]] = [
            (20, self._alter),
            (12, self._cancel),
            (3, self._freeze),
            (6, self._unfreeze),
            (4, self._duplicate),
            (3, self._malformed),
            (5, self._stop_broker),
            (8, self._start_broker),
            (6, self._lose),
            (2, self._out_of_reach),
            (4, self._within_reach),
            (2 * self.has_others, self._foreign_move),
            (2 * self.has_others, self._foreign_cancel),
            (1, self._recreate),
            (2, self._stale),
            (1, self._another_cluster),
            (3, self._the_right_cluster),
        ]
        action = self.random.choices([act for _, act in actions], [weight for weight, _ in actions])[0]
        action()
        await self._pass_time()
        check(self)

    async def _pass_time(self) -> None:
        for _ in range(self.random.choice([1, 1, 2, 4, 9])):
            self.world.model.advance(100)
            self._true_again()
            await self._late_calls()
            await self.world.look()
            if self.random.random() < 0.08:
                await self._die()
            await self.world.settle()
            self.hashes.append((len(self.world.log), full_hash(self.world.core.fold.state)))

    async def _die(self) -> None:
        death = self.random.choice([*Death, None])
        self.script.append(f"dies {death}")
        if death is not None:
            await self.world.turn(die=death)
            return
        # The owner dies with calls under way, which reach the cluster late.
        self.world.hold_effects = True
        await self.world.turn()
        self.world.hold_effects = False
        held = [effect for effect in self.world.held if isinstance(effect, AlterPartitions)]
        self.world.crash()
        due_ms = self.world.now.monotonic_ms + self.random.randrange(0, LATE_MS)
        self.late += [(due_ms, effect) for effect in held]

    async def _late_calls(self) -> None:
        due = [effect for due_ms, effect in self.late if due_ms <= self.world.now.monotonic_ms]
        self.late = [(due_ms, effect) for due_ms, effect in self.late if due_ms > self.world.now.monotonic_ms]
        for effect in due:
            assert isinstance(effect, AlterPartitions)
            self.script.append(f"late {dict(effect.requests)}")
            in_time = AlterPartitions(effect.cluster, effect.requests, self.world.now.monotonic_ms)
            self.driver.is_late = True
            await carry_out(self.driver, in_time, lambda: self.world.now)
            self.driver.is_late = False

    # -- what people do

    def _put(self, kind: int, payload: bytes, what: str) -> None:
        self.script.append(what)
        self.sent.append((kind, payload))
        self.world.put_raw(kind, payload)

    def _alter(self) -> None:
        chosen = self.random.sample(PARTITIONS, self.random.choice([1, 1, 2, 3, 6]))
        targets = {
            key: self.random.sample(range(1, BROKERS + 2), self.random.choice([1, 2, 3, 3, 3, 4])) for key in chosen
        }
        fields: dict[str, object] = {"id": f"alter{len(self.sent)}", "more": self.random.random() < 0.2}
        if self.random.random() < 0.4:
            fields["throttle_bytes_per_second"] = self.random.choice([100_000, 250_000])
        plans = sorted(name for name, plan in self.world.state.plans.items() if plan.status is PlanStatus.OPEN)
        if plans and self.random.random() < 0.3:
            fields["plan"] = self.random.choice(plans)
        command = alter(dict(targets), **fields)
        self._put(0, encode_command(command, as_json=self.random.random() < 0.5), f"alter {targets} {fields}")

    def _cancel(self) -> None:
        kind = self.random.choice(["partition", "partition", "topic", "plan", "all"])
        plans = sorted(self.world.state.plans)
        keys: tuple[TopicPartition, ...] = ()
        fields: dict[str, object] = {"id": f"cancel{len(self.sent)}"}
        if kind == "partition":
            keys = tuple(self.random.sample(PARTITIONS, 2))
        elif kind == "topic":
            fields["topics"] = (self.random.choice(TOPICS),)
        elif kind == "plan" and plans:
            fields["plan"] = self.random.choice(plans)
        else:
            fields["all"] = True
        self._put(1, encode_command(rollback(*keys, **fields)), f"cancel {kind} {keys} {fields}")

    def _freeze(self) -> None:
        number = len(self.sent)
        self._put(1, encode_command(Freeze(id=f"f{number}", cluster=CLUSTER, by="ana", reason="r")), "freeze")

    def _unfreeze(self) -> None:
        number = len(self.sent)
        self._put(1, encode_command(Unfreeze(id=f"u{number}", cluster=CLUSTER, by="ana", reason="r")), "unfreeze")

    def _duplicate(self) -> None:
        if self.sent:
            kind, payload = self.random.choice(self.sent)
            self._put(kind, payload, "duplicate")

    def _malformed(self) -> None:
        payload = self.random.choice([b"\xc1", b"{", b'{"type":"alter","id":"bad","cluster":"local"}', b"{}", b""])
        self._put(self.random.randrange(4), payload, f"malformed {payload!r}")

    # -- what the world does

    def _stop_broker(self) -> None:
        alive = [broker for broker, state in self.world.model.brokers.items() if state.alive]
        if len(alive) > BROKERS - 3:
            broker = self.random.choice(alive)
            self.script.append(f"stop broker {broker}")
            self.world.model.stop_broker(broker)

    def _start_broker(self) -> None:
        dead = [broker for broker, state in self.world.model.brokers.items() if not state.alive]
        if dead:
            broker = self.random.choice(dead)
            self.script.append(f"start broker {broker}")
            self.world.model.start_broker(broker)

    def _lose(self) -> None:
        loss = self.random.choice(list(Loss))
        self.script.append(f"lose {loss}")
        self.driver.loss = loss

    def _out_of_reach(self) -> None:
        self.script.append("out of reach")
        self.driver.unreachable = True

    def _within_reach(self) -> None:
        self.driver.unreachable = False

    def _stale(self) -> None:
        self.script.append("stale metadata")
        self.driver.freeze_metadata()
        self.stale_since_ms = self.world.model.now_ms

    def _true_again(self) -> None:
        if self.stale_since_ms is not None and self.world.model.now_ms - self.stale_since_ms > 1200:
            self.driver.thaw_metadata()
            self.stale_since_ms = None

    def _another_cluster(self) -> None:
        if self.world.state.kafka_cluster_id is not None:
            self.script.append("another cluster answers")
            self.world.model.kafka_cluster_id = "another"

    def _the_right_cluster(self) -> None:
        self.world.model.kafka_cluster_id = "simulated-cluster"

    def _recreate(self) -> None:
        topic = self.random.choice(TOPICS)
        self.script.append(f"recreate {topic}")
        if topic in self.world.model.topics:
            self.world.model.delete_topic(topic)
        self._create(topic)
        self.driver.recreated_ms[topic] = self.world.model.now_ms

    def _foreign_move(self) -> None:
        key = self.random.choice(PARTITIONS)
        replicas = tuple(self.random.sample(range(1, BROKERS + 1), 3))
        self.script.append(f"foreign move {key} {replicas}")
        self.driver.foreign.add(key)
        self.world.model.alter([AlterRequest(key, replicas)])

    def _foreign_cancel(self) -> None:
        moving = sorted(self.world.model.moves())
        if moving:
            key = self.random.choice(moving)
            self.script.append(f"foreign cancel {key}")
            self.driver.foreign.add(key)
            self.world.model.alter([AlterRequest(key, None)])

    # -- the end

    async def heal(self) -> None:
        """Everything works again; whatever is under way must come to an end or say why not."""
        self.script.append("heal")
        self.driver.unreachable, self.driver.loss = False, None
        self.driver.thaw_metadata()
        self._the_right_cluster()
        for broker, state in self.world.model.brokers.items():
            if not state.alive:
                self.world.model.start_broker(broker)
        for topic in TOPICS:
            if topic not in self.world.model.topics:
                self._create(topic)
        self._unfreeze()
        for _ in range(1200):
            self.world.model.advance(100)
            await self._late_calls()
            await self.world.look()
            await self.world.settle()
            if self.world.is_idle and not self.late:
                return
