"""A cluster whose brokers answer while its controller does not says so."""

from typing import Any

import pytest

from drover.cluster.kafka import KafkaDriver
from drover.errors import ClusterUnavailableError
from tests.scripted import LIST, METADATA, ScriptedKafka, serving


class Leaderless(ScriptedKafka):
    """A broker that answers by itself, and hangs up where it would have to ask the controller."""

    def _answer(self, key: int) -> Any:
        if key == LIST:
            raise ConnectionError
        return super()._answer(key)


async def test_the_controller_is_named_as_what_does_not_answer() -> None:
    kafka = Leaderless()
    async with serving(kafka):
        driver = KafkaDriver("prod", kafka.address)
        with pytest.raises(ClusterUnavailableError) as raised:
            await driver.list_moves()
        assert str(raised.value).startswith(
            "the controller of cluster prod does not answer, its brokers 1 do: no move begins or ends until the "
            "controllers are back"
        )
        assert "ListPartitionReassignments" in str(raised.value)
        await driver.close()


async def test_no_further_question_is_asked_where_the_controller_answers() -> None:
    kafka = ScriptedKafka()
    async with serving(kafka):
        driver = KafkaDriver("prod", kafka.address)
        await driver.list_moves()
        before = kafka.asked.count(METADATA)
        await driver.list_moves()
        assert kafka.asked.count(METADATA) == before
        await driver.close()


async def test_a_cluster_of_which_no_broker_answers_is_only_out_of_reach() -> None:
    driver = KafkaDriver("prod", "127.0.0.1:1", call_timeout_ms=500)
    with pytest.raises(ClusterUnavailableError, match="cannot connect to any broker of"):
        await driver.list_moves()
    await driver.close()
