"""What a broker is, by what Kafka shows of it."""

import pytest

from drover.brokers import Brokers, BrokerStanding, unreachable_brokers
from drover.cluster.port import AlterRequest
from drover.events.partitions import TopicPartition
from drover.facts import INVALID_REPLICA_ASSIGNMENT, NONE, CallResult, Observation, PartitionFacts, Survey
from drover.inventory import RegisteredBroker
from drover.reconcile.observations import ObservationCache
from drover.testing.model import ClusterModel
from drover.testing.simulated import SimulatedDriver
from drover.traits import LATEST, known_traits

KEY, OTHER = TopicPartition("t", 0), TopicPartition("t", 1)
UNREGISTERED = CallResult(
    INVALID_REPLICA_ASSIGNMENT,
    "The manual partition assignment includes broker 1, but no such broker is registered.",
)


def led(leader: int | None, isr: tuple[int, ...], *, lacks_listener: bool = False) -> PartitionFacts:
    """A partition on brokers 1 to 3, led by one of them or by none that is seen."""
    return PartitionFacts("id", leader, (1, 2, 3), isr, leader_lacks_listener=lacks_listener)


def model_of_three(kafka: str = "4.3") -> ClusterModel:
    """Four brokers; t:0 is led by broker 1, t:1 by broker 2."""
    traits = LATEST if kafka == LATEST.kafka else known_traits(kafka)
    model = ClusterModel(dict.fromkeys((1, 2, 3, 4)), traits=traits)
    model.create_topic("t", {0: (1, 2, 3), 1: (2, 3, 1)})
    return model


async def cache_of(driver: SimulatedDriver) -> ObservationCache:
    """What an owner knows after one survey."""
    observed = ObservationCache()
    observed.see_survey(await driver.survey())
    return observed


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        (led(1, (1, 2, 3)), {3}),
        (led(1, (1, 2)), set()),
        (led(None, (3,)), set()),
        (led(None, (3,), lacks_listener=True), {3}),
        (led(None, (3, 1), lacks_listener=True), {3}),
        (None, set()),
    ],
    ids=[
        "in the ISR of another",
        "out of sync",
        "last of an ISR that nobody leads",
        "leads alone",
        "leads",
        "no topic",
    ],
)
def test_a_broker_that_is_not_listed_lives_if_it_is_in_sync_where_somebody_leads(
    facts: PartitionFacts | None, expected: set[int]
) -> None:
    assert unreachable_brokers((1, 2), [facts]) == expected


def test_each_broker_has_one_standing() -> None:
    brokers = Brokers(frozenset({1, 2}), frozenset({3}), frozenset({1, 2, 4}))
    assert [brokers.standing(number) for number in (1, 3, 4, 5)] == [
        BrokerStanding.ALIVE,
        BrokerStanding.UNREACHABLE,
        BrokerStanding.GONE,
        BrokerStanding.UNREGISTERED,
    ]
    assert brokers.dead((5, 4, 3, 1)) == (5, 4)
    assert brokers.unregistered((5, 4, 3, 1)) == (5,)
    assert Brokers(frozenset({1})).standing(5) is BrokerStanding.GONE


async def test_a_broker_without_the_listener_is_not_listed_and_what_it_leads_shows_no_leader() -> None:
    model = model_of_three()
    driver = SimulatedDriver(model)
    model.hide_listener(1)
    survey = await driver.survey()
    assert survey.live_brokers == (2, 3, 4)
    assert survey.registered_brokers == frozenset({2, 3, 4})
    assert survey.partitions[KEY].leader is None
    assert survey.partitions[KEY].leader_lacks_listener
    assert survey.partitions[OTHER].leader == 2
    inventory = await driver.inventory()
    assert inventory.brokers[1] == RegisteredBroker(1, None, is_alive=False, is_unreachable=True)
    assert inventory.standings.standing(1) is BrokerStanding.UNREACHABLE
    assert (await cache_of(driver)).brokers.standing(1) is BrokerStanding.UNREACHABLE


async def test_an_unlisted_broker_that_dies_is_gone_after_the_next_survey_and_not_unregistered() -> None:
    model = model_of_three()
    driver = SimulatedDriver(model)
    model.hide_listener(1)
    observed = await cache_of(driver)
    model.stop_broker(1)
    observed.see(await driver.observe([OTHER]))
    assert observed.brokers.standing(1) is BrokerStanding.UNREACHABLE
    observed.see_survey(await driver.survey())
    assert observed.brokers.standing(1) is BrokerStanding.GONE


async def test_an_unregistered_broker_is_refused_even_in_the_present_list() -> None:
    model = model_of_three()
    driver = SimulatedDriver(model)
    model.stop_broker(1)
    assert (await cache_of(driver)).brokers.standing(1) is BrokerStanding.GONE
    model.unregister(1)
    observed = await cache_of(driver)
    assert observed.brokers.standing(1) is BrokerStanding.UNREGISTERED
    assert (await driver.inventory()).standings.standing(1) is BrokerStanding.UNREGISTERED
    assert (await driver.alter([AlterRequest(KEY, (1, 2, 3))]))[KEY] == UNREGISTERED
    assert (await driver.alter([AlterRequest(KEY, (2, 3))]))[KEY].code == NONE
    model.start_broker(1)
    observed.see(await driver.observe([KEY]))
    assert observed.brokers.standing(1) is BrokerStanding.ALIVE
    model.stop_broker(1)
    observed.see(await driver.observe([KEY]))
    assert observed.brokers.standing(1) is BrokerStanding.GONE


async def test_before_kafka_4_nobody_says_who_is_registered() -> None:
    model = model_of_three("3.9")
    driver = SimulatedDriver(model)
    model.stop_broker(1)
    model.unregister(1)
    assert (await driver.survey()).registered_brokers is None
    assert (await cache_of(driver)).brokers.standing(1) is BrokerStanding.GONE


def test_an_observation_shows_that_an_unlisted_broker_lives_and_only_a_survey_that_it_does_not() -> None:
    observed = ObservationCache()
    observed.see(Observation("prod", "k", 0, 0, (1, 2), partitions={KEY: led(1, (1, 2, 3))}))
    assert observed.unreachable == {3}
    observed.see(Observation("prod", "k", 1, 1, (1, 2), partitions={KEY: led(1, (1, 2))}))
    assert observed.unreachable == {3}
    observed.see_survey(Survey("prod", "k", 2, 2, (1, 2), {KEY: led(1, (1, 2))}))
    assert observed.unreachable == frozenset()


def test_an_unlisted_broker_that_is_listed_again_is_alive() -> None:
    observed = ObservationCache()
    observed.see_survey(Survey("prod", "k", 0, 0, (1, 2), {KEY: led(1, (1, 2, 3))}))
    observed.see_live((1, 2, 3), 1)
    assert observed.brokers == Brokers(frozenset({1, 2, 3}))
