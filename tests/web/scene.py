"""Logs to look at: written as an owner would write them, so that what a test sees was folded like any other log."""

import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from drover.client.history import FoldedLog, Takeover, ValidRecord
from drover.client.live_view import Heard, View
from drover.client.transfers import Transfers
from drover.events.brokers import BlacklistSet, BrokerFailureRecorded
from drover.events.clusters import BrokerHeld, ClusterFrozen, ClusterIdentified, HoldRole
from drover.events.partitions import PartitionReference, TopicPartition
from drover.events.plans import PlanOpened, PlanThrottleSet
from drover.events.progress import Progress, ReplicaBytes
from drover.events.queue_entries import QueueEntryAdded
from drover.events.reassignments import (
    Blocker,
    Call,
    CallAccepted,
    CallIntended,
    ReassignmentBlocked,
    ReassignmentCompleted,
    ReassignmentCreated,
    RollbackRequested,
)
from drover.events.records import AnyEvent, Batch, Outcome
from drover.events.refusals import Refusal, RefusalCode
from drover.events.throttles import (
    BrokerThrottleIntended,
    BrokerThrottleSet,
    Entries,
    Rates,
    TopicThrottleIntended,
    TopicThrottleSet,
)
from tests.client.log import CLUSTER, Writer

BYTES = 12_000_000_000
RACKS = ((1, 2, 3), (4, 5, 6))


@dataclass
class Scene:
    """A log that grows, what was folded of it, and the samples of what copies."""

    writer: Writer = field(default_factory=Writer)
    transfers: Transfers = field(default_factory=Transfers)
    news: list[ValidRecord] = field(default_factory=list)
    copies: dict[TopicPartition, tuple[int, int, int]] = field(default_factory=dict)
    pace_ms: int = 80_000
    is_silent: bool = False
    owner: str = "worker-1"
    view: View = field(init=False)

    def __post_init__(self) -> None:
        self.writer.begin(self.owner)
        self.writer.fold.at_ms = now_ms() - 3_600_000
        self.view = View(FoldedLog({0: self.writer.fold}), self.transfers)
        self.breathe()
        self.say(ClusterIdentified(cluster=CLUSTER, kafka_cluster_id="kafka-1"))

    def breathe(self) -> None:
        """Let the owner be heard of, now, unless it has fallen silent."""
        self.view.now_ms = now_ms()
        if not self.is_silent:
            self.view.workers[0] = Heard(self.owner, self.writer.fold.epoch, now_ms())

    def fall_silent(self) -> None:
        """Let the owner be gone for a while, with commands waiting."""
        self.is_silent = True
        self.view.workers.clear()
        self.view.log.last_record_ms[0] = now_ms() - 95_000
        self.view.undecided[0] = 7

    def conflict(self, *groups: str) -> None:
        """Let workers of these groups have taken the shard from each other, one after the other, a second apart."""
        first_ms = now_ms() - 1000 * len(groups)
        found = (Takeover(first_ms + 1000 * number, *pair) for number, pair in enumerate(pairwise(groups)))
        self.view.log.takeovers[0] = deque(found)

    @property
    def at_ms(self) -> int:
        return self.writer.fold.at_ms

    def say(self, *events: AnyEvent, outcomes: tuple[Outcome, ...] = ()) -> None:
        """Append one batch, some time after the last but not in the future."""
        self.writer.fold.at_ms = max(self.at_ms, min(self.at_ms + self.pace_ms, now_ms() - 1000))
        batch: Batch = self.writer.batch(*events, outcomes=outcomes)
        self.writer.append(batch)
        self.news.append(ValidRecord(0, len(self.writer.records) - 1, batch))

    def drain(self) -> list[ValidRecord]:
        """Return what is new since the last time."""
        news, self.news = self.news, []
        return news

    def open_plan(self, plan: str, by: str, reason: str, throttle: int | None, keys: list[TopicPartition]) -> None:
        """Accept a plan that moves each partition off its last broker."""
        outcome = Outcome(
            id=f"alter-{plan}", cluster=CLUSTER, type="alter", by=by, reason=reason, topic="drover.alter",
            offset=len(self.writer.records), verdict="accepted", digest=b"d", plan=plan,
            accepted=tuple(PartitionReference(*key) for key in keys),
        )  # fmt: skip
        events: list[AnyEvent] = [PlanOpened(cluster=CLUSTER, plan=plan, by=by, reason=reason)]
        if throttle is not None:
            events.append(PlanThrottleSet(cluster=CLUSTER, plan=plan, bytes_per_second=throttle))
        for key in keys:
            original, target = lists(key)
            events.append(
                ReassignmentCreated(
                    cluster=CLUSTER, topic=key.topic, partition=key.partition, topic_id="id", plan=plan,
                    original=original, target=target,
                )
            )  # fmt: skip
        self.say(*events, outcomes=(outcome,))

    def refuse(self, id_: str, by: str, code: RefusalCode, detail: str) -> None:
        """Refuse an alter."""
        outcome = Outcome(
            id=id_, cluster=CLUSTER, type="alter", by=by, reason="try it", topic="drover.alter",
            offset=len(self.writer.records), verdict="refused", digest=b"d", refusals=(Refusal(code, detail),),
        )  # fmt: skip
        self.say(outcomes=(outcome,))

    def be_taken_over(self, by: str) -> None:
        """Let another worker take the shard."""
        self.writer.acquire(by)
        self.owner = by
        self.breathe()

    def start(self, *keys: TopicPartition) -> None:
        """Send each partition's one step, and let Kafka take it."""
        intended: list[AnyEvent] = []
        for key in keys:
            original, target = lists(key)
            intended.append(
                CallIntended(
                    cluster=CLUSTER, topic=key.topic, partition=key.partition, call=Call.STEP, expected=original,
                    replicas=target, step=1, final=True, leader=original[0],
                )
            )  # fmt: skip
        self.say(*intended)
        self.say(*(CallAccepted(**place(key), call=Call.STEP) for key in keys))

    def complete(self, *keys: TopicPartition) -> None:
        """Let moves end at their targets."""
        self.say(*(ReassignmentCompleted(**place(key), replicas=lists(key)[1], bytes_copied=BYTES) for key in keys))

    def block(self, key: TopicPartition, why: Blocker, detail: str) -> None:
        """Block one move."""
        self.say(ReassignmentBlocked(cluster=CLUSTER, topic=key.topic, partition=key.partition, why=why, detail=detail))

    def roll_back(self, key: TopicPartition, by: str, reason: str) -> None:
        """Ask for one move's way back."""
        self.say(RollbackRequested(cluster=CLUSTER, topic=key.topic, partition=key.partition, by=by, reason=reason))

    def keep_copying(self) -> None:
        """Sample every copy again, as far as it would be by now."""
        for key, (at_ms, done, rate) in tuple(self.copies.items()):
            self.sample(key, done + rate * (now_ms() - at_ms) // 1000, rate)

    def sample(self, key: TopicPartition, done: int, rate: int, seconds: int = 4) -> None:
        """Sample a copy over some seconds until now."""
        self.copies[key] = (now_ms(), done, rate)
        original, target = lists(key)
        (added,) = (broker for broker in target if broker not in original)
        for before in range(seconds, -1, -1):
            at = done - rate * before
            self.transfers.see(
                Progress(
                    cluster=CLUSTER, topic=key.topic, partition=key.partition, epoch=1,
                    at_ms=now_ms() - before * 1000, step=1, bytes_done=at, bytes_total=BYTES,
                    adding=(ReplicaBytes(added, at),), leader=original[0],
                )
            )  # fmt: skip


def to_dead(key: TopicPartition) -> bool:
    """Whether a partition moves to the broker that has failed."""
    return lists(key)[1][2] == 4


def place(key: TopicPartition) -> dict[str, Any]:
    """Return the fields of an event that say which partition it is about."""
    return {"cluster": CLUSTER, "topic": key.topic, "partition": key.partition}


def lists(key: TopicPartition) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the original list of a partition, and the target that has another last broker."""
    first = key.partition % 3
    original = (RACKS[0][first], RACKS[1][first], RACKS[0][(first + 1) % 3])
    return original, (*original[:2], RACKS[1][(first + 1) % 3])


def keys(topic: str, partitions: int) -> list[TopicPartition]:
    """Name the first partitions of a topic."""
    return [TopicPartition(topic, number) for number in range(partitions)]


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def busy(moves: int = 500) -> Scene:
    """Return three plans under way, with one of everything that an operator must notice."""
    scene = Scene()
    third = moves // 3
    drain = [*keys("orders", third // 2), *keys("payments", third - third // 2)]
    scene.open_plan("friday-drain", "ann", "drain broker 1", 40_000_000, drain)
    done, begun = drain[: third // 2], drain[third // 2 : third // 2 + 14]
    for first in range(0, len(done), 20):
        scene.start(*done[first : first + 20])
        scene.complete(*done[first : first + 20])
    throttled = Rates(40_000_000, 40_000_000)
    found = Rates(None, None)
    brokers = range(1, 7)
    scene.say(*(BrokerThrottleIntended(cluster=CLUSTER, broker=one, rates=throttled, found=found) for one in brokers))
    scene.say(*(BrokerThrottleSet(cluster=CLUSTER, broker=one) for one in brokers))
    entries = Entries(leader=("0:1", "1:2", "2:3"), follower=("0:5", "1:6", "2:4"))
    scene.say(TopicThrottleIntended(cluster=CLUSTER, topic="payments", add=entries, topic_id="id"))
    scene.say(TopicThrottleSet(cluster=CLUSTER, topic="payments"))
    scene.start(*begun)
    for number, key in enumerate(begun):
        scene.sample(key, done=BYTES * (number + 1) // 17, rate=0 if to_dead(key) else 2_000_000 + 150_000 * number)
    failed_at_ms = now_ms() - 720_000
    scene.say(BrokerFailureRecorded(cluster=CLUSTER, broker=4, failed_at_ms=failed_at_ms, by="pager", reason="no ping"))
    for key in filter(to_dead, begun):
        scene.block(key, Blocker.DEAD_DESTINATION, "broker 4 must return, or the move must be rolled back")
    scene.block(begun[4], Blocker.BELOW_MIN_ISR, "2 replicas must be in sync, 1 is")
    scene.roll_back(begun[1], "ann", "latency alarm")
    audit = [*keys("audit-log", third // 2), *keys("clicks", third - third // 2)]
    scene.open_plan("rf3-audit-topics", "ci@platform", "replication factor 3", 10_000_000, audit)
    scene.start(*audit[:6])
    for number, key in enumerate(audit[:6]):
        scene.sample(key, done=BYTES // 9 * (number + 1), rate=0 if to_dead(key) else 1_600_000)
    for key in filter(to_dead, audit[:6]):
        scene.block(key, Blocker.DEAD_DESTINATION, "broker 4 must return, or the move must be rolled back")
    scene.open_plan("rebalance-eu", "capacity-bot", "even out disks", None, keys("inventory", moves - 2 * third))
    later: list[AnyEvent] = [
        PlanOpened(cluster=CLUSTER, plan="sessions-later", by="ann", reason="after the drain"),
        *(
            QueueEntryAdded(
                cluster=CLUSTER, topic=key.topic, partition=key.partition, id="queue-7", plan="sessions-later",
                target=lists(key)[1],
            )
            for key in keys("sessions", 12)
        ),
    ]  # fmt: skip
    scene.say(*later)
    scene.say(BlacklistSet(cluster=CLUSTER, brokers=(6,), previous_brokers=(), by="ann", reason="slow disks"))
    scene.say(BrokerHeld(cluster=CLUSTER, broker=3, by="ann", reason="a busy hour", role=HoldRole.SOURCE))
    scene.refuse("alter-typo", "capacity-bot", RefusalCode.UNKNOWN_TOPIC_OR_PARTITION, "there is no topic oders")
    return scene


def freeze(scene: Scene, by: str = "ann", reason: str = "incident 7") -> None:
    """Freeze the cluster."""
    scene.say(ClusterFrozen(cluster=CLUSTER, by=by, reason=reason))


def partitions(scene: Scene) -> Iterator[TopicPartition]:
    """Name what is under way."""
    yield from scene.writer.fold.state.clusters[CLUSTER].reassignments
