"""The simulated driver's faults: what tests of everything above it rely on."""

import pytest

from drover.cluster.port import AlterRequest, SetBrokerRates
from drover.cluster.throttle_lists import rate_operations
from drover.errors import ClusterUnavailableError, OutcomeUnknownError
from drover.events.partitions import TopicPartition
from drover.facts import NOT_CONTROLLER, REQUEST_TIMED_OUT, BrokerRates, CallResult, ThrottledReplicas
from drover.testing.model import ClusterModel
from drover.testing.simulated import Loss, SimulatedDriver

PARTITION = TopicPartition("orders", 0)
REORDER = [AlterRequest(PARTITION, (3, 2, 1))]


@pytest.fixture
def driver() -> SimulatedDriver:
    model = ClusterModel(dict.fromkeys(range(1, 5)))
    model.create_topic("orders", {0: (1, 2, 3)})
    return SimulatedDriver(model)


def replicas(driver: SimulatedDriver) -> tuple[int, ...]:
    state = driver.model.partition(PARTITION)
    assert state is not None
    return state.replicas


async def test_a_lost_request_changes_nothing_and_the_next_one_does(driver: SimulatedDriver) -> None:
    driver.lose_next(Loss.REQUEST)
    with pytest.raises(ClusterUnavailableError):
        await driver.alter(REORDER)
    assert replicas(driver) == (1, 2, 3)
    assert (await driver.alter(REORDER))[PARTITION].accepted
    assert replicas(driver) == (3, 2, 1)


async def test_a_lost_answer_leaves_the_change_made(driver: SimulatedDriver) -> None:
    driver.lose_next(Loss.ANSWER)
    with pytest.raises(OutcomeUnknownError):
        await driver.alter(REORDER)
    assert replicas(driver) == (3, 2, 1)
    driver.lose_next(Loss.ANSWER)
    rates = BrokerRates(1, 2)
    with pytest.raises(OutcomeUnknownError):
        await driver.change_throttles([SetBrokerRates(1, rates)])
    assert await driver.broker_rates([1]) == {1: rates}


async def test_a_read_whose_answer_is_lost_is_only_unavailable(driver: SimulatedDriver) -> None:
    driver.lose_next(Loss.ANSWER)
    with pytest.raises(ClusterUnavailableError):
        await driver.list_moves()


async def test_an_unreachable_cluster_fails_every_call_until_it_is_back(driver: SimulatedDriver) -> None:
    driver.unreachable = True
    for call in (
        driver.identify,
        driver.list_moves,
        lambda: driver.observe([PARTITION]),
        lambda: driver.alter(REORDER),
    ):
        with pytest.raises(ClusterUnavailableError):
            await call()
    assert replicas(driver) == (1, 2, 3)
    driver.unreachable = False
    assert (await driver.identify()).kafka_cluster_id == "simulated-cluster"


async def test_a_chosen_code_answers_one_partition_once(driver: SimulatedDriver) -> None:
    refusal = CallResult(39, "because a test says so")
    driver.refuse_next(PARTITION, refusal)
    assert await driver.alter(REORDER) == {PARTITION: refusal}
    assert replicas(driver) == (1, 2, 3)
    assert (await driver.alter(REORDER))[PARTITION].accepted


async def test_frozen_metadata_shows_old_replicas_while_lists_stay_true(driver: SimulatedDriver) -> None:
    driver.freeze_metadata()
    await driver.alter([AlterRequest(PARTITION, (4, 2, 1))])
    stale = (await driver.observe([PARTITION])).partitions[PARTITION]
    assert stale is not None
    assert stale.replicas == (1, 2, 3)
    assert stale.move is not None
    assert stale.move.target == (4, 2, 1)
    driver.thaw_metadata()
    fresh = (await driver.observe([PARTITION])).partitions[PARTITION]
    assert fresh is not None
    assert fresh.replicas == (4, 2, 1, 3)


async def test_every_second_question_may_meet_a_broker_that_knows_no_new_config_and_no_new_topic(
    driver: SimulatedDriver,
) -> None:
    driver.freeze_metadata((True, False))
    driver.model.create_topic("new", {0: (1, 2, 3)})
    await driver.alter([AlterRequest(PARTITION, (4, 2, 1))])
    assert await driver.partition_counts(["new"]) == {"new": None}
    assert await driver.partition_counts(["new"]) == {"new": 1}
    assert await driver.throttled_replicas(["new"]) == {}
    assert await driver.throttled_replicas(["new"]) == {"new": ThrottledReplicas((), ())}
    driver.model.alter_broker_configs(1, rate_operations(BrokerRates(7, None)))
    assert await driver.broker_rates([1]) == {1: BrokerRates(None, None)}
    assert await driver.broker_rates([1]) == {1: BrokerRates(7, None)}


async def test_a_new_topic_is_not_observed_with_its_min_isr_by_a_broker_that_does_not_know_it(
    driver: SimulatedDriver,
) -> None:
    new = TopicPartition("new", 0)
    driver.freeze_metadata((False, True))
    driver.model.create_topic("new", {0: (1, 2, 3)})
    assert (await driver.observe([new], with_min_isr=True)).partitions == {}
    driver.thaw_metadata()
    seen = await driver.observe([new], with_min_isr=True)
    assert (set(seen.partitions), seen.min_isr) == ({new}, {"new": 1})


async def test_a_broker_that_lags_shows_what_was_and_catches_up(driver: SimulatedDriver) -> None:
    async def seen() -> tuple[int, ...] | None:
        facts = (await driver.observe([PARTITION])).partitions[PARTITION]
        return None if facts is None else facts.replicas

    driver.lag_metadata(500)
    driver.model.advance(1000)
    await driver.alter(REORDER)
    driver.model.advance(300)
    await driver.alter([AlterRequest(PARTITION, (2, 3, 1))])
    assert (await seen(), replicas(driver)) == ((1, 2, 3), (2, 3, 1))
    driver.model.advance(201)
    assert await seen() == (3, 2, 1)
    driver.model.advance(300)
    assert await seen() == (2, 3, 1)
    driver.model.delete_topic("orders")
    assert await seen() == (2, 3, 1)
    driver.model.advance(501)
    assert await seen() is None


async def test_a_metadata_lag_that_ends_shows_what_is(driver: SimulatedDriver) -> None:
    driver.lag_metadata(500)
    await driver.alter(REORDER)
    driver.lag_metadata(0)
    facts = (await driver.observe([PARTITION])).partitions[PARTITION]
    assert facts is not None
    assert facts.replicas == (3, 2, 1)


async def test_a_whole_call_can_be_refused_and_with_not_controller_nothing_has_happened(
    driver: SimulatedDriver,
) -> None:
    driver.refuse_next_alter(CallResult(29, "not allowed"))
    assert {result.code for result in (await driver.alter(REORDER)).values()} == {29}
    driver.refuse_next_alter(CallResult(REQUEST_TIMED_OUT))
    with pytest.raises(OutcomeUnknownError, match="7"):
        await driver.alter(REORDER)
    driver.refuse_next_alter(CallResult(NOT_CONTROLLER))
    with pytest.raises(ClusterUnavailableError):
        await driver.alter(REORDER)
    assert replicas(driver) == (1, 2, 3)
    assert (await driver.alter(REORDER))[PARTITION].accepted


async def test_without_a_controller_brokers_answer_only_what_they_know(driver: SimulatedDriver) -> None:
    driver.model.stop_controller()
    for read in (driver.list_moves, lambda: driver.observe([PARTITION])):
        with pytest.raises(ClusterUnavailableError):
            await read()
    with pytest.raises(OutcomeUnknownError):
        await driver.alter(REORDER)
    assert tuple((await driver.identify()).racks) == (1, 2, 3, 4)
    assert await driver.broker_rates([1]) == {1: BrokerRates(None, None)}
    assert await driver.partition_counts(["orders"]) == {"orders": 1}
    driver.model.start_controller()
    assert (await driver.alter(REORDER))[PARTITION].accepted


async def test_observations_carry_the_models_time(driver: SimulatedDriver) -> None:
    driver.model.advance(1234)
    observation = await driver.observe([PARTITION])
    assert (observation.started_ms, observation.ended_ms) == (1234, 1234)
    await driver.close()
