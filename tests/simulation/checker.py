"""The witness: an independent reader of everything that happens, who remembers what the invariants are about.

It folds every record as it becomes durable, follows the life of each reassignment by its events alone, and hears of
each call when it leaves, arrives and is done. The rules themselves stand in `tests.simulation.invariants`.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from drover.cluster.port import AlterRequest, ThrottleChange
from drover.decide.order_endings import PLAN_PREFIX
from drover.events.clusters import ClusterFrozen, ClusterMatched, ClusterMismatched, ClusterUnfrozen
from drover.events.leadership import OrderChange
from drover.events.partitions import TopicPartition
from drover.events.reassignments import (
    Call,
    CallAccepted,
    CallIntended,
    CallLapsed,
    CallOutcomeLost,
    CallRejected,
    ReassignmentAdopted,
    ReassignmentCompleted,
    ReassignmentCreated,
    ReassignmentFailed,
    ReassignmentRolledBack,
    ReassignmentStopped,
    RollbackRequested,
    StepConfirmed,
    StepPostponed,
    StepPrepared,
    StepTakenBack,
    StopRequested,
    TargetReplaced,
)
from drover.events.records import AnyEvent, Batch, Cursor
from drover.events.throttles import BrokerThrottleLeft, BrokerThrottleSet, TopicThrottleLeft, TopicThrottleSet
from drover.fold.log import Folded, RecordVerdict, ShardFold
from drover.testing.controller_model import Partition
from tests.simulation import index_rules, leader_rules, log_rules
from tests.simulation import invariants as rules
from tests.simulation.cluster import SimulatedCluster
from tests.simulation.heal_rules import HealWitness
from tests.simulation.late_rules import LateCalls
from tests.simulation.limit_rules import LimitWitness
from tests.simulation.settings import WALL_START_MS
from tests.simulation.throttle_rules import ThrottleRules

if TYPE_CHECKING:
    from tests.simulation.world import World

Place = tuple[str, TopicPartition]
FULL_CHECK_EVERY = 64
Ending = ReassignmentCompleted | ReassignmentRolledBack | ReassignmentStopped | ReassignmentFailed
_ANSWERS = (CallAccepted, CallRejected, CallLapsed, CallOutcomeLost)
_SETTLED = (BrokerThrottleSet, BrokerThrottleLeft, TopicThrottleSet, TopicThrottleLeft)


@dataclass(slots=True)
class Intent:
    """One call that the log says will be made; `left` once it was."""

    epoch: int
    call: Call
    expected: tuple[int, ...]
    replicas: tuple[int, ...] | None
    step: tuple[int, ...] | None
    durable_ms: int
    throttled: bool = False
    left: bool = False


@dataclass(slots=True)
class Life:
    """One reassignment from its beginning to its end; `touched` when others meddled, after which less can be asked.

    `began_ms` is when that was decided, or when it was taken over to be cancelled, `epoch` that of the owner who
    accepted it. `replacement` is the target that waits for its end. `asked_back` says that a way out was asked for, of
    whatever kind. `step` is the list of the step under way, `restoring` the one that was sent back last, `there` the
    one at the beginning where that is not in the order of the original, `back` that of the last step to lead back,
    `late` that of a call given up of which the effect was found.
    """

    key: TopicPartition
    plan: str
    topic_id: str
    original: tuple[int, ...]
    target: tuple[int, ...]
    began_ms: int
    asked_back: bool = False
    asked_ms: int = -1
    touched: bool = False
    replacement: tuple[int, ...] | None = None
    intent: Intent | None = None
    open: bool = False
    step: tuple[int, ...] | None = None
    restoring: tuple[int, ...] | None = None
    late: tuple[int, ...] | None = None
    there: tuple[int, ...] | None = None
    back: tuple[int, ...] | None = None
    epoch: int | None = None


@dataclass(slots=True)
class Judge:
    """R1 and R2 once more, in as few words as possible, to hold against the fold (S13)."""

    epoch: int = 0
    token: bytes = b""
    sequence: int = 0
    cursors: tuple[Cursor, ...] = (Cursor("", 0),) * 4
    verdicts: list[RecordVerdict] = field(default_factory=list)


class Checker:
    """One per world. Every method raises `AssertionError` when a promise is broken."""

    def __init__(self, world: "World") -> None:
        self.world = world
        shards = world.settings.shards
        self.folds = tuple(ShardFold(shard, shards) for shard in range(shards))
        self.judges = tuple(Judge() for _ in range(shards))
        self.lives: dict[Place, Life] = {}
        self.intents: dict[tuple[str, TopicPartition, int], Intent] = {}
        self.epochs: dict[bytes, int] = {}
        self.frozen: set[str] = set()
        self.limits = LimitWitness(world.settings)
        self.throttles = ThrottleRules(world)
        self.mismatched_ms: dict[str, int] = {}
        self.digests: dict[tuple[str, str], bytes] = {}
        self.replaced: dict[Place, int] = {}
        self.seen: dict[Place, Partition] = {}
        self._compared: dict[tuple[str, str], tuple[object, ...]] = {}
        self.isr_changed_ms: dict[Place, int] = {}
        self.hashes: list[dict[int, bytes]] = [{} for _ in range(shards)]
        self.overwritten: set[tuple[str, int]] = set()
        self.leaders = leader_rules.Leaders(self)
        self.steps = 0
        self.healing = HealWitness(self)
        self.late = LateCalls(self)

    # -- the log

    @property
    def decided_ms(self) -> int:
        """When what is followed was decided: a worker that hangs before it appends has seen nothing since."""
        return min(self.healing.written_ms, self.world.now_ms)

    def judged(self, shard: int, offset: int) -> Folded:
        """Say how a record was judged."""
        return self.world.folded[shard][offset]

    def appended(self, shard: int, offset: int, payload: bytes) -> None:
        """A record became durable."""
        for cluster in self.world.clusters.values():
            self._see(cluster)
        fold = self.folds[shard]
        folded = fold.fold(offset, payload)
        assert folded is not None, "a record is folded once"
        self.world.folded[shard].append(folded)
        log_rules.s13_records_are_in_order(self.judges[shard], folded)
        if folded.verdict is RecordVerdict.ACQUIRED:
            self.epochs[fold.token] = fold.epoch
        if folded.verdict is not RecordVerdict.VALID:
            return
        assert isinstance(folded.record, Batch)
        log_rules.s14_each_command_is_decided_once(self, shard, folded.record)
        log_rules.s17_nothing_is_skipped_silently(self, shard, folded.record)
        self.healing.written_ms = folded.record.at_ms - WALL_START_MS
        for event in folded.record.events:
            rules.s6_a_cluster_has_one_shard(self.world.settings, shard, event)
            self._follow(event, fold.epoch)
        self.limits.hold(fold.state, self.world.clusters)

    def _follow(self, event: AnyEvent, epoch: int) -> None:
        self.healing.follow(event)
        self.limits.follow(event)
        self.throttles.follow(event)
        self.leaders.follow(event, epoch)
        self.late.follow(event)
        if isinstance(event, ReassignmentCreated):
            rules.s6_lives_do_not_overlap(self, event)
            life = Life(event.key, event.plan, event.topic_id, event.original, event.target, self.decided_ms)
            life.there, life.epoch = event.current, epoch
            # A target that replaces another one inherits what others have done to that one.
            life.touched = self.replaced.pop((event.cluster, event.key), None) == self.world.now_ms
            self.lives[event.cluster, event.key] = life
        elif isinstance(event, ReassignmentAdopted):
            self._adopted(event)
        elif isinstance(event, CallIntended):
            self._intended(event, epoch)
        elif isinstance(event, StepPrepared):
            rules.s12_nothing_starts_while_frozen(self, event)
            self.lives[event.cluster, event.key].step = event.replicas
        elif isinstance(event, StepConfirmed | StepTakenBack | StepPostponed):
            self.lives[event.cluster, event.key].step = None
        elif isinstance(event, _ANSWERS):
            self.lives[event.cluster, event.key].open = False
        elif isinstance(event, RollbackRequested | StopRequested | TargetReplaced):
            life = self.lives[event.cluster, event.key]
            life.asked_back, life.asked_ms = True, self.world.now_ms
            life.replacement = event.target if isinstance(event, TargetReplaced) else life.replacement
        elif isinstance(event, Ending):
            self._ended(event)
        else:
            self._follow_cluster(event)

    def _follow_cluster(self, event: AnyEvent) -> None:
        """Follow what is not about one partition."""
        if isinstance(event, ClusterFrozen):
            self.frozen.add(event.cluster)
        elif isinstance(event, ClusterUnfrozen):
            self.frozen.discard(event.cluster)
        elif isinstance(event, ClusterMismatched):
            self.mismatched_ms[event.cluster] = self.world.now_ms
        elif isinstance(event, ClusterMatched):
            del self.mismatched_ms[event.cluster]
        elif isinstance(event, _SETTLED):
            rules.s10_throttles_are_put_back(self, event.cluster)

    def _intended(self, event: CallIntended, epoch: int) -> None:
        life = self.lives[event.cluster, event.key]
        rules.s20_one_call_at_a_time(life, event)
        self.leaders.s20_no_call_is_open(event)
        self.leaders.x8_steps_are_in_todays_order(life, event)
        if event.call is Call.STEP:
            rules.s12_nothing_starts_while_frozen(self, event)
            life.step = event.replicas
            life.back = event.replicas if life.asked_back else life.back
        else:
            rules.s6_a_way_back_was_asked_for(self.world.clusters[event.cluster], life, event)
            life.restoring = event.replicas or life.restoring
        throttled = self.throttles.holds_for(event.cluster, life.plan)
        life.intent = Intent(epoch, event.call, event.expected, event.replicas, life.step, self.world.now_ms, throttled)
        life.open = True
        self.intents[event.cluster, event.key, epoch] = life.intent

    def order_intended(self, place: Place, topic_id: str, change: OrderChange, epoch: int) -> Life:
        """Note the intent of a call that only changes the order of a list; return what is followed until its end."""
        expected, replicas, now_ms = change.expected, change.replicas, self.world.now_ms
        life = Life(place[1], PLAN_PREFIX, topic_id, expected, replicas, now_ms, step=replicas)
        life.intent = self.intents[*place, epoch] = Intent(epoch, Call.STEP, expected, replicas, replicas, now_ms)
        return life

    def _life_of(self, place: Place, intent: Intent) -> Life | None:
        order = self.leaders.orders.get(place)
        return order if order is not None and order.intent is intent else self.lives.get(place)

    def _adopted(self, event: ReassignmentAdopted) -> None:
        """What others or late calls have begun is taken over in order to be cancelled: nothing of it is as usual."""
        rules.s6_lives_do_not_overlap(self, event)
        life = Life(event.key, event.plan, event.topic_id, event.original, event.original, self.world.now_ms)
        life.step, life.asked_back, life.touched = event.replicas, True, True
        self.lives[event.cluster, event.key] = life

    def _ended(self, event: Ending) -> None:
        life = self.lives.pop((event.cluster, event.key))
        self.leaders.reassignment_ended(life, event)
        if rules.is_touched(self.world.clusters[event.cluster], life):
            self.replaced[event.cluster, event.key] = self.world.now_ms
        cluster = self.world.clusters[event.cluster]
        rules.s9_the_end_of_a_topic_is_named(cluster, life, event, self.decided_ms)
        if isinstance(event, ReassignmentCompleted):
            rules.s5_completed_means_there(self, cluster, life, event)
        elif isinstance(event, ReassignmentStopped):
            rules.s21_stopped_means_the_confirmed_list(cluster, life, event)
        elif isinstance(event, ReassignmentRolledBack):
            rules.s21_rolled_back_means_the_original_list(self, cluster, life, event)
        else:
            rules.s11_failed_means_others_did_it(self, cluster, life, event)

    # -- calls

    def call_leaves(self, cluster: SimulatedCluster, requests: Sequence[AlterRequest]) -> None:
        """An alter call is about to be sent."""
        caller = self.world.caller
        assert caller is not None, "only a worker calls"
        assert caller.token is not None, "only an owner calls"
        epoch = self.epochs[caller.token]
        rules.s6_the_right_cluster_is_called(self, cluster)
        for request in requests:
            intent = self.intents.get((cluster.name, request.partition, epoch))
            rules.s6_each_call_has_an_intent(self, request, intent)
            assert intent is not None, "just asserted"
            intent.left = True

    def call_arrives(self, cluster: SimulatedCluster, requests: Sequence[AlterRequest]) -> None:
        """An alter call is about to be carried out."""
        caller = self.world.caller
        assert caller is not None, "only a worker calls"
        assert caller.token is not None, "only an owner calls"
        epoch = self.epochs[caller.token]
        self.world.trace_calls(requests)
        for request in requests:
            intent = self.intents[cluster.name, request.partition, epoch]
            life = self._life_of((cluster.name, request.partition), intent)
            rules.s6_no_call_comes_late(request, life, intent)
            assert life is not None, "just asserted"
            rules.s1_the_list_is_valid(cluster, request, intent, caller)
            rules.s9_no_new_incarnation_is_touched(cluster, request, life)
            rules.s11_nobody_is_overwritten(cluster, request, life)
            if intent.call is Call.STEP and life.plan != PLAN_PREFIX:
                rules.s10_a_step_starts_behind_its_throttle(self, cluster, life, intent)

    def call_done(self, cluster: SimulatedCluster, requests: Sequence[AlterRequest]) -> None:
        """An alter call was carried out."""
        for request in requests:
            rules.s3_min_isr_is_kept(self, cluster, request)

    def election_leaves(self, cluster: SimulatedCluster, partitions: Collection[TopicPartition]) -> None:
        """An election is about to be sent."""
        rules.s6_the_right_cluster_is_called(self, cluster)
        for key in partitions:
            self.leaders.leaves(cluster, key)

    def election_arrives(self, cluster: SimulatedCluster, partitions: Collection[TopicPartition]) -> None:
        """An election is about to be held."""
        for key in partitions:
            self.leaders.arrives(cluster, key)

    def throttle_changes(self, cluster: SimulatedCluster, change: ThrottleChange) -> None:
        """A throttle is about to be written."""
        rules.s6_the_right_cluster_is_called(self, cluster)
        rules.s10_no_throttle_of_others_is_touched(self, cluster, change)

    # -- each step

    def step(self) -> None:
        """Check what may have changed since the last step."""
        self.steps += 1
        for cluster in self.world.clusters.values():
            self._see(cluster)
        if self.steps % FULL_CHECK_EVERY == 0:
            self.full_check()

    def _see(self, cluster: SimulatedCluster) -> None:
        for name, topic in cluster.model.topics.items():
            # Mostly nothing has changed: the same objects are compared by one call.
            partitions = (topic.topic_id, *topic.partitions.values())
            if partitions == self._compared.get((cluster.name, name)):
                continue
            self._compared[cluster.name, name] = partitions
            for number, partition in topic.partitions.items():
                place = (cluster.name, TopicPartition(name, number))
                before = self.seen.get(place)
                if partition is before:
                    continue
                self.seen[place] = partition
                if before is None or before.isr != partition.isr:
                    self.isr_changed_ms[place] = cluster.now_ms
                self._changed(cluster, place[1], before, partition)

    def _changed(
        self, cluster: SimulatedCluster, key: TopicPartition, before: Partition | None, after: Partition
    ) -> None:
        self.leaders.changed(cluster, key, before, after)
        self.limits.see(cluster, key, before, after)
        life = self.lives.get((cluster.name, key), self.leaders.orders.get((cluster.name, key)))
        if before is not None and before.moving and not after.moving:
            cluster.move_ended(key, others=life is None)
        if life is not None and rules.is_touched(cluster, life):
            life.touched = True
        topic_id = cluster.model.topics[key.topic].topic_id
        if life is None:
            rules.s11_nothing_moves_unasked(cluster, key, before, after)
        elif not life.touched and topic_id == life.topic_id:
            rules.s2_the_envelope_holds(cluster, life, after)
            steppings = self.limits.steppings(cluster.name, life.plan)
            rules.s2_swaps_take_little_room(cluster, steppings, self.limits.most(cluster.name), life, after)
            rules.s4_racks_are_kept(cluster, steppings, life, before, after)
            self.limits.few_replicas_are_added_at_once(cluster, steppings, life.key, before, after)

    def full_check(self) -> None:
        """Check what costs more than a step: indexes, hashes, and what each owner believes."""
        for shard, fold in enumerate(self.folds):
            for state in fold.state.clusters.values():
                rules.s7_indexes_agree(state)
                index_rules.s7_what_waits_is_counted(state)
            self.note_hash(shard)
        log_rules.s14_owners_believe_the_log(self)
        index_rules.s7_owners_indexes_agree(self)

    def note_hash(self, shard: int, fold: ShardFold | None = None) -> bytes:
        """Remember the state's hash where the log ends now; every other reader must come to the same."""
        found = self.folds[shard] if fold is None else fold
        digest = log_rules.full_hash(found.state, self.world.settings.names)
        known = self.hashes[shard].setdefault(found.position, digest)
        assert known == digest, f"S14: two readers of shard {shard} differ at offset {found.position}"
        return digest
