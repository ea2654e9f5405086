"""A worker joins its group at once, without Faust's second for tables, and says what keeps it out."""

from types import SimpleNamespace
from typing import Any, NamedTuple, cast

import pytest
from aiokafka.errors import InvalidSessionTimeoutError
from faust.tables.manager import TableManager

from drover.agents.app import CommandGroup, DroverApp, NoTables
from drover.agents.driver import Consumer, ConsumerThread
from drover.agents.settings import GroupSettings
from drover.errors import ConfigurationError
from drover.events.topics import TopicNames
from drover.journal.connection import LogConnection
from tests.agents.test_intake import RecordingHost


class Parts(NamedTuple):
    """The consumer and the recovery of tables that Faust's start speaks to, and what it asked of them."""

    asked: list[str]

    def assignment(self) -> frozenset[Any]:
        self.asked.append("assignment")
        return frozenset()

    def pause_partitions(self, partitions: set[Any]) -> None:
        self.asked.append(f"pause {sorted(partitions)}")

    async def start(self) -> None:
        self.asked.append("start the recovery")


async def test_a_start_does_what_faust_does_but_for_its_sleep(monkeypatch: pytest.MonkeyPatch) -> None:
    connection = LogConnection("localhost:1", TopicNames("drover"))
    tables = CommandGroup(GroupSettings(connection, "g", "w"), RecordingHost())._app.tables
    assert isinstance(tables, NoTables)
    slept: list[float] = []

    async def sleep(_service: TableManager, seconds: float) -> None:
        slept.append(seconds)

    monkeypatch.setattr(TableManager, "sleep", sleep)
    told: list[list[str]] = []
    for start in (TableManager.on_start, NoTables.on_start):
        parts = Parts([])
        monkeypatch.setattr(DroverApp, "consumer", parts)
        monkeypatch.setattr(tables, "_recovery", parts)
        await start(tables)
        told.append(parts.asked)
    assert slept == [1.0]
    assert told == [["assignment", "pause []", "start the recovery"]] * 2


async def test_a_session_timeout_that_the_brokers_refuse_is_named_with_what_they_take() -> None:
    class Refused:
        """A coordinator of aiokafka's whose group did not let us in."""

        def check_errors(self) -> None:
            raise InvalidSessionTimeoutError

    connection = LogConnection("localhost:1", TopicNames("drover"))
    group = CommandGroup(GroupSettings(connection, "g", "w", session_timeout_s=2000), RecordingHost())
    consumer = group._app.consumer
    assert isinstance(consumer, Consumer)
    thread = cast("ConsumerThread", consumer._thread)
    thread._consumer = SimpleNamespace(_coordinator=Refused())
    with pytest.raises(
        ConfigurationError, match=r"worker\.session_timeout_ms = 2000000: .*group\.min\.session\.timeout"
    ):
        await thread.raise_group_fault()
