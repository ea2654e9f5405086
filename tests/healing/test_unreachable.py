"""A broker that lives without the listener by which Drover connects is named, alarmed about, and never healed."""

from itertools import pairwise

from drover.client.views.broker_marks import broker_marks
from drover.client.views.heal_rows import heal_document, heal_lines
from drover.client.views.status_rows import notices
from drover.errors import ClusterUnavailableError
from drover.events.clusters import UnreachableBrokersChanged
from drover.events.healing import BrokerOutageAlarmed, BrokerOutageEnded, BrokerOutageNoted, HealPlanned, OutageEnd
from drover.reconcile.identity.reconciler import MISSING_MS, SURVEY_EVERY_MS
from drover.state.scheduling import Limits
from tests.healing.support import INTERVAL_MS, heal_to_the_end, healing_world, holders, told
from tests.shard.world import CLUSTER, World

REMEDY = "add that listener, or give Drover a bootstrap that all brokers offer"
NOTED = UnreachableBrokersChanged(cluster=CLUSTER, brokers=(3,))


async def test_an_unreachable_broker_is_named_and_keeps_its_replicas() -> None:
    world = healing_world()
    world.model.hide_listener(3)
    before = holders(world, 3)
    await world.run(5 * INTERVAL_MS)
    assert told(world, UnreachableBrokersChanged) == [NOTED]
    assert told(world, BrokerOutageNoted, BrokerOutageAlarmed, HealPlanned) == []
    assert holders(world, 3) == before
    assert [line for line in heal_lines(world.state) if REMEDY in line]
    assert [line for line in notices(world.state) if REMEDY in line]
    since_ms = world.state.unreachable_brokers[3]
    assert heal_document(world.state, world.now.wall_ms)["unreachable"] == [{"broker": 3, "since_ms": since_ms}]
    (mark,) = broker_marks(world.state, (1, 2, 3), "orders")
    assert (mark.broker, mark.mark, REMEDY in mark.why) == (3, "unreachable", True)


async def test_without_healing_an_unreachable_broker_is_named_all_the_same() -> None:
    world = World()
    world.model.create_topic("orders", {0: (1, 2, 3), 1: (2, 3, 1)})
    world.model.hide_listener(3)
    await world.run(30_000)
    assert told(world, UnreachableBrokersChanged) == [NOTED]


async def test_an_unreachable_broker_that_dies_is_gone_and_healed_once_its_time_has_come() -> None:
    world = healing_world()
    world.model.hide_listener(3)
    await world.run(30_000)
    world.model.stop_broker(3)
    died_ms = world.now.wall_ms
    await heal_to_the_end(world, 3, within_ms=MISSING_MS + INTERVAL_MS + 120_000)
    planned = [batch.at_ms for batch in world.batches() if any(isinstance(one, HealPlanned) for one in batch.events)]
    assert planned[0] - died_ms >= INTERVAL_MS
    assert told(world, UnreachableBrokersChanged)[-1].brokers == ()


async def test_an_absent_broker_that_comes_back_without_the_listener_is_not_healed_any_more() -> None:
    world = healing_world()
    await world.run(1000)
    world.model.stop_broker(3)
    await world.run(INTERVAL_MS // 2)
    assert 3 in world.state.absent_brokers
    world.model.hide_listener(3)
    world.model.start_broker(3)
    before = holders(world, 3)
    await world.run(MISSING_MS + 3 * INTERVAL_MS)
    assert told(world, BrokerOutageEnded) == [BrokerOutageEnded(cluster=CLUSTER, broker=3, why=OutageEnd.UNREACHABLE)]
    assert holders(world, 3) == before
    assert world.state.heal is None


async def test_a_broker_that_offers_the_listener_again_is_named_no_more() -> None:
    world = healing_world()
    world.model.hide_listener(3)
    await world.run(30_000)
    world.model.show_listener(3)
    await world.run(5000)
    assert told(world, UnreachableBrokersChanged) == [NOTED, UnreachableBrokersChanged(cluster=CLUSTER, brokers=())]
    assert world.state.unreachable_brokers == {}


async def test_a_new_owner_keeps_what_it_has_not_looked_at_itself() -> None:
    world = World(limits=Limits())
    world.model.create_topic("orders", {0: (1, 2, 3), 1: (2, 3, 1)})
    world.model.hide_listener(3)
    await world.run(30_000)
    world.crash()
    await world.run(40_000)
    assert told(world, UnreachableBrokersChanged) == [NOTED]


async def test_a_survey_follows_when_brokers_come_or_go_and_each_minute_while_one_is_missing() -> None:
    world = World()
    world.model.create_topic("orders", {0: (1, 2, 3)})
    surveys: list[int] = []
    survey = world.driver.survey

    async def counted() -> object:
        surveys.append(world.model.now_ms)
        return await survey()

    world.driver.survey = counted  # type: ignore[method-assign, assignment]
    await world.run(200_000)
    assert len(surveys) == 1
    world.model.stop_broker(3)
    await world.run(5 * MISSING_MS)
    assert 5 <= len(surveys) <= 7


async def test_a_survey_that_is_not_answered_does_not_take_the_place_of_every_other_look() -> None:
    world = World()
    world.model.create_topic("orders", {0: (1, 2, 3)})
    asked: list[int] = []

    async def unanswered() -> object:
        asked.append(world.model.now_ms)
        raise ClusterUnavailableError("it takes too long")

    world.driver.survey = unanswered  # type: ignore[method-assign, assignment]
    await world.run(100_000)
    assert 5 <= len(asked) <= 10
    assert min(later - before for before, later in pairwise(asked)) >= SURVEY_EVERY_MS
