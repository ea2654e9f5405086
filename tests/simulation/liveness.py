"""What must be true in the end: after healing everything ends, or says what it waits for (L1 to L8)."""

from collections.abc import Mapping
from dataclasses import dataclass

from drover.events.codec import decode_command
from drover.events.commands import HoldBroker, PausePlan
from drover.events.partitions import TopicPartition
from drover.fold.log import ShardFold
from drover.reconcile.gates import entry_passed_over, queue_closed
from drover.state.cluster import ClusterState
from drover.state.phase import Phase
from drover.state.plans import PlanStatus
from drover.state.reassignment import Reassignment
from tests.simulation import leader_rules
from tests.simulation.actions import perform
from tests.simulation.log_rules import full_hash
from tests.simulation.throttle_rules import RatesInForce
from tests.simulation.world import World

HEAL_MS = 120_000
# The minute over which an owner looks at sizes, and half of that for the start of the healing and of the minute.
NOTICED_MS = 90_000
# In worlds in which others delete throttles, they do so once more when everything works again.
DELETED_MS = 12_000


@dataclass(frozen=True, slots=True)
class _Best:
    """The moment at which a copy lacked least, and how large the leader was."""

    at_ms: int
    leader_bytes: int
    lack: int


Known = Mapping[tuple[str, TopicPartition, int], _Best]


def heal(world: World) -> None:
    """Stop every fault; brokers that are dead come back, or in some worlds stay dead for good. Then let time pass."""
    for cluster in world.clusters.values():
        cluster.heal(brokers=world.settings.heals_brokers)
    for worker in list(world.workers):
        if worker.paused:
            world.resume(worker)
    while len(world.workers) < world.settings.workers:
        world.start_worker()
    for name in world.settings.names:
        perform(
            world, ("unfreeze", {"id": f"heal-{name}", "cluster": name, "by": "ana", "reason": "healed", "all": True})
        )
        if world.settings.adapts_to_health and not world.settings.heals_brokers:
            # What stays dead may leave partitions below min.insync.replicas, and then nothing would begin any more.
            switch = {"id": f"adapt-{name}", "cluster": name, "by": "ana", "reason": "healed"}
            perform(world, ("limits", {**switch, "values": {"adapts_to_health": False}}))
    _end_pauses_and_holds(world)
    world.rebalance()
    copies, in_force = Copies(), RatesInForce()
    idle_ms, settling_ms, leading = 0, 0, leader_rules.leading(world)
    deletes_throttles = world.settings.rates.get("throttles", 0) > 0
    # Their partitions are large: copies last until somebody deletes their throttles, and one may follow another.
    for elapsed_ms in range(0, HEAL_MS * (8 if deletes_throttles else 1), 1000):
        if elapsed_ms == DELETED_MS and deletes_throttles:
            for name in world.settings.names:
                perform(world, ("delete-rates", name))
        world.run(1000)
        _sample(world)
        copies.l6_a_copy_that_cannot_catch_up_is_named(world)
        in_force.s10_what_is_deleted_is_put_back(world)
        # A listing whose time is over, or an election by Kafka, gives the leaders something to do again.
        before, leading = leading, leader_rules.leading(world)
        idle_ms = idle_ms + 1000 if world.is_idle and leading == before else 0
        # What a late call may still do is waited for, and leaders are tried again some time after that.
        settling_ms = max(settling_ms, leader_rules.settles_within_ms(world)) if idle_ms else 0
        if idle_ms and (idle_ms > settling_ms or not leader_rules.is_active(world)):
            break
    for projector in world.projectors:
        projector.project(1_000_000, dies=False)


def _end_pauses_and_holds(world: World) -> None:
    """Resume every plan that somebody paused, decided or not, and release every broker."""
    for number, (_, payload) in enumerate(tuple(world.sent)):
        asked = decode_command(payload)
        if not isinstance(asked, PausePlan | HoldBroker):
            continue
        fields = {"id": f"heal-{number}", "cluster": asked.cluster, "by": "ana", "reason": "healed"}
        if isinstance(asked, PausePlan):
            perform(world, ("resume-plan", {**fields, "plan": asked.plan}))
        else:
            perform(world, ("release-broker", {**fields, "broker": asked.broker}))


def _sample(world: World) -> None:
    """Let every owner read the sizes of what is being copied."""
    for shard in world.ready():
        for name in world.settings.names if shard.core.owned else ():
            shard.sample(name)


class Copies:
    """How long each copy has lacked as much as ever, by what the brokers really hold."""

    def __init__(self) -> None:
        self._best: dict[tuple[str, TopicPartition, int], _Best] = {}

    def l6_a_copy_that_cannot_catch_up_is_named(self, world: World) -> None:
        """L6: a throttled copy whose leader outgrows it is blocked soon; nothing else is done about it."""
        before, self._best = self._best, {}
        for fold in world.checker.folds:
            for state in fold.state.clusters.values():
                for reassignment in state.reassignments.values():
                    step = reassignment.step
                    rate = state.rate_of(reassignment.plan)
                    if step is not None and reassignment.phase is Phase.COPYING and rate is not None:
                        for broker in step.adding:
                            self._judge(world, reassignment, (state.name, reassignment.key, broker), before)

    def _judge(
        self, world: World, reassignment: Reassignment, place: tuple[str, TopicPartition, int], before: "Known"
    ) -> None:
        name, key, broker = place
        model = world.clusters[name].model
        partition, held = model.partition(key), model.replication.stored_bytes(key)
        if partition is None or partition.leader not in held or broker not in held or broker in partition.isr:
            return
        leader_bytes = held[partition.leader]
        now = _Best(world.now_ms, leader_bytes, leader_bytes - held[broker])
        best = before.get(place, now)
        self._best[place] = now if now.lack < best.lack else best
        if now.at_ms - best.at_ms > NOTICED_MS and now.lack >= best.lack and leader_bytes > best.leader_bytes:
            assert reassignment.block is not None, f"L6: {place} cannot catch up, and nothing says so"


def check_the_end(world: World) -> None:
    """Check every promise about the end, and once more the whole log from its first record."""
    for cluster in world.clusters.values():
        for fold in world.checker.folds:
            state = fold.state.clusters.get(cluster.name)
            if state is not None:
                l1_everything_ends_or_is_blocked(world, state)
                s10_the_ledger_is_empty_in_the_end(world, state)
                leader_rules.l8_leaders_are_where_they_belong(world, cluster, state)
    l2_every_shard_is_owned(world)
    l5_no_outcome_is_owed(world)
    l7_the_view_has_caught_up(world)
    world.checker.healing.check_the_end()
    world.checker.full_check()
    s14_a_replay_agrees(world)


def l1_everything_ends_or_is_blocked(world: World, state: ClusterState) -> None:
    """L1, L3, L4, L8: what has not ended names its reason, or waits for what is blocked, or for replicas in sync."""
    blocked = [entry for entry in state.reassignments.values() if entry.in_flight and entry.block is not None]
    is_short = world.clusters[state.name].is_short_of_replicas
    for reassignment in state.reassignments.values():
        suspended = is_short and state.is_suspended(reassignment.key)
        may_wait = reassignment.phase in {Phase.PENDING, Phase.CONFIRMED} and (bool(blocked) or suspended)
        assert reassignment.block is not None or may_wait, f"L1: {reassignment} waits for no reason"
        if reassignment.block is not None:
            assert reassignment.block.detail, f"L8: {reassignment} does not say what would unblock it"
    for key, entry in state.queue.items():
        waits = queue_closed(state) or entry_passed_over(key, state)
        assert state.reassignments or state.unmanaged, f"L1: {key}: {entry} waits for {waits or 'nothing'}"
    for plan in state.plans.values():
        if plan.status is PlanStatus.OPEN:
            assert not plan.is_idle, f"L1: {plan} has nothing left and is open"


def s10_the_ledger_is_empty_in_the_end(world: World, state: ClusterState) -> None:
    """S10: with nothing under way, no throttle of Drover's is left on any topic or living broker."""
    if state.reassignments:
        return
    assert not state.topic_throttles, f"S10: {state.topic_throttles} are left"
    living = world.clusters[state.name].model.live_brokers()
    left = {broker: throttle for broker, throttle in state.broker_throttles.items() if broker in living}
    assert not left, f"S10: {left} are left"


def l2_every_shard_is_owned(world: World) -> None:
    """L2: each shard has an owner who holds the current token, and has decided every command."""
    for number in range(world.settings.shards):
        owners = [worker for worker in world.workers if worker.shards[number].holds_token]
        assert len(owners) == 1, f"L2: shard {number} is owned by {[worker.name for worker in owners]}"
        undecided = owners[0].shards[number].next_offsets, world.commands.ends(number)
        assert undecided[0] == undecided[1], f"L2: shard {number} has decided up to {undecided[0]} of {undecided[1]}"


def l5_no_outcome_is_owed(world: World) -> None:
    """L5: no call's outcome is still unknown."""
    assert not world.calls, "L5: a call never ends"
    for place, life in world.checker.lives.items():
        assert not life.open, f"L5: {place}: nobody knows what became of {life.intent}"


def l7_the_view_has_caught_up(world: World) -> None:
    """L7: the view shows the end of the log."""
    assert all(projector.lag == 0 for projector in world.projectors), "L7: the view is behind"


def s14_a_replay_agrees(world: World) -> None:
    """S14: a replay from the first record passes through every state that anybody was in."""
    for shard, records in enumerate(world.log.shards):
        fold, hashes = ShardFold(shard, world.settings.shards), world.checker.hashes[shard]
        for offset, payload in enumerate(records):
            fold.fold(offset, payload)
            expected = hashes.get(offset + 1)
            if expected is not None:
                found = full_hash(fold.state, world.settings.names)
                assert found == expected, f"S14: shard {shard} replayed differs at offset {offset + 1}"
