"""The list of brokers while the cluster that is meant does not answer: nobody is kept busy by it."""

from drover.reconcile.contract import Urgency
from tests.leadership.support import LISTS, demote, world
from tests.shard.world import CLUSTER, World


def nobody_is_woken_at_once(made: World) -> bool:
    due_ms = made.core.wake_at_ms(made.now)
    return due_ms is None or due_ms > made.now.monotonic_ms


async def test_a_broker_leaves_the_list_in_its_time_although_no_cluster_has_answered_yet() -> None:
    made = World()
    made.model.create_topic("t", LISTS)
    await made.send(demote(3, for_ms=1000))
    assert made.state.kafka_cluster_id is None
    made.model.advance(2000)
    await made.settle()
    assert not made.state.blacklist
    assert nobody_is_woken_at_once(made)


async def test_a_broker_leaves_the_list_in_its_time_although_another_cluster_answers() -> None:
    made = world()
    await made.send(demote(3, for_ms=5000))
    await made.run(1000)
    made.model.kafka_cluster_id = "another"
    await made.run(6000)
    assert made.state.mismatched_kafka_cluster_id == "another"
    assert not made.state.blacklist
    assert nobody_is_woken_at_once(made)


async def test_another_cluster_is_asked_who_it_is_and_for_nothing_else() -> None:
    made = world()
    await made.send(demote(3))
    await made.run(1000)
    made.model.kafka_cluster_id = "another"
    await made.run(6000)
    made.crash()
    await made.send(demote(2))
    await made.settle()
    attention = made.core.cluster(CLUSTER).attention(made.now, {})
    assert attention.urgency is not Urgency.BUSY
    assert not attention.partitions
    assert not attention.survey
    assert not attention.is_pressing
    assert nobody_is_woken_at_once(made)
    made.model.kafka_cluster_id = "simulated-cluster"
    await made.run(3000)
    assert made.state.mismatched_kafka_cluster_id is None
    assert made.replicas(next(iter(made.state.orders)))[-1] in {2, 3}
