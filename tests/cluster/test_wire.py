"""Which answers say that a broker was not the controller, and how long callers wait for a connection they share."""

import asyncio
import threading
import time
from types import SimpleNamespace
from typing import Any

import pytest
from kafka.errors import KafkaConnectionError

from drover.cluster.wire import Connection, Deadline, _came_from_another
from drover.errors import ClusterUnavailableError


def item(code: int) -> SimpleNamespace:
    return SimpleNamespace(error_code=code)


def elections(*partitions: SimpleNamespace) -> SimpleNamespace:
    """As a broker in ZooKeeper mode answers that is not the controller: 0 for the whole, 41 for each partition."""
    topics = [SimpleNamespace(topic=f"t{number}", partition_result=[one]) for number, one in enumerate(partitions)]
    return SimpleNamespace(error_code=0, replica_election_results=topics)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (SimpleNamespace(error_code=41, responses=[]), True),
        (SimpleNamespace(error_code=0, responses=[item(41)]), False),
        (elections(item(41), item(41)), True),
        (elections(item(41), item(0)), False),
        (SimpleNamespace(error_code=41, replica_election_results=[]), True),
        (SimpleNamespace(topics=[item(41), item(41)]), True),
        (SimpleNamespace(results=[item(41)]), True),
        (SimpleNamespace(responses=[item(41)]), True),
        (SimpleNamespace(responses=[item(41), item(0)]), False),
        (SimpleNamespace(topics=[]), False),
        (SimpleNamespace(topics=[SimpleNamespace(name="without a code")]), False),
    ],
)
def test_only_an_answer_that_refuses_everything_was_another_brokers(answer: Any, expected: bool) -> None:
    assert _came_from_another(answer) is expected


class Opening(Connection):
    """A connection to a cluster that is away, and comes back once a caller has been told so."""

    def __init__(self) -> None:
        super().__init__("calls", "localhost:1", {}, 4000)
        self.tries = 0
        self.is_back, self.has_failed = threading.Event(), threading.Event()
        self.client = SimpleNamespace(close=lambda: None)

    def _bootstrapped(self, deadline: Deadline) -> Any:
        self.tries += 1
        if not self.is_back.wait(deadline.left_s()):
            self.has_failed.set()
            raise KafkaConnectionError
        return self.client


async def test_a_caller_who_has_more_time_is_not_refused_when_the_one_who_came_first_has_none_left() -> None:
    """Both waited for one connection, and a look at a cluster that was just back failed after some milliseconds."""
    connection = Opening()
    first = asyncio.create_task(connection._open(Deadline.after_ms(100)))
    await asyncio.sleep(0)
    second = asyncio.create_task(connection._open(Deadline.after_ms(20_000)))
    with pytest.raises(ClusterUnavailableError):
        await first
    assert await asyncio.to_thread(connection.has_failed.wait, 20)  # its thread may be later than its caller
    connection.is_back.set()
    assert await second is connection.client
    assert connection.tries == 2
    await connection.close()


async def test_a_cluster_that_stays_away_is_waited_for_until_each_callers_own_deadline() -> None:
    connection = Opening()
    began = time.monotonic()
    callers = [asyncio.create_task(connection._open(Deadline.after_ms(ms))) for ms in (50, 300, 300, 150)]
    found = await asyncio.gather(*callers, return_exceptions=True)
    assert all(isinstance(one, ClusterUnavailableError) for one in found)
    assert time.monotonic() - began >= 0.29
    assert connection.tries <= 4


async def test_a_caller_who_is_cancelled_as_the_connection_opens_is_cancelled() -> None:
    """Before Python 3.12 `asyncio.wait_for` returns the result then, and whoever asks in a loop never ends."""
    connection = Opening()
    connection._opening = opening = asyncio.get_running_loop().create_future()
    caller = asyncio.create_task(connection._open(Deadline.after_ms(20_000)))
    await asyncio.sleep(0)
    opening.set_result(connection.client)
    await asyncio.sleep(0)  # the answer is on its way to the caller
    caller.cancel()
    with pytest.raises(asyncio.CancelledError):
        await caller
    await connection.close()
