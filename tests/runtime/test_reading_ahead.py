"""Looking through what a full inbox leaves unread: where it begins, when it ends, and what it does with faults."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from drover.agents import reading_ahead
from drover.agents.reading_ahead import ReadingAhead
from drover.errors import LogUnavailableError
from drover.events.codec import encode_command
from drover.events.commands import Freeze, HoldBroker
from drover.journal.folding import FoldedLog
from drover.local.waiting import wait_until
from drover.shard.inbox import CANCEL_INDEX, Inbox
from drover.testing.memory_journal import MemoryBroker, MemoryJournal, MemoryReader, StoredRecord

SHARD = 0


@dataclass
class Log(MemoryJournal):
    """A log whose readers fail with what `faults` holds, one after the other."""

    broker: MemoryBroker = field(default_factory=MemoryBroker)
    faults: list[Exception] = field(default_factory=list)
    readers: int = 0

    @property
    def journal(self) -> "Log":
        return self

    @asynccontextmanager
    async def reader(self, *, is_committed: bool = False) -> AsyncGenerator[MemoryReader, None]:
        assert is_committed, "what was aborted was never asked for"
        self.readers += 1
        if self.faults:
            raise self.faults.pop(0)
        yield MemoryReader(self.broker, 1)


@dataclass
class Subject:
    log: Log = field(default_factory=Log)
    inbox: Inbox = field(default_factory=lambda: Inbox(("local",)))
    failed: list[str] = field(default_factory=list)
    woken: int = 0

    def __post_init__(self) -> None:
        folded = cast("FoldedLog", self.log)
        self.ahead = ReadingAhead(folded, self.log.broker.topics, SHARD, self.inbox, self.wake, self.fail)

    def wake(self) -> None:
        self.woken += 1

    def fail(self, reason: str, error: BaseException | None) -> None:
        self.failed.append(f"{reason}: {error!r}")

    def send(self, by: str, number: int = 0, **fields: Any) -> None:
        made = HoldBroker if fields else Freeze
        command = made(id=f"{by}-{number}", cluster="local", by=by, reason="r", **fields)
        topic = self.log.broker.topics.commands[CANCEL_INDEX]
        self.log.broker.put(topic, SHARD, StoredRecord(encode_command(command)))

    async def until(self, count: int) -> None:
        await wait_until(lambda: self.inbox.count == count, what=f"{count} commands in the inbox")


@pytest.fixture
def subject(monkeypatch: pytest.MonkeyPatch) -> Subject:
    monkeypatch.setattr(reading_ahead, "PAUSE_S", 0.001)
    monkeypatch.setattr(reading_ahead, "RETRY_S", 0.001)
    monkeypatch.setattr(reading_ahead, "LINGER_S", 0.0)
    return Subject()


async def test_it_finds_what_is_there_and_what_comes_while_the_inbox_is_full(subject: Subject) -> None:
    subject.send("ann")
    subject.ahead.begin()
    subject.ahead.begin()
    await subject.until(1)
    subject.send("bob")
    await subject.until(2)
    assert (subject.log.readers, subject.woken) == (1, 2)
    subject.ahead.end()


async def test_it_ends_when_the_inbox_is_read_again_and_begins_where_it_was(subject: Subject) -> None:
    subject.send("ann")
    subject.ahead.begin()
    await subject.until(1)
    subject.ahead.pause()
    await wait_until(lambda: subject.ahead._task is None, what="the end")
    subject.send("bob")
    subject.ahead.begin()
    await subject.until(2)
    assert subject.inbox.preview_offset == 2
    subject.ahead.end()


async def test_an_inbox_that_begins_again_is_shown_everything_again(subject: Subject) -> None:
    subject.send("ann", broker=1)
    subject.send("bob")
    subject.ahead.begin()
    await subject.until(1)
    subject.ahead.end()
    subject.inbox.reset((0, 0, 0, 0))
    subject.ahead.begin()
    await subject.until(1)
    subject.ahead.end()
    assert subject.failed == []


async def test_a_log_out_of_reach_is_tried_again_and_stops_nothing(subject: Subject) -> None:
    subject.log.faults = [LogUnavailableError("gone"), LogUnavailableError("gone")]
    subject.send("ann")

    def is_found() -> bool:
        subject.ahead.begin()
        return subject.inbox.count == 1

    await wait_until(is_found, what="the freeze to be found")
    subject.ahead.end()
    assert (subject.log.readers, subject.failed) == (3, [])


async def test_a_fault_that_is_not_the_worlds_ends_the_worker(subject: Subject) -> None:
    subject.log.faults = [AssertionError("broken")]
    subject.ahead.begin()
    await wait_until(lambda: bool(subject.failed), what="the worker's end")
    assert subject.failed == ["looking through the unread commands of shard 0 failed: AssertionError('broken')"]
