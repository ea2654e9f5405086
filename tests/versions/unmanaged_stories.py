"""Stories in which somebody else sends alters to the same partition."""

from drover.cluster.port import AddThrottledReplicas, AlterRequest, SetBrokerRates
from drover.events.partitions import TopicPartition
from drover.events.traits import Completion
from drover.facts import BrokerRates, ThrottledReplicas
from tests.integration.support import Installation, wait_for
from tests.versions.asked import UNSET, Unlike, accepted, listed, reached, traits

NOTHING_PER_SECOND = BrokerRates(None, 1)


async def _hold_back(made: Installation, key: TopicPartition) -> None:
    """Let nothing be copied to broker 4 for this partition, as another operator's throttle would."""
    entries = ThrottledReplicas((), (f"{key.partition}:4",))
    await made.driver.change_throttles(
        [SetBrokerRates(4, NOTHING_PER_SECOND), AddThrottledReplicas(key.topic, entries)]
    )
    await _until_rate(made, NOTHING_PER_SECOND)


async def _let_go(made: Installation) -> None:
    await made.driver.change_throttles([SetBrokerRates(4, UNSET)])
    await _until_rate(made, UNSET)


async def _until_rate(made: Installation, rates: BrokerRates) -> None:
    async def shown() -> bool:
        return (await made.driver.broker_rates((4,)))[4] == rates

    await wait_for(shown, "broker 4 to show its rate")


async def _somebody_alters(made: Installation, key: TopicPartition, *lists: tuple[int, ...] | None) -> None:
    for replicas in lists:
        answer = (await made.driver.alter([AlterRequest(key, replicas)]))[key]
        assert answer.accepted, answer


async def unmanaged_cancel(made: Installation) -> None:
    """A move of Drover's that somebody cancels ends as failed, and is not fought over."""
    await made.create_topic("thwarted", {0: [1, 2, 3]}, kilobytes=2048)
    key = TopicPartition("thwarted", 0)
    await _hold_back(made, key)
    try:
        await accepted(made, "thwarted", {key: [1, 2, 4]})
        await listed(made, key)
        await _somebody_alters(made, key, None)
        await made.wait_until_settled()
        assert (await made.plan("thwarted")).failed == 1
        assert await made.replicas(key) == (1, 2, 3)
    finally:
        await _let_go(made)


async def unmanaged_retarget(made: Installation) -> None:
    """A move of Drover's that somebody takes elsewhere is theirs."""
    await made.create_topic("diverted", {0: [1, 2]}, kilobytes=2048)
    key = TopicPartition("diverted", 0)
    await _hold_back(made, key)
    try:
        await accepted(made, "diverted", {key: [1, 4]})
        await listed(made, key)
        await _somebody_alters(made, key, (1, 3))
        await made.wait_until_settled()
        assert (await made.plan("diverted")).failed == 1
        assert await made.replicas(key) == (1, 3)
    finally:
        await _let_go(made)


async def repair(made: Installation) -> None:
    """A move that can never end is named and mended; where none can come about, it ends by itself."""
    await made.create_topic("stuck", {0: [3, 1, 2]}, kilobytes=2048)
    key = TopicPartition("stuck", 0)
    await _hold_back(made, key)
    try:
        await _somebody_alters(made, key, (4, 1, 2), (1, 2, 3))
        if (await traits(made)).completion is Completion.TARGET:
            await reached(made, key, [1, 2, 3])
            raise Unlike("ok: ends by itself")

        async def named() -> bool:
            rows = (await made.status())["unmanaged"]
            return any((row["topic"], row["partition"]) == key and row["never_ends"] == [4] for row in rows)

        await wait_for(named, "the move to be named", pause_s=0.5)
    finally:
        await _let_go(made)

    async def in_sync() -> bool:
        return 4 in (await made.facts(key)).isr

    await wait_for(in_sync, "broker 4 to be in sync")
    mended = await made.drover("repair", "--reason", "a story", "-o", "json")
    assert mended.code == 0, mended.output + mended.errors
    await made.wait_until_settled()
    facts = await made.facts(key)
    assert facts.move is None
    assert set(facts.replicas) == {1, 2, 3}
