"""What must hold of leaders: elections have intents, listed brokers lead nothing, canonical orders come back."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from drover.decide.leader_order import deprioritise
from drover.decide.order_endings import PLAN_PREFIX
from drover.events.brokers import BlacklistSet
from drover.events.leadership import (
    LeaderElectionEnded,
    LeaderElectionIntended,
    LeaderElectionsEnded,
    LeaderOrdersAnswered,
    LeaderOrdersIntended,
    OrderOutcome,
)
from drover.events.partitions import TopicPartition
from drover.events.reassignments import (
    Call,
    CallIntended,
    ReassignmentCompleted,
    ReassignmentFailed,
    ReassignmentStopped,
)
from drover.events.records import AnyEvent
from drover.events.topics import shard_of
from drover.shard.proposals import CALL_START_MS
from drover.state.cluster import ClusterState
from drover.state.reassignment import LATE_MS
from drover.testing.controller_model import Partition
from tests.simulation.cluster import SimulatedCluster
from tests.simulation.settings import WALL_START_MS

if TYPE_CHECKING:
    from tests.simulation.checker import Checker, Ending, Life
    from tests.simulation.world import World

Place = tuple[str, TopicPartition]
# From the end of that minute: a pause between tries, and two surveys.
TRIED_AGAIN_MS = 35_000


@dataclass(slots=True)
class Intended:
    """One election that the log says will be held; `left` once it was sent."""

    epoch: int
    replicas: tuple[int, ...]
    durable_ms: int
    left: bool = False


class Leaders:
    """Follows elections and canonical orders by events and by what happens to clusters, apart from Drover's fold."""

    def __init__(self, checker: "Checker") -> None:
        self._checker = checker
        self.open: dict[Place, Intended] = {}
        # Calls that only change the order of a list; a life each, without a reassignment.
        self.orders: dict[Place, Life] = {}
        self._intents: dict[tuple[str, TopicPartition, int], Intended] = {}
        # None: others have touched it, or it ended where neither an original nor a target was; nothing is asked of it.
        self.canonical: dict[Place, tuple[int, ...] | None] = {}
        self._topic_ids: dict[Place, str] = {}
        self._lists: dict[str, BlacklistSet] = {}

    # -- the list

    def follow(self, event: AnyEvent, epoch: int) -> None:
        """Follow the complete list (R491-1) and the elections: what comes later in a record is held to this list."""
        if isinstance(event, BlacklistSet):
            self._lists[event.cluster] = event
        elif isinstance(event, LeaderElectionIntended):
            self._intended(event, epoch)
        elif isinstance(event, LeaderElectionEnded):
            # An outcome belongs to an open intent.
            del self.open[event.cluster, event.key]
        elif isinstance(event, LeaderElectionsEnded):
            for key in event.keys:
                del self.open[event.cluster, key]
        elif isinstance(event, LeaderOrdersIntended):
            self._orders_intended(event, epoch)
        elif isinstance(event, LeaderOrdersAnswered):
            for key in event.keys:
                life = self.orders.pop((event.cluster, key))
                if event.outcome is OrderOutcome.ELECTING:
                    self._elects((event.cluster, key), life.target, epoch)

    def listed(self, cluster: str, topic: str) -> frozenset[int]:
        """Return the brokers that should not lead partitions of a topic, as of the event that is followed."""
        found = self._lists.get(cluster)
        if found is None:
            return frozenset()
        elsewhere = {entry.broker for entry in found.entries if entry.topics is not None and topic not in entry.topics}
        return frozenset(found.brokers) - elsewhere

    # -- elections

    def _intended(self, event: LeaderElectionIntended, epoch: int) -> None:
        """R236-9, S20: nothing is elected in a frozen cluster, nor where a call is open."""
        self._elects((event.cluster, event.key), event.replicas, epoch)
        self._s7_the_budget_is_kept(event.cluster)

    def _elects(self, place: Place, replicas: tuple[int, ...], epoch: int) -> None:
        self._s20_nothing_is_open(place)
        listed = self.listed(place[0], place[1].topic)
        only_listed = all(broker in listed for broker in replicas)
        assert replicas[0] not in listed or only_listed, f"R491-2: {place} elects one of {listed}: {replicas}"
        self.open[place] = self._intents[*place, epoch] = Intended(epoch, replicas, self._checker.world.now_ms)

    def _orders_intended(self, event: LeaderOrdersIntended, epoch: int) -> None:
        """S6, S20: an order call has an intent of its own, for the same brokers; nothing else is open there."""
        for key, change in zip(event.keys, event.changes, strict=True):
            place = event.cluster, key
            self._s20_nothing_is_open(place)
            assert sorted(change.replicas) == sorted(change.expected) == sorted(change.canonical), f"R491-2: {event}"
            self.orders[place] = self._checker.order_intended(place, event.topic_id, change, epoch)
        self._s7_the_budget_is_kept(event.cluster)

    def _s20_nothing_is_open(self, place: Place) -> None:
        assert place[0] not in self._checker.frozen, f"S12: {place} while frozen"
        assert place not in self.open, f"S20: {place} while {self.open[place]} is open"
        assert place not in self.orders, f"S20: {place} while {self.orders[place]} is open"
        life = self._checker.lives.get(place)
        assert life is None or not life.open, f"S20: {place} while {life} has a call open"

    def _s7_the_budget_is_kept(self, cluster: str) -> None:
        limit = self._state(cluster).limits.max_leader_movements
        under_way = [place for place in (*self.open, *self.orders) if place[0] == cluster]
        assert len(under_way) <= limit, f"S7: {len(under_way)} leaders are under way: {under_way}"

    def s20_no_call_is_open(self, event: CallIntended) -> None:
        """S20: no call about a partition is intended while an election or a change of its order is open."""
        assert (event.cluster, event.key) not in self.open, f"S20: {event} while an election is open"
        assert (event.cluster, event.key) not in self.orders, f"S20: {event} while its order is being changed"

    def leaves(self, cluster: SimulatedCluster, key: TopicPartition) -> None:
        """S6: each election has its own intent, durable under the caller's epoch, at most 1 s old."""
        made = self._of_caller(cluster, key)
        assert made is not None, f"S6: an election of {key} without a durable intent"
        assert not made.left, f"S6: {key} is elected twice for one intent"
        made.left = True
        age_ms = self._checker.world.now_ms - made.durable_ms
        assert age_ms <= CALL_START_MS, f"S6: an election of {key} leaves {age_ms} ms after its intent"

    def arrives(self, cluster: SimulatedCluster, key: TopicPartition) -> None:
        """S6: when an election arrives, nothing else was intended for the partition since."""
        made = self._of_caller(cluster, key)
        assert self.open.get((cluster.name, key)) is made, f"S6: an election of {key} arrives late"

    def _of_caller(self, cluster: SimulatedCluster, key: TopicPartition) -> Intended | None:
        caller = self._checker.world.caller
        assert caller is not None, "only a worker calls"
        assert caller.token is not None, "only an owner calls"
        return self._intents.get((cluster.name, key, self._checker.epochs[caller.token]))

    # -- orders

    def x8_steps_are_in_todays_order(self, life: "Life", event: CallIntended) -> None:
        """X8: no step puts a listed broker first but one that appends only, which repairs; the last one is exact.

        What is out of sync and to go may be left out of it, or was when the worker looked: some versions wait for it
        otherwise.
        """
        if event.call is not Call.STEP or event.replicas is None:
            return
        if life.plan.startswith(PLAN_PREFIX):
            assert event.replicas == life.target, f"X8: {event} is not the order of {life}"
            return
        listed = self.listed(event.cluster, event.topic)
        cluster, limits = self._checker.world.clusters[event.cluster], self._checker.limits
        found = cluster.model.partition(event.key)
        gone = {
            broker
            for broker in event.expected
            if found is None or limits.was_out_of_sync(cluster, event.key, broker, found)
        }
        kept = tuple(broker for broker in event.expected if broker in event.replicas or broker not in gone)
        appends = event.replicas[: len(kept)] == kept
        ordered = deprioritise(event.replicas, listed)
        assert appends or event.replicas == ordered, f"X8: {event}, not {ordered}"
        if event.final and not life.asked_back:
            today = deprioritise(life.target, listed)
            assert event.replicas == today or (event.replicas == life.target and appends), f"X8: {event}, not {today}"

    def changed(
        self, cluster: SimulatedCluster, key: TopicPartition, before: Partition | None, after: Partition
    ) -> None:
        """Learn the order of what is new; forget it where others change it."""
        place, topic_id = (cluster.name, key), cluster.model.topics[key.topic].topic_id
        if before is None or self._topic_ids[place] != topic_id:
            self._topic_ids[place], self.canonical[place] = topic_id, after.replicas
        elif cluster.touched_ms.get(key) == cluster.now_ms:
            self.canonical[place] = None

    def reassignment_ended(self, life: "Life", event: "Ending") -> None:
        """A target that was reached is canonical; a rollback changes nothing; what ends elsewhere is not followed."""
        place = event.cluster, event.key
        if self._topic_ids.get(place) != life.topic_id:
            return
        if isinstance(event, ReassignmentCompleted) and not life.plan.startswith(PLAN_PREFIX):
            self.canonical[place] = None if life.touched else life.target
        known = self.canonical.get(place)
        if isinstance(event, ReassignmentStopped | ReassignmentFailed) and event.replicas != known:
            # Steps that swap may have put the same brokers into another order when it ended there.
            self.canonical[place] = None
        elif known is not None and (set(event.replicas) != set(known) or life.touched):
            self.canonical[place] = None

    def asked_for_as_it_is(self, place: Place) -> None:
        """Forget the order: somebody asked for the list that is there, whatever its order was meant to be."""
        self.canonical[place] = None

    def _state(self, cluster: str) -> ClusterState:
        shards = self._checker.world.settings.shards
        return self._checker.folds[shard_of(cluster, shards)].state.clusters[cluster]


def settles_within_ms(world: "World") -> int:
    """Tell how long leaders may take in an idle world: two surveys, and a minute where a late call is waited for."""
    states = [state for fold in world.checker.folds for state in fold.state.clusters.values()]
    return LATE_MS + TRIED_AGAIN_MS if any(state.expired_calls for state in states) else 25_000


def leading(world: "World") -> tuple[list[tuple[int, ...]], list[int | None]]:
    """Return what gives leaders something to do when it changes: the brokers that should not lead, and who leads.

    Kafka itself elects the head of a list now and then, and where leaders are moved lazily the order follows that.
    """
    states = [state for fold in world.checker.folds for state in fold.state.clusters.values()]
    partitions = [entry for cluster in world.clusters.values() for _, entry in cluster.model.each_partition()]
    return [state.blacklist for state in states], [partition.leader for partition in partitions]


def is_active(world: "World") -> bool:
    """Whether there is a list, or an order to restore."""
    states = [state for fold in world.checker.folds for state in fold.state.clusters.values()]
    return any(state.blacklist or state.orders or state.waiting for state in states)


def l8_leaders_are_where_they_belong(world: "World", cluster: SimulatedCluster, state: ClusterState) -> None:
    """L8: in the end each list is in today's order, and a listed broker leads only where nobody else can."""
    assert not state.leaders_under_way, f"L8: {state.elections} or {state.intended_orders} never end"
    for key, partition in cluster.model.each_partition():
        canonical = world.checker.leaders.canonical.get((cluster.name, key))
        late = state.expired_calls.get(key)
        # What a late call may still do is waited for, and the partition is tried again some time after that.
        is_late = late is not None and world.now_ms - (late.ended_ms - WALL_START_MS) < LATE_MS + TRIED_AGAIN_MS
        if key in state.reassignments or canonical is None or partition.moving or is_late:
            continue
        listed = state.listed_for(key.topic)
        lazily = frozenset(listed) - {partition.leader} if state.limits.lazy_leadership else listed
        kept = state.orders.get(key)
        today = deprioritise(canonical, lazily)
        # What is held up itself, and says why, may take all that the budget of leaders allows: steps and reorders.
        begun = state.moves.leader_steps + sum(one.plan.startswith(PLAN_PREFIX) for one in state.reassignments.values())
        has_room = begun < state.limits.max_leader_movements
        is_unsendable = not all(map(cluster.model.is_registered, partition.replicas))
        waits = key in state.waiting or not has_room or is_unsendable
        assert partition.replicas == today or waits, f"L8: {key}: {partition}, listed {listed}, {canonical}, {kept}"
        # That a kept order is another topic's is found out when there is room to do something about the partition.
        is_others = kept is not None and kept.topic_id != cluster.model.topics[key.topic].topic_id and not has_room
        known = partition.replicas if kept is None or is_others else kept.canonical
        assert known == canonical, f"L8: {key}: {kept} is not the order of {canonical}"
        others = [broker for broker in partition.isr if broker not in listed and cluster.model.electable(broker)]
        # Kafka elects the first of a list, and takes no new order of one that names an unregistered broker.
        is_stuck = is_unsendable and partition.replicas[0] not in others
        if partition.leader in listed and others and has_room and not (state.limits.lazy_leadership or is_stuck):
            raise AssertionError(f"L8: {key}: {partition} is led by one of {listed}")
