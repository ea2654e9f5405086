"""Waiting for the end of a plan or of moves on a log that is damaged, that lags, or that does not know the plan."""

import asyncio
from collections.abc import AsyncGenerator, Collection, Mapping

import pytest

from drover.client import Answer, Client, NotEndedError, UnknownPlanError
from drover.client import client as client_module
from drover.errors import CorruptLogError
from drover.events.partitions import PartitionReference
from drover.events.plans import PlanOpened
from drover.events.reassignments import ReassignmentCreated
from drover.journal.connection import LogConnection
from drover.journal.reader import LogRecord
from tests.client.log import CLUSTER, OneShard, Writer, outcome

OPENED = PlanOpened(cluster=CLUSTER, plan="p", by="me", reason="why")
CREATED = ReassignmentCreated(
    cluster=CLUSTER, topic="orders", partition=0, topic_id="id", plan="p", original=(1, 2), target=(2, 3)
)


class _Reader(OneShard):
    """A log of one shard of which more is shown with each look."""

    def __init__(self, records: list[bytes], shown: int) -> None:
        self._records, self._shown = records, shown

    async def partition_counts(self, topics: Collection[str]) -> dict[str, int]:
        # There are no snapshots.
        return dict.fromkeys(topics, 0)

    async def end_offsets(self, _: str, shards: Collection[int]) -> dict[int, int]:
        return dict.fromkeys(shards, self._shown)

    async def read(self, _: str, start: Mapping[int, int]) -> AsyncGenerator[tuple[LogRecord, ...], None]:
        yield self._from(start[0])
        self._shown += 1

    async def follow(self, _: str, start: Mapping[int, int]) -> AsyncGenerator[tuple[LogRecord, ...], None]:
        self._shown = len(self._records)
        yield self._from(start[0])
        await asyncio.Event().wait()

    def _from(self, offset: int) -> tuple[LogRecord, ...]:
        shown = self._records[: self._shown]
        return tuple(LogRecord(0, place, 1000, shown[place], ()) for place in range(offset, len(shown)))


def client_of(monkeypatch: pytest.MonkeyPatch, records: list[bytes], shown: int | None = None) -> Client:
    reader = _Reader(records, len(records) if shown is None else shown)
    monkeypatch.setattr(client_module, "LogReader", lambda _: reader)
    monkeypatch.setattr(client_module, "LOOK_S", 0.01)
    return Client(LogConnection("nowhere:1"), CLUSTER)


def begun(*, is_damaged: bool = False) -> list[bytes]:
    """A log with an answer to the command `f`, which may be damaged after it."""
    writer = Writer()
    writer.begin()
    writer.say(OPENED, CREATED, outcomes=(outcome("f"),))
    return [*writer.records, *([b"\xc1" + writer.fold.token] if is_damaged else [])]


async def test_a_plan_that_a_broker_does_not_show_yet_is_looked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    writer = Writer()
    writer.begin()
    writer.say(OPENED)
    plan = await client_of(monkeypatch, writer.records, shown=2).wait_for_plan("p")
    assert plan.name == "p"


async def test_a_plan_that_does_not_appear_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    client = client_of(monkeypatch, begun())
    client.appears_within_s = 0.05
    with pytest.raises(UnknownPlanError, match="there is no plan nosuch in prod"):
        await client.wait_for_plan("nosuch")


async def test_a_damaged_log_is_named_where_the_time_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    client = client_of(monkeypatch, begun(is_damaged=True))
    client.appears_within_s = 60
    with pytest.raises(CorruptLogError, match=r"see docs/recovery\.md"):
        await client.wait_for_plan("nosuch", timeout_s=0.05)


@pytest.mark.parametrize(("is_damaged", "error"), [(True, CorruptLogError), (False, NotEndedError)])
async def test_moves_that_do_not_end_are_an_error_at_the_time_limit(
    is_damaged: bool, error: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    client = client_of(monkeypatch, begun(is_damaged=is_damaged))
    answer = Answer(outcome("f", type="alter", plan="p", accepted=(PartitionReference("orders", 0),)), 0, 2, 1000)
    with pytest.raises(error):
        await client.wait_for_moves(answer, timeout_s=0.05)
