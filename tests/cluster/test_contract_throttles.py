"""The contract of `ClusterDriver` for throttles, on the simulated twin and on a real Kafka 4.3.1."""

from drover.cluster.port import AddThrottledReplicas, RemoveThrottledReplicas, SetBrokerRates, ThrottleChange
from drover.facts import NONE, UNKNOWN_TOPIC_OR_PARTITION, BrokerRates, ThrottledReplicas
from tests.cluster.support import ClusterUnderTest, eventually

UNTHROTTLED = BrokerRates(None, None)
INVALID_CONFIG = 40
BROKER_NOT_AVAILABLE = 8


async def test_broker_rates_are_set_deleted_and_read_back_per_broker(cluster: ClusterUnderTest) -> None:
    half = BrokerRates(leader_bytes_per_second=5_000_000, follower_bytes_per_second=None)
    change = SetBrokerRates(3, half)
    absent = SetBrokerRates(9, half)
    results = await cluster.driver.change_throttles([change, absent])
    assert (results[change].code, results[absent].code) == (NONE, BROKER_NOT_AVAILABLE)
    rates = await eventually(
        cluster, lambda: cluster.driver.broker_rates([2, 3, 9]), lambda found: found[3] != UNTHROTTLED
    )
    assert rates == {2: UNTHROTTLED, 3: half}
    for _twice in range(2):
        deleted = await cluster.driver.change_throttles([SetBrokerRates(3, UNTHROTTLED)])
        assert {result.code for result in deleted.values()} == {NONE}
    await eventually(cluster, lambda: cluster.driver.broker_rates([3]), lambda found: found == {3: UNTHROTTLED})


async def test_throttled_replicas_are_added_and_taken_back_without_harming_others(cluster: ClusterUnderTest) -> None:
    topic = await cluster.create_topic({0: (1, 2, 3)})
    others = ThrottledReplicas(("0:1",), ())
    ours = ThrottledReplicas(("0:2", "0:3"), ("0:4",))

    async def there() -> ThrottledReplicas:
        return (await cluster.driver.throttled_replicas([topic, "no-such-topic"]))[topic]

    assert await there() == ThrottledReplicas((), ())
    steps: list[tuple[ThrottleChange, ThrottledReplicas]] = [
        (AddThrottledReplicas(topic, others), others),
        (AddThrottledReplicas(topic, ours), ThrottledReplicas(("0:1", "0:2", "0:3"), ("0:4",))),
        (AddThrottledReplicas(topic, ours), ThrottledReplicas(("0:1", "0:2", "0:3"), ("0:4",))),
        (RemoveThrottledReplicas(topic, ours), others),
        (RemoveThrottledReplicas(topic, ours), others),
        # What stays is not shown: nothing is deleted as a whole, and Kafka takes a list that is emptied.
        (RemoveThrottledReplicas(topic, others, kept=ThrottledReplicas(("0:3",), ())), ThrottledReplicas((), ())),
    ]
    for change, left in steps:
        assert [result.code for result in (await cluster.driver.change_throttles([change])).values()] == [NONE]
        assert await there() == left
    unknown = AddThrottledReplicas("no-such-topic", ours)
    assert (await cluster.driver.change_throttles([unknown]))[unknown].code == UNKNOWN_TOPIC_OR_PARTITION


async def test_changes_of_one_topic_happen_in_their_order(cluster: ClusterUnderTest) -> None:
    topic = await cluster.create_topic({0: (1, 2, 3)})
    entries = ThrottledReplicas(("0:1",), ("0:2",))
    changes: list[ThrottleChange] = [AddThrottledReplicas(topic, entries), RemoveThrottledReplicas(topic, entries)]
    results = await cluster.driver.change_throttles(changes)
    assert [results[change].code for change in changes] == [NONE, NONE]
    assert (await cluster.driver.throttled_replicas([topic]))[topic] == ThrottledReplicas((), ())


async def test_nothing_is_added_to_somebodys_star(cluster: ClusterUnderTest) -> None:
    topic = await cluster.create_topic({0: (1, 2, 3)})
    await cluster.set_topic_config(topic, "leader.replication.throttled.replicas", "*")
    star = ThrottledReplicas(("*",), ())
    await eventually(cluster, lambda: cluster.driver.throttled_replicas([topic]), lambda found: found[topic] == star)
    add = AddThrottledReplicas(topic, ThrottledReplicas(("0:1",), ("0:2",)))
    result = (await cluster.driver.change_throttles([add]))[add]
    assert result.code == INVALID_CONFIG
    assert result.message is not None
    assert "`*`" in result.message
    remove = RemoveThrottledReplicas(topic, add.entries)
    assert (await cluster.driver.change_throttles([remove]))[remove].code == NONE
    assert (await cluster.driver.throttled_replicas([topic]))[topic] == star


async def test_a_list_that_kafka_could_not_take_is_refused_before_it_is_sent(cluster: ClusterUnderTest) -> None:
    topic = await cluster.create_topic({0: (1, 2, 3)})
    too_many = AddThrottledReplicas(topic, ThrottledReplicas(tuple(f"{number}:1" for number in range(6000)), ()))
    result = (await cluster.driver.change_throttles([too_many]))[too_many]
    assert result.code == INVALID_CONFIG
    assert result.message is not None
    assert "32767" in result.message


async def test_nothing_is_added_once_the_removal_before_it_is_refused(cluster: ClusterUnderTest) -> None:
    topic = await cluster.create_topic({0: (1, 2, 3)})
    other = await cluster.create_topic({0: (1, 2, 3)})
    entries = ThrottledReplicas(("0:1",), ("0:2",))
    refused = RemoveThrottledReplicas(topic, ThrottledReplicas(("first:1",), ()))
    changes: list[ThrottleChange] = [refused, *(AddThrottledReplicas(name, entries) for name in (topic, other))]
    results = await cluster.driver.change_throttles(changes)
    assert [results[change].code for change in changes] == [INVALID_CONFIG, INVALID_CONFIG, NONE]
    assert results[changes[1]] == results[refused]
    found = await cluster.driver.throttled_replicas([topic, other])
    assert found == {topic: ThrottledReplicas((), ()), other: entries}
