"""The contract between a shard's core and its shell: what to look at, and when a call may be made."""

import pytest

from drover.events.partitions import TopicPartition
from drover.events.plans import PlanCancelled
from drover.events.reassignments import ReassignmentRolledBack, RollbackRequested
from drover.facts import Survey
from drover.reconcile.contract import Attention, Changes, Urgency, changes_by, merged
from drover.reconcile.messages import AlterPartitions
from drover.reconcile.starts.starter import Starter
from drover.shard.managed import SURVEY_AGAIN_MS
from drover.state.scheduling import Limits
from tests.leadership.support import demote
from tests.shard.world import CLUSTER, World, alter, rollback

FIRST, SECOND = TopicPartition("orders", 0), TopicPartition("orders", 1)


def test_what_capabilities_need_together_is_the_most_that_any_of_them_needs() -> None:
    asked = merged(
        (
            Attention(partitions=(FIRST,), due_ms=500, urgency=Urgency.WAITING),
            Attention(partitions=[FIRST, SECOND], survey=True, is_pressing=True),
            Attention(brokers=True, due_ms=300, urgency=Urgency.BUSY, owes=True),
        )
    )
    assert asked == Attention(
        partitions=frozenset({FIRST, SECOND}),
        survey=True,
        brokers=True,
        due_ms=300,
        urgency=Urgency.BUSY,
        is_pressing=True,
        owes=True,
    )
    assert merged(()) == Attention(partitions=frozenset())


def test_changes_name_each_partition_once_and_those_that_have_ended() -> None:
    closed = PlanCancelled(cluster=CLUSTER, plan="friday", by="ana", reason="test")
    first = RollbackRequested(cluster=CLUSTER, topic="orders", partition=0, by="ana", reason="test")
    second = RollbackRequested(cluster=CLUSTER, topic="orders", partition=1, by="ana", reason="test")
    ended = ReassignmentRolledBack(cluster=CLUSTER, topic="orders", partition=0, replicas=(1, 2, 3), started=False)
    changes = changes_by((closed, first, second, ended))
    assert (tuple(changes.partitions), tuple(changes.ended)) == ((FIRST, SECOND), (FIRST,))


async def test_no_call_is_made_before_its_intent_is_committed() -> None:
    made = World()
    made.model.create_topic("orders", {0: (1, 2, 3)})
    made.put(alter({FIRST: [4, 2, 3]}))
    arrivals = made.inbox.take(made.core.next_offsets)
    made.core.deliver(await made.driver.observe(made.core.facts_needed(arrivals)[CLUSTER], with_min_isr=True))
    proposed = made.core.propose(made.now, arrivals, {})
    assert proposed is not None
    assert made.core.effects(made.now) == ()
    made.append(proposed.payload)
    assert made.core.effects(made.now) == ()
    made.core.commit(proposed)
    (call,) = made.core.effects(made.now)
    assert isinstance(call, AlterPartitions)
    assert made.core.effects(made.now) == (), "each call is made once"


async def test_a_survey_without_an_answer_does_not_take_the_place_of_the_other_looks() -> None:
    made = World()
    made.model.create_topic("orders", {0: (3, 1, 2)})
    await made.run(500)
    await made.send(demote(3))
    cluster = made.core.cluster(CLUSTER)
    assert cluster.attention(made.now).survey
    cluster.survey_begins(made.now)
    assert not cluster.attention(made.now).survey
    made.model.advance(SURVEY_AGAIN_MS)
    assert cluster.attention(made.now).survey
    cluster.survey_begins(made.now)
    answer = await made.driver.survey()
    assert isinstance(answer, Survey)
    made.core.deliver(answer)
    await made.turn()
    await made.send(demote(2))
    assert cluster.attention(made.now).survey, "the one before was answered"


async def test_capabilities_follow_a_cancel_of_many_partitions_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made = World(limits=Limits(max_partitions_in_flight=1))
    keys = [TopicPartition("orders", number) for number in range(50)]
    made.model.create_topic("orders", {key.partition: (1, 2, 3) for key in keys})
    await made.freeze()
    await made.send(alter({key: [4, 2, 3] for key in keys}))
    runs: list[int] = []
    follow = Starter.follow

    def counted(starter: Starter, changes: Changes) -> None:
        runs.append(len(changes.ended))
        follow(starter, changes)

    monkeypatch.setattr(Starter, "follow", counted)
    await made.send(rollback(*keys))
    assert runs[0] == len(keys)
    assert not any(runs[1:])
    assert not made.state.reassignments
