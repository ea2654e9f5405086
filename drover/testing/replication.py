"""Replication in the model cluster: the bytes of replicas, copies, and changes of ISRs."""

from collections.abc import Iterator
from dataclasses import replace

from drover.cluster.throttle_lists import (
    FOLLOWER_RATE,
    FOLLOWER_REPLICAS,
    LEADER_RATE,
    LEADER_REPLICAS,
)
from drover.events.partitions import TopicPartition
from drover.facts import EVERY_REPLICA
from drover.testing import controller_model
from drover.testing.controller_model import Partition
from drover.testing.copy_work import CopyWork, copied_bytes
from drover.testing.model_state import ModelBroker, ModelState, ModelTopic, throttled_entries

Replica = tuple[TopicPartition, int]


class Replication:
    """The leaders and followers of a model cluster.

    In-sync replicas have written bytes at once, unless their broker is dead or stalled; such replicas leave the ISR if
    they have lacked bytes for `replica_lag_ms` after they stopped fetching. Others copy within `copy_bytes_per_second`
    per fetching broker and within the throttles that name them, and join when they lack nothing. With `joins_by_itself`
    off, replicas join only through `join`.
    """

    def __init__(
        self, state: ModelState, copy_bytes_per_second: int | None, replica_lag_ms: int, *, joins_by_itself: bool
    ) -> None:
        self.copy_bytes_per_second = copy_bytes_per_second
        self.replica_lag_ms = replica_lag_ms
        self.joins_by_itself = joins_by_itself
        self._state = state
        self._stored: dict[Replica, int] = {}
        self._lagging: dict[Replica, None] = {}
        state.on_change.append(self._follow)

    def write(self, partition: TopicPartition, added_bytes: int) -> bool:
        """Append bytes if there is a live leader; return whether there is."""
        topic, state = self._state.topics[partition.topic], self._state.the_partition(partition)
        if state.leader is None or not self._state.brokers[state.leader].alive:
            return False
        topic.written[partition.partition] += added_bytes
        for broker in state.isr:
            if broker == state.leader or self._state.brokers[broker].fetches:
                self._stored[partition, broker] = topic.written[partition.partition]
            elif added_bytes:
                self._lagging[partition, broker] = None
        return True

    def stored_bytes(self, partition: TopicPartition) -> dict[int, int]:
        """Return the bytes on each live broker's disk, copies under way included, failed directories left out."""
        state = self._state.partition(partition)
        brokers = () if state is None else sorted(state.replicas)
        live = (broker for broker in brokers if self._state.brokers[broker].alive)
        shown = (broker for broker in live if (partition, broker) not in self._state.offline)
        return {broker: self._stored.get((partition, broker), 0) for broker in shown}

    def advance(self, started_ms: int, *, with_controller: bool) -> None:
        """Copy from `started_ms` until now; without a controller no ISR changes."""
        if self._lagging:
            self._catch_up_or_fall_out(with_controller=with_controller)
        work = list(self._copy_work())
        for item, copied in copied_bytes(work, self.copy_bytes_per_second, started_ms, self._state.now_ms):
            if copied:
                replica = (item.partition, item.follower)
                self._stored[replica] = self._stored.get(replica, 0) + copied
            if copied == item.missing_bytes and self.joins_by_itself and with_controller:
                self.join(item.partition, item.follower)

    def join(self, partition: TopicPartition, broker: int) -> None:
        """Let the leader report that a replica is in sync; this is what completes moves."""
        before = self._state.the_partition(partition)
        if (partition, broker) in self._state.offline:
            return
        self._stored[partition, broker] = self._state.topics[partition.topic].written[partition.partition]
        if broker in before.replicas and broker not in before.isr and self._state.electable(broker):
            self._state.settle(partition, replace(before, isr=(*before.isr, broker), recovering=False))

    def _catch_up_or_fall_out(self, *, with_controller: bool) -> None:
        for partition, broker in sorted(self._lagging):
            if (partition, broker) not in self._lagging:
                continue
            state, follower = self._state.the_partition(partition), self._state.brokers[broker]
            if state.leader is None or not self._state.brokers[state.leader].alive:
                continue
            if follower.fetches:
                self._stored[partition, broker] = self._state.topics[partition.topic].written[partition.partition]
                del self._lagging[partition, broker]
            elif with_controller and self._state.now_ms - _stopped_ms(follower) > self.replica_lag_ms:
                remaining = controller_model.without(state.isr, [broker])
                self._state.settle(partition, replace(state, isr=remaining, recovering=False))

    def _follow(self, partition: TopicPartition, before: Partition | None, after: Partition | None) -> None:
        """Drop the bytes of removed replicas, and bytes that a new leader lacks from the others."""
        remaining = () if after is None else after.replicas
        for broker in controller_model.without(() if before is None else before.replicas, remaining):
            self._stored.pop((partition, broker), None)
            self._state.offline.pop((partition, broker), None)
        in_sync = () if after is None else after.isr
        for broker in controller_model.without(() if before is None else before.isr, in_sync):
            self._lagging.pop((partition, broker), None)
        if before is None or after is None or after.leader in {None, before.leader}:
            return
        written = self._state.topics[partition.topic].written
        stored = self._stored.get((partition, after.leader or 0), 0)
        written[partition.partition] = min(written[partition.partition], stored)
        for broker in after.replicas:
            self._stored[partition, broker] = min(self._stored.get((partition, broker), 0), stored)

    def _copy_work(self) -> Iterator[CopyWork]:
        brokers = self._state.brokers
        for partition, state in self._state.each_of(self._state.incomplete):
            leader = state.leader
            if leader is None or not brokers[leader].alive:
                continue
            topic = self._state.topics[partition.topic]
            for follower in state.replicas:
                is_offline = (partition, follower) in self._state.offline
                if follower in state.isr or is_offline or not brokers[follower].fetches:
                    continue
                yield CopyWork(
                    partition=partition,
                    leader=leader,
                    follower=follower,
                    missing_bytes=topic.written[partition.partition] - self._stored.get((partition, follower), 0),
                    leader_limit=self._limit(topic, partition, leader, LEADER_REPLICAS, LEADER_RATE),
                    follower_limit=self._limit(topic, partition, follower, FOLLOWER_REPLICAS, FOLLOWER_RATE),
                )

    def _limit(
        self, topic: ModelTopic, partition: TopicPartition, broker: int, list_key: str, rate_key: str
    ) -> int | None:
        rate = self._state.brokers[broker].configs.get(rate_key)
        if rate is None or not (value := topic.configs.get(list_key)):
            return None
        entries = throttled_entries(value)
        is_named = EVERY_REPLICA in entries or f"{partition.partition}:{broker}" in entries
        return int(rate) if is_named else None


def _stopped_ms(follower: ModelBroker) -> int:
    """Return when a broker that fetches nothing stopped fetching."""
    stopped = [time_ms for time_ms in (follower.died_at_ms, follower.stalled_since_ms) if time_ms is not None]
    assert stopped, "the broker fetches"
    return min(stopped)
