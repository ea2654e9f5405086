"""Whatever is asked for and however it ends, each plan counts what is there of it, and comes to rest."""

from collections.abc import Iterable
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from drover.decide.cancellation import succession
from drover.decide.commands import decide
from drover.decide.queue_entries import take
from drover.events.commands import Alter, Cancel
from drover.events.partitions import TopicPartition
from drover.events.reassignments import (
    FailureReason,
    ReassignmentCompleted,
    ReassignmentFailed,
    ReassignmentRolledBack,
    ReassignmentStopped,
)
from drover.events.records import AnyEvent
from drover.fold.evolve import apply
from drover.fold.plans import Ending
from drover.reconcile.gates import entry_passed_over
from drover.state.cluster import ClusterState
from tests.reassignment.support import CLUSTER, accepted, alter, cancel, facts, intended, sight
from tests.simulation.counting import plans_agree

KEYS = tuple(TopicPartition("orders", number) for number in range(3))
keys = st.sampled_from(KEYS)
lists = st.sampled_from([(1, 2, 3), (4, 2, 1), (5, 2, 1), (3, 2, 1), (4, 5, 6)])
plans = st.sampled_from(["p", "q", "r"])
targets = st.dictionaries(keys, st.one_of(lists, lists, lists, st.none()), min_size=1)
altering = st.tuples(st.just("alter"), targets, plans, st.booleans())
cancelling = st.tuples(
    st.just("cancel"), st.sampled_from(["rollback", "stop"]), st.one_of(keys, plans, st.just(None), st.just("queued"))
)
ending = st.tuples(st.just("end"), keys, st.sampled_from(["completed", "rolled back", "stopped", "failed"]))
beginning = st.tuples(st.just("begin"), keys)
taking = st.tuples(st.just("take"), keys)
whatever = st.lists(st.one_of(altering, altering, cancelling, ending, beginning, taking), max_size=25)


class Ledger:
    """A state under hypothesis' commands; `replicas` is what the cluster would show."""

    def __init__(self) -> None:
        self.state = ClusterState(CLUSTER)
        self.replicas: dict[TopicPartition, tuple[int, ...]] = dict.fromkeys(KEYS, (1, 2, 3))

    def act(self, action: tuple[object, ...]) -> None:
        match action:
            case ("alter", dict() as asked, str() as plan, bool() as queue):
                self.decide(alter(asked, plan=plan, queue=queue, id=f"{plan}-alter"))
            case ("cancel", str() as mode, None):
                self.decide(cancel(mode=mode, all=True))
            case ("cancel", str() as mode, TopicPartition() as key):
                self.decide(cancel(key, mode=mode))
            case ("cancel", str() as mode, "queued"):
                self.decide(cancel(mode=mode, queued="p-alter"))
            case ("cancel", str() as mode, str() as plan):
                self.decide(cancel(mode=mode, plan=plan))
            case ("end", TopicPartition() as key, str() as how) if key in self.state.reassignments:
                self.end(key, how)
            case ("begin", TopicPartition() as key) if key in self.state.moves.pending:
                moving = self.state.reassignments[key]
                self.fold([intended(moving.original, moving.target, key=key), accepted(key=key)])
            case ("take", TopicPartition() as key) if key in self.state.queue:
                self.take(key)
            case _:
                pass
        plans_agree(self.state)

    def decide(self, command: Alter | Cancel) -> None:
        seen = facts({key: sight(replicas) for key, replicas in self.replicas.items()})
        self.fold(decide(command, self.state, seen).events)

    def take(self, key: TopicPartition) -> None:
        if entry_passed_over(key, self.state) is None:
            self.fold(take(key, self.state, facts({key: sight(self.replicas[key])})))

    def end(self, key: TopicPartition, how: str) -> None:
        moving = self.state.reassignments[key]
        name: dict[str, Any] = {"cluster": CLUSTER, "topic": key.topic, "partition": key.partition}
        event: Ending
        match how:
            case "completed":
                self.replicas[key] = moving.target
                event = ReassignmentCompleted(**name, replicas=moving.target)
            case "rolled back":
                event = ReassignmentRolledBack(**name, replicas=moving.original)
            case "stopped":
                event = ReassignmentStopped(**name, replicas=moving.original)
            case _:
                gone = FailureReason.PARTITION_GONE
                event = ReassignmentFailed(**name, why=gone, detail="d", replicas=())
        following = succession(moving, event, CLUSTER)
        self.fold([*following.before, event, *following.after])

    def fold(self, events: Iterable[AnyEvent]) -> None:
        for event in events:
            apply(self.state, event, 2000)


@given(whatever)
def test_every_plan_counts_what_is_there_and_comes_to_rest(actions: list[tuple[object, ...]]) -> None:
    """R236-12, R455-8."""
    ledger = Ledger()
    for action in actions:
        ledger.act(action)
    for _ in range(3):
        for key in KEYS:
            ledger.act(("begin", key))
            ledger.act(("end", key, "completed"))
            ledger.act(("take", key))
    for key in KEYS:
        ledger.act(("end", key, "completed"))
    assert not ledger.state.queue
    assert not ledger.state.reassignments
    assert all(plan.is_idle for plan in ledger.state.plans.values())
