"""S7, each budget by itself: what begins finds room under the limits of that moment, which commands change."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from drover.events.clusters import HoldRole, LimitsChanged
from drover.events.partitions import TopicPartition
from drover.events.plans import PlanExtended, PlanOpened, Stepping
from drover.events.records import AnyEvent
from drover.events.traits import Completion
from drover.fold.log import ShardState
from drover.state.broker_directions import BrokerDirection
from drover.state.cluster import ClusterState
from drover.state.phase import Phase
from drover.state.reassignment import Reassignment, Step
from drover.testing.controller_model import Partition
from tests.simulation.cluster import SimulatedCluster
from tests.simulation.counting import slots_taken
from tests.simulation.invariants import RACE_MS
from tests.simulation.settings import Settings
from tests.simulation.suspension_rules import SuspensionWitness


@dataclass(slots=True)
class Held:
    """The slots, steps and leader calls in use on a cluster after one record.

    `slots` are numbers of reassignments, since a later one of the same partition starts again.
    """

    slots: frozenset[int] = frozenset()
    steps: dict[TopicPartition, Step] = field(default_factory=dict)
    calls: frozenset[TopicPartition] = frozenset()


class LimitWitness:
    """Follows the limits of every cluster, and holds what begins to them."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._held: dict[str, Held] = {}
        # Every stepping that a plan has had, and the most replicas that a step might add.
        self._steppings: dict[tuple[str, str], set[Stepping]] = {}
        self._of_cluster: dict[str, Stepping] = {}
        self._most: dict[str, int] = {}
        # When a replica was last back in sync.
        self._back_ms: dict[tuple[str, TopicPartition, int], int] = {}
        # Brokers that have ever been dead.
        self._mortal: dict[str, set[int]] = {}
        self._suspensions = SuspensionWitness()

    def follow(self, event: AnyEvent) -> None:
        """Remember what steps may be like."""
        if isinstance(event, LimitsChanged):
            for change in (*event.changed, *event.reset):
                if change.name == "max_replicas_per_step":
                    self._most[event.cluster] = max(self.most(event.cluster), int(change.value or 0))
                elif change.name == "stepping":
                    self._of_cluster[event.cluster] = Stepping(str(change.value))
                    for (cluster, _), known in self._steppings.items():
                        if cluster == event.cluster:
                            known.add(Stepping(str(change.value)))
        elif isinstance(event, PlanOpened | PlanExtended):
            known = self._steppings.setdefault((event.cluster, event.plan), set())
            if isinstance(event, PlanOpened):
                known.clear()
            if event.stepping is not None or not known:
                known.add(event.stepping or self._default(event.cluster))

    def _default(self, cluster: str) -> Stepping:
        return self._of_cluster.get(cluster, self._settings.stepping)

    def steppings(self, cluster: str, plan: str) -> set[Stepping]:
        """Return every stepping by which a plan's partitions may have gone."""
        return self._steppings.get((cluster, plan), {self._default(cluster)})

    def most(self, cluster: str) -> int:
        """Return the most replicas that a step may have added."""
        return self._most.get(cluster, self._settings.max_replicas_per_step)

    def see(self, cluster: SimulatedCluster, key: TopicPartition, before: Partition | None, after: Partition) -> None:
        """Remember which replicas are back in sync since now."""
        self._suspensions.see(cluster, key)
        if before is None:
            return
        for broker in set(after.isr) - set(before.isr):
            self._back_ms[cluster.name, key, broker] = cluster.now_ms

    def was_out_of_sync(self, cluster: SimulatedCluster, key: TopicPartition, broker: int, after: Partition) -> bool:
        """Whether a replica is out of sync, or was so lately that a worker may not know better."""
        back_ms = self._back_ms.get((cluster.name, key, broker))
        return broker not in after.isr or (back_ms is not None and cluster.now_ms - back_ms <= RACE_MS)

    def few_replicas_are_added_at_once(
        self,
        cluster: SimulatedCluster,
        steppings: set[Stepping],
        key: TopicPartition,
        before: Partition | None,
        after: Partition,
    ) -> None:
        """S7: no more replicas of one partition are copied at once than a step may add, or min.insync.replicas asks.

        Where Kafka waits for the whole target of a step, as many come as are out of sync and have to go with it, or
        were when the worker looked. What is under way is not held to what has come back since.
        """
        if Stepping.SINGLE in steppings or (before is not None and {*after.adding} <= {*before.adding}):
            return
        most = max(self.most(cluster.name), cluster.model.min_isr(key.topic))
        if before is not None:
            # As many come as have no registration, and go with the same step.
            most = max(most, sum(broker in cluster.unregistered_ms for broker in before.replicas))
        if cluster.settings.traits.completion is Completion.TARGET:
            most = max(most, sum(self.was_out_of_sync(cluster, key, broker, after) for broker in after.removing))
        assert len(after.adding) <= most, f"S7: {key} adds {after.adding}"

    def hold(self, state: ShardState, clusters: Mapping[str, SimulatedCluster]) -> None:
        """Hold what has begun in a record to the limits after it; what began before, or is on its way back, goes on."""
        for name, cluster in state.clusters.items():
            self._suspensions.hold(cluster, clusters[name])
            racks = self._known_racks(clusters[name])
            before = self._held.get(name, Held())
            flying = [entry for entry in cluster.reassignments.values() if entry.in_flight]
            going = [entry for entry in flying if not entry.is_cancelled]
            calls = frozenset({*cluster.elections, *cluster.intended_orders})
            now = Held(_numbers(going), dict(_weighing(going)), calls)
            # What goes on because its way back is deferred, or could not be taken, has not begun anew.
            self._held[name] = Held(_numbers(flying), dict(_begun(flying)), calls)
            if calls - before.calls:
                _few_leaders(cluster, list(now.steps.values()))
            if now.slots - before.slots:
                _slots(cluster, now)
            for key, step in now.steps.items():
                held = before.steps.get(key)
                if held != step:
                    _nothing_is_withheld(cluster, key, step, held)
                    for rule in BUDGETS:
                        rule(cluster, step, held, list(now.steps.values()))
                    copies_between_racks(cluster, step, held, racks, list(now.steps.values()))

    def _known_racks(self, cluster: SimulatedCluster) -> Mapping[int, str]:
        """Return the racks of brokers that have never been dead: an owner that comes later knows no others."""
        mortal = self._mortal.setdefault(cluster.name, set())
        mortal |= cluster.died_ms.keys() | (cluster.model.brokers.keys() - set(cluster.model.live_brokers()))
        return {broker: one.rack or "" for broker, one in cluster.model.brokers.items() if broker not in mortal}


def _numbers(entries: Iterable[Reassignment]) -> frozenset[int]:
    return frozenset(entry.number for entry in entries)


def _weighing(going: Iterable[Reassignment]) -> Iterable[tuple[TopicPartition, Step]]:
    for entry in going:
        step = entry.weighing_step
        if step is not None:
            yield entry.key, step


def _begun(flying: Iterable[Reassignment]) -> Iterable[tuple[TopicPartition, Step]]:
    """Return those that weigh, and those that do not while the original order is restored: they may weigh again."""
    for entry in flying:
        if entry.step is not None and entry.phase is not Phase.PENDING and entry.current != entry.step.replicas:
            yield entry.key, entry.step


def _slots(cluster: ClusterState, now: Held) -> None:
    most = cluster.limits.max_partitions_in_flight
    assert len(now.slots) <= most, f"S7: {len(now.slots)} partitions in flight"


def _nothing_is_withheld(cluster: ClusterState, key: TopicPartition, begun: Step, held: Step | None) -> None:
    """S12: no step of a paused plan begins, and no copy at a broker that is held; what is prepared goes on."""
    plan = cluster.reassignments[key].plan
    assert held is not None or plan not in cluster.paused_plans, f"S12: {begun} of {plan}, which is paused"
    suspended = cluster.suspension is not None and key not in cluster.suspension.partitions
    assert held is not None or not (suspended and begun.adding), f"S12: {begun} of {key} while too few are in sync"
    for direction in Counter(begun.load) - Counter(() if held is None else held.load):
        found = cluster.held_brokers.get(direction.broker)
        spared = {HoldRole.BOTH, HoldRole.DESTINATION if direction.way == "in" else HoldRole.SOURCE}
        assert found is None or found.role not in spared, f"S12: {begun} at {direction}, which is held"


def _directions(cluster: ClusterState, begun: Step, held: Step | None, steps: list[Step], way: str) -> None:
    taken = slots_taken(steps)
    users = Counter(direction for step in steps for direction in set(step.load))
    for direction in Counter(begun.load) - Counter(() if held is None else held.load):
        most = _limit(cluster, direction)
        is_within = direction.way != way or taken[direction] <= 16 * most or users[direction] == 1
        assert is_within, f"S7: {taken[direction]} sixteenths of slots at {direction}, of at most {most}"


def _limit(cluster: ClusterState, direction: BrokerDirection) -> int:
    budgets, known = cluster.limits.budgets, cluster.allowances.get(direction.broker)
    one = budgets.max_incoming_per_broker if direction.way == "in" else budgets.max_outgoing_per_broker
    most = cluster.limits.max_moves_per_broker if one is None else one
    return most if known is None else max(1, most // 2**known.halvings)


def incoming(cluster: ClusterState, begun: Step, held: Step | None, steps: list[Step]) -> None:
    """S7: no broker takes more copies at a time than it may, unless one step does so alone."""
    _directions(cluster, begun, held, steps, "in")


def outgoing(cluster: ClusterState, begun: Step, held: Step | None, steps: list[Step]) -> None:
    """S7: no broker gives more copies at a time than it may, unless one step does so alone."""
    _directions(cluster, begun, held, steps, "out")


def _copies_more(begun: Step, held: Step | None) -> bool:
    return len(begun.adding) > (0 if held is None else len(held.adding))


def copies(cluster: ClusterState, begun: Step, held: Step | None, steps: list[Step]) -> None:
    """S7: no more replicas are copied in the cluster than may be, unless one step does so alone."""
    most, copying = cluster.limits.budgets.max_replica_copies_in_flight, [step for step in steps if step.adding]
    if most is not None and _copies_more(begun, held) and len(copying) > 1:
        count = sum(len(step.adding) for step in copying)
        assert count <= most, f"S7: {count} copies, at most {most}"


def bytes_in_flight(cluster: ClusterState, begun: Step, held: Step | None, steps: list[Step]) -> None:
    """S7: a step begins only while fewer bytes than the limit are copied; the last that begins may exceed it."""
    most = cluster.limits.budgets.max_bytes_in_flight
    if most is not None and _copies_more(begun, held):
        rest = sum(map(_bytes, steps)) - max(map(_bytes, steps))
        assert rest < most, f"S7: {rest} bytes in flight before a step, at most {most}"


def _bytes(step: Step) -> int:
    return (step.copy_bytes or 0) * len(step.adding)


def _few_leaders(cluster: ClusterState, steps: list[Step]) -> None:
    calls = {*cluster.elections, *cluster.intended_orders}
    moving, most = sum(map(_moves_leader, steps)), cluster.limits.max_leader_movements
    assert moving + len(calls) <= most, f"S7: {moving} steps and {len(calls)} calls move leaders, at most {most}"


def copies_between_racks(
    cluster: ClusterState, begun: Step, held: Step | None, racks: Mapping[int, str], steps: list[Step]
) -> None:
    """S7: no rack takes more copies from others than it may, nor gives more, unless one step does so alone."""
    most = cluster.limits.budgets.max_moves_per_rack
    if most is None:
        return
    taken: Counter[tuple[str, str]] = Counter()
    users: Counter[tuple[str, str]] = Counter()
    for step in steps:
        ways = _ways(step, racks)
        users.update(set(ways))
        share = max(slots_taken([step]).values(), default=0) // max(Counter(step.load).values(), default=1)
        for way in ways:
            taken[way] += share
    had = Counter(() if held is None else _ways(held, racks))
    for way in Counter(_ways(begun, racks)) - had:
        assert taken[way] <= 16 * most or users[way] == 1, f"S7: {taken[way]} sixteenths of slots at {way}"


def _ways(step: Step, racks: Mapping[int, str]) -> list[tuple[str, str]]:
    source, ways = racks.get(step.leader or 0), []
    for broker in step.adding:
        there = racks.get(broker)
        if source is not None and there is not None and there != source:
            ways += [(source, "out"), (there, "in")]
    return ways


def leader_movements(cluster: ClusterState, begun: Step, held: Step | None, steps: list[Step]) -> None:
    """S7, R435-8: no more leaders are on their way than may be, by steps, elections and order calls."""
    if _moves_leader(begun) and (held is None or not _moves_leader(held)):
        _few_leaders(cluster, steps)


def _moves_leader(step: Step) -> bool:
    """R435-8 once more: the leader goes, or a new replica is brought in at the head."""
    if step.leader is None:
        return False
    return step.leader not in step.replicas or step.replicas[0] in set(step.replicas) - {*step.expected, step.leader}


Rule = Callable[[ClusterState, Step, Step | None, list[Step]], None]
BUDGETS: tuple[Rule, ...] = (incoming, outgoing, copies, bytes_in_flight, leader_movements)
