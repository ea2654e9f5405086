"""What must hold at every moment, each promise under its name from docs/kip-rules.md; see also docs/promises.md."""

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING

from drover.cluster.port import AlterRequest, SetBrokerRates, ThrottleChange
from drover.cluster.throttle_lists import parse_rates, parse_throttled
from drover.decide.leader_order import deprioritise
from drover.events.partitions import TopicPartition
from drover.events.plans import Stepping
from drover.events.reassignments import (
    CallIntended,
    FailureReason,
    ReassignmentAdopted,
    ReassignmentCompleted,
    ReassignmentCreated,
    ReassignmentFailed,
    ReassignmentRolledBack,
    ReassignmentStopped,
    StepPrepared,
)
from drover.events.records import AnyEvent
from drover.events.topics import shard_of
from drover.events.traits import Completion
from drover.reconcile.observations import FRESH_TO_START_MS
from drover.shard.proposals import CALL_START_MS
from drover.state.cluster import ClusterState
from drover.testing.controller_model import Partition
from tests.simulation.calls import CALL_DEADLINE_MS
from tests.simulation.cluster import STALE_MS, SimulatedCluster
from tests.simulation.counting import plans_agree, slots_taken
from tests.simulation.settings import Settings

if TYPE_CHECKING:
    from tests.simulation.calls import Call
    from tests.simulation.checker import Checker, Intent, Life

# What others did so lately may go unseen: a young sight of old metadata, an intent, a call on its way.
RACE_MS = FRESH_TO_START_MS + STALE_MS + CALL_START_MS + CALL_DEADLINE_MS


def s1_the_list_is_valid(cluster: SimulatedCluster, request: AlterRequest, intent: "Intent", caller: "Call") -> None:
    """S1: a list that is sent is not empty, names nobody twice, and adds brokers that lived when it was decided.

    It names no broker that a survey had shown to be unregistered some time before it was decided.
    """
    if request.replicas is None:
        return
    assert request.replicas, f"S1: {request.partition}: an empty list"
    assert len(set(request.replicas)) == len(request.replicas), f"S1: {request} names a broker twice"
    for broker in request.replicas:
        assert broker in cluster.model.brokers, f"S1: {request} names an unknown broker"
        seen, gone_ms = caller.shard.core.cluster(cluster.name).observed, cluster.unregistered_ms.get(broker)
        # Before Kafka 4.0 no survey says who is registered.
        is_told = seen.registered is not None and seen.surveyed_ms is not None
        if gone_ms is not None and not cluster.model.is_registered(broker) and is_told:
            assert seen.surveyed_ms is not None
            surveyed_ms = seen.surveyed_ms + seen.survey_took_ms + RACE_MS
            is_known = gone_ms < seen.surveyed_ms and surveyed_ms < intent.durable_ms
            assert not is_known, f"S1: {request} names broker {broker}, which is not registered"
        dead = not cluster.model.brokers[broker].alive and broker not in intent.expected
        since_ms = cluster.now_ms - cluster.died_ms.get(broker, 0)
        limit_ms = RACE_MS + cluster.model.session_timeout_ms
        assert not dead or since_ms <= limit_ms, f"S1: {request} adds broker {broker}, dead for {since_ms} ms"


def is_touched(cluster: SimulatedCluster, life: "Life") -> bool:
    """Whether others have meddled since the reassignment began, or so shortly before that it went unseen.

    An owner that saw no List while another's move went on may take the list of that move, which old metadata still
    shows, for the present one: the owner that accepts it, or one that intends a call.
    """
    touched_ms = cluster.touched_ms.get(life.key)
    if life.touched or (touched_ms is not None and touched_ms >= life.began_ms - RACE_MS):
        return True
    over_ms, seen_by = cluster.moves_over.get(life.key, (None, frozenset()))
    if over_ms is None or over_ms < life.began_ms - RACE_MS:
        return False
    owners = {life.epoch, None if life.intent is None else life.intent.epoch} - {None}
    return not owners <= seen_by


def s2_the_envelope_holds(cluster: SimulatedCluster, life: "Life", after: Partition) -> None:
    """S2: replicas are always among original and target, and never fewer than the smaller of both.

    Unregistered brokers do not count.
    """
    original, target = life.original, life.target
    assert set(after.replicas) <= {*original, *target}, f"S2: {life.key}: {after} of {life}"
    least = min(len(original), len(target)) - len({*original, *target} & cluster.unregistered_ms.keys())
    assert len(after.replicas) >= least, f"S2: {life.key}: {after} of {life}"


def s2_swaps_take_little_room(
    cluster: SimulatedCluster, steppings: set[Stepping], most_added: int, life: "Life", after: Partition
) -> None:
    """S2: by swaps a list is longer than both ends only by what one step may add.

    Where brokers have died a dead member of the target takes no room, and may return later.
    """
    if steppings != {Stepping.SWAP} or cluster.died_ms:
        return
    key = life.key
    most = max(len(life.original), len(life.target)) + max(most_added, cluster.model.min_isr(key.topic))
    assert len(after.replicas) <= most, f"S2: {key}: {after} of {life}"


def s3_min_isr_is_kept(checker: "Checker", cluster: SimulatedCluster, request: AlterRequest) -> None:
    """S3: no call takes a partition below min.insync.replicas that was not below, unless the ISR has just changed."""
    key = request.partition
    before, after = checker.seen.get((cluster.name, key)), cluster.model.partition(key)
    if before is None or after is None or before is after:
        return
    min_isr = cluster.model.min_isr(key.topic)
    harmed = len(after.isr) < min(min_isr, len(after.replicas)) and len(before.isr) >= min_isr
    recent = cluster.now_ms - checker.isr_changed_ms.get((cluster.name, key), 0) <= RACE_MS
    assert not harmed or recent, f"S3: {request} leaves {after.isr} in sync of {before.isr}"
    assert not after.recovering or before.recovering, f"S3: {request} made an unclean leader"


def s4_racks_are_kept(
    cluster: SimulatedCluster,
    steppings: set[Stepping],
    life: "Life",
    before: Partition | None,
    after: Partition,
) -> None:
    """S4: on the way a partition is never in fewer racks than at either end.

    Where Kafka waits for the whole target of a step, what is out of sync and on its way out goes with the first step,
    and its rack with it. With swaps the dead and the out-of-sync go first in any case; a rack that went for that comes
    back with a copy, not with the next drop.

    The rack of an original that is given up goes with it: what is in sync decides which replica stays in its place. So
    does the rack of a broker without a registration, since Kafka refuses every list that names it.
    """

    if cluster.settings.traits.completion is Completion.TARGET:
        return
    if Stepping.SWAP in steppings and cluster.died_ms:
        return

    def racks(brokers: Iterable[int | None]) -> int:
        return len({cluster.model.brokers[broker].rack for broker in brokers if broker is not None})

    given_up = {*life.original} - {*after.replicas} if life.asked_back and not after.moving else set()
    gone = given_up | cluster.unregistered_ms.keys()
    needed = min(racks({*life.original} - gone), racks(life.target))
    if before is not None:
        needed = min(needed, racks({*before.replicas} - cluster.unregistered_ms.keys()))
    assert racks(after.replicas) >= needed, f"S4: {life.key}: {after.replicas} is in too few racks"


def s5_completed_means_there(
    checker: "Checker", cluster: SimulatedCluster, life: "Life", event: ReassignmentCompleted
) -> None:
    """S5: completed is said only of a partition that does not move and has the target's list, in its order.

    That is the order in which the list of brokers that should not lead puts it (X8): the one that was sent.
    """
    today = deprioritise(life.target, checker.leaders.listed(event.cluster, event.topic))
    assert event.replicas in {life.target, life.step, life.there, today}, f"S5: {event} is not the target of {life}"
    assert set(event.replicas) == set(life.target), f"S5: {event} is not the target of {life}"
    _is_settled(cluster, life, event.replicas, f"S5: {event}")


def s6_a_cluster_has_one_shard(settings: Settings, shard: int, event: AnyEvent) -> None:
    """S6: what happens to a cluster is written in its own shard, by that shard's owner, and nowhere else."""
    assert shard_of(event.cluster, settings.shards) == shard, f"S6: {event} in shard {shard}"


def s6_lives_do_not_overlap(checker: "Checker", event: ReassignmentCreated | ReassignmentAdopted) -> None:
    """S6: a partition is accepted again only after its reassignment has ended."""
    assert (event.cluster, event.key) not in checker.lives, f"S6: {event} while one is under way"


def s6_a_way_back_was_asked_for(cluster: SimulatedCluster, life: "Life", event: CallIntended) -> None:
    """S6: a cancel, or the order after it, is intended only if somebody asked for it, or a copy's broker has died."""
    died = {*(life.step or ())} & cluster.died_ms.keys()
    assert life.asked_back or died, f"S6: {event}, which nobody asked for"


def s6_the_right_cluster_is_called(checker: "Checker", cluster: SimulatedCluster) -> None:
    """S6: nothing is sent to a cluster of which the log has said for 1 s or more that it is another one."""
    since_ms, caller = checker.mismatched_ms.get(cluster.name), checker.world.caller
    assert caller is not None, "only a worker calls"
    assert caller.begun_ms is not None, "it has begun"
    known = since_ms is not None and caller.begun_ms - since_ms > CALL_START_MS
    assert not known, f"S6: a call to {cluster.name}, although another cluster answers"


def s6_each_call_has_an_intent(checker: "Checker", request: AlterRequest, intent: "Intent | None") -> None:
    """S6: each call has its own intent, durable under the caller's epoch, the same list, at most 1 s old."""
    assert intent is not None, f"S6: {request} without a durable intent"
    assert not intent.left, f"S6: {request} is sent twice for one intent"
    assert intent.replicas == request.replicas, f"S6: {request}, but {intent} was intended"
    age_ms = checker.world.now_ms - intent.durable_ms
    assert age_ms <= CALL_START_MS, f"S6: {request} leaves {age_ms} ms after its intent"


def s6_no_call_comes_late(request: AlterRequest, life: "Life | None", intent: "Intent") -> None:
    """S6: when a call arrives its reassignment is under way and nothing was intended since, by whoever owns it."""
    assert life is not None, f"S6: {request} arrives after the end of its reassignment"
    assert life.intent is intent, f"S6: {request} arrives after {life.intent} was intended"


def s7_indexes_agree(state: ClusterState) -> None:
    """S7: what the limits are held against is what one would count from the reassignments."""
    queued = {key for key, reassignment in state.reassignments.items() if not reassignment.in_flight}
    assert set(state.moves.pending) == queued, "S7: queued"
    assert set(state.moves.in_flight) == state.reassignments.keys() - queued, "S7: in flight"
    loads = Counter(broker for reassignment in state.reassignments.values() for broker in reassignment.load)
    assert state.moves.loads == loads, f"S7: {state.moves.loads} instead of {loads}"
    steps = [step for entry in state.reassignments.values() if (step := entry.weighing_step) is not None]
    slots = slots_taken(steps)
    assert state.moves.slots == slots, f"S7: {state.moves.slots} sixteenths of slots instead of {slots}"
    counted = (
        sum(len(step.adding) for step in steps),
        sum(len(step.adding) * (step.copy_bytes or 0) for step in steps),
        sum(step.moves_leader for step in steps),
    )
    known = (state.moves.copies_in_flight, state.moves.bytes_in_flight, state.moves.leader_steps)
    assert known == counted, f"S7: {known} copies, bytes and leaders in flight instead of {counted}"
    numbers = [reassignment.number for reassignment in state.reassignments.values()]
    assert numbers == sorted(numbers), "S7: reassignments are not in the order of acceptance"
    plans_agree(state)


def s21_rolled_back_means_the_original_list(
    checker: "Checker", cluster: SimulatedCluster, life: "Life", event: ReassignmentRolledBack
) -> None:
    """S21: after a rollback the original list is back in its order.

    What could not be brought back is named, and was given up for a reason; the originals that are there stand first, in
    their order.
    """
    there = tuple(broker for broker in life.original if broker in event.replicas)
    listed = checker.leaders.listed(event.cluster, event.topic)
    in_order = event.replicas[: len(there)] == there or event.replicas in {life.restoring, life.there, life.back}
    # Kafka takes no new order of a list with an unregistered broker.
    is_unsendable = not cluster.unregistered_ms.keys().isdisjoint((*event.replicas, *event.missing))
    assert in_order or listed or is_unsendable, f"S21: {event} is not in the order of {life}"
    lacking = {*life.original} - {*there}
    assert lacking <= {*event.missing} <= {*life.original}, f"S21: {event} does not name what {life} lacks"
    # X9: what is sent back is the original as the list of brokers that should not lead orders it at that moment.
    orders = {life.original, life.restoring, life.there, life.back, deprioritise(life.original, listed)}
    assert event.replicas in orders or event.missing, f"S21: {event} is not the original of {life}"
    for broker in event.missing:
        # R46-1: a report alone gives nobody up.
        assert broker in cluster.died_ms or life.touched, f"S21: {event} gives up {broker}, which never died"
    if _is_settled(cluster, life, event.replicas, f"S21: {event}"):
        # S8: what a dead broker holds of it goes when it returns.
        leftovers = set(cluster.model.stored_bytes(event.key)) - {*event.replicas, *event.missing}
        assert not leftovers, f"S8: {event} left bytes on {leftovers}"


def s21_stopped_means_the_confirmed_list(cluster: SimulatedCluster, life: "Life", event: ReassignmentStopped) -> None:
    """S21: after a stop nothing moves, and the list is the one that the confirmed steps had made."""
    _is_settled(cluster, life, event.replicas, f"S21: {event}")


def s9_no_new_incarnation_is_touched(cluster: SimulatedCluster, request: AlterRequest, life: "Life") -> None:
    """S9: no call reaches a topic that was made anew, but for one that was under way when that happened."""
    topic = cluster.model.topics.get(request.partition.topic)
    if topic is None or topic.topic_id == life.topic_id:
        return
    since_ms = cluster.now_ms - cluster.made_ms[request.partition.topic]
    assert since_ms <= RACE_MS, f"S9: {request} for a topic that was made anew {since_ms} ms ago"
    # What it does there is seen as somebody else's change.
    cluster.touched_ms[request.partition] = cluster.now_ms


def s9_the_end_of_a_topic_is_named(
    cluster: SimulatedCluster,
    life: "Life",
    event: ReassignmentCompleted | ReassignmentRolledBack | ReassignmentStopped | ReassignmentFailed,
    decided_ms: int,
) -> None:
    """S9: a reassignment whose topic was made anew, longer ago than can go unseen, ends as gone and not otherwise."""
    topic = cluster.model.topics.get(life.key.topic)
    if topic is None or topic.topic_id == life.topic_id:
        return
    # What ends in the moment in which that was asked for ends without a look: nothing of it is in the cluster.
    unsent = isinstance(event, ReassignmentRolledBack | ReassignmentStopped) and not event.started
    seen = life.asked_ms != cluster.now_ms and not unsent
    if seen and decided_ms - cluster.made_ms[life.key.topic] > RACE_MS:
        gone = isinstance(event, ReassignmentFailed) and event.why is FailureReason.PARTITION_GONE
        assert gone, f"S9: {event} of a topic that was made anew"


def s10_throttles_are_put_back(checker: "Checker", name: str) -> None:
    """S10: when the ledger is empty every broker and every topic has the throttles that it would have without us."""
    cluster = checker.world.clusters[name]
    fold = checker.folds[shard_of(name, checker.world.settings.shards)]
    state = fold.state.clusters.get(name)
    if state is None or state.broker_throttles or state.topic_throttles:
        return
    for broker, wanted in cluster.wanted_configs.items():
        found = cluster.model.brokers[broker].configs
        is_right = cluster.may_be_left(broker) or (name, broker) in checker.overwritten
        is_right = is_right or broker in cluster.unregistered_ms
        assert is_right, f"S10: broker {broker}: {found}, not {wanted}"
    for topic, known in cluster.model.topics.items():
        left = known.configs.keys() - {"min.insync.replicas"}
        assert not any(known.configs[key] for key in left), f"S10: {topic}: {known.configs}"


def s10_no_throttle_of_others_is_touched(checker: "Checker", cluster: SimulatedCluster, change: ThrottleChange) -> None:
    """S10: a rate that others set is overwritten only if set just before Drover decided to write, or since then.

    Kafka compares nothing when it sets a rate, and a write whose answer was lost is repeated as it was intended.
    """
    if not isinstance(change, SetBrokerRates):
        return
    edited_ms = cluster.edited_ms.get(change.broker)
    intended_ms = checker.throttles.intended_ms[cluster.name, change.broker]
    if edited_ms is not None and edited_ms >= intended_ms - RACE_MS:
        checker.overwritten.add((cluster.name, change.broker))


def s10_a_step_starts_behind_its_throttle(
    checker: "Checker", cluster: SimulatedCluster, life: "Life", intent: "Intent"
) -> None:
    """S10: when a throttled step is sent, each broker it copies to has a rate and each copy its entry in the list."""
    state = checker.folds[shard_of(cluster.name, checker.world.settings.shards)].state.clusters[cluster.name]
    topic = cluster.model.topics.get(life.key.topic)
    ledger = state.topic_throttles.get(life.key.topic)
    if intent.replicas is None or not intent.throttled or life.touched or topic is None or (ledger and ledger.left):
        return
    if cluster.now_ms - checker.throttles.taken_away_ms.get(cluster.name, -RACE_MS) <= 2 * RACE_MS:
        return
    listed = parse_throttled(topic.configs)
    for broker in intent.replicas:
        known = cluster.model.brokers.get(broker)
        if broker in intent.expected or known is None or not known.alive or broker in cluster.edited_ms:
            continue
        died_ms = cluster.died_ms.get(broker)
        if (died_ms is not None and cluster.now_ms - died_ms <= 2 * RACE_MS) or topic.topic_id != life.topic_id:
            continue
        assert parse_rates(known.configs).follower_bytes_per_second is not None, f"S10: {intent}: no rate on {broker}"
        assert f"{life.key.partition}:{broker}" in listed.follower, f"S10: {intent}: {broker} is not in {listed}"


def s11_nobody_is_overwritten(cluster: SimulatedCluster, request: AlterRequest, life: "Life") -> None:
    """S11: what moves is not sent elsewhere; only Drover's own move is cancelled, or one that can never end."""
    partition, touched_ms = cluster.model.partition(request.partition), cluster.touched_ms.get(request.partition)
    if touched_ms is not None and cluster.now_ms - touched_ms <= RACE_MS:
        life.touched = True
        cluster.touched_ms[request.partition] = cluster.now_ms
        return
    if partition is None or not partition.moving:
        return
    moving_to = tuple(broker for broker in partition.replicas if broker not in partition.removing)
    if request.replicas is None:
        never_ends = set(partition.adding) & set(partition.removing)
        # What was sent back is cancelled where an original dies meanwhile, which Kafka would wait for.
        assert moving_to in {life.step, life.restoring, life.late} or never_ends, (
            f"S11: {request} cancels a move to {moving_to}, ours goes to {life.step}"
        )
    else:
        assert life.touched, f"S11: {request} while the partition moves to {moving_to}"


def s11_nothing_moves_unasked(
    cluster: SimulatedCluster, key: TopicPartition, before: Partition | None, after: Partition
) -> None:
    """S11: the replicas of a partition that Drover does not move are changed by others only."""
    if before is None or before.replicas == after.replicas or key in cluster.touched_ms:
        return
    made_now = cluster.now_ms == cluster.made_ms[key.topic]
    assert made_now, f"S11: {key} went from {before.replicas} to {after.replicas}, which nobody asked for"


def s11_failed_means_others_did_it(
    checker: "Checker", cluster: SimulatedCluster, life: "Life", event: ReassignmentFailed
) -> None:
    """S11: a reassignment fails only because of what others did, or because Kafka refused it; it says why."""
    assert event.detail, f"S11: {event} says nothing"
    topic = cluster.model.topics.get(event.topic)
    anew = topic is None or topic.topic_id != life.topic_id
    others = is_touched(cluster, life)
    refused = event.why.value == "refused-by-kafka"
    assert anew or others or refused or event.topic in cluster.made_ms, f"S11: {event}, but nobody touched it"


def s12_nothing_starts_while_frozen(checker: "Checker", event: CallIntended | StepPrepared) -> None:
    """S12: no step is begun in a frozen cluster (R236-9)."""
    assert event.cluster not in checker.frozen, f"S12: {event} while frozen"


def s20_one_call_at_a_time(life: "Life", event: CallIntended) -> None:
    """S20: the end of a call, or that nobody knows it, is in the log before the next call about that partition."""
    assert not life.open, f"S20: {event} while {life.intent} is open"


def _is_settled(cluster: SimulatedCluster, life: "Life", replicas: tuple[int, ...], what: str) -> bool:
    """Whether the cluster shows this list and no move; what others did lately may have undone it."""
    key = life.key
    topic, partition = cluster.model.topics.get(key.topic), cluster.model.partition(key)
    if is_touched(cluster, life):
        return False
    if topic is None or partition is None or topic.topic_id != life.topic_id:
        return False
    assert partition.replicas == replicas, f"{what}, but there is {partition}"
    assert not partition.moving, f"{what}, but it moves: {partition}"
    return True
