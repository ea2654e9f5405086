"""How long a shard writes no dead letters after some could not be written, and how many it logs."""

import pytest
import structlog
from prometheus_client import CollectorRegistry

from drover.agents import dead_letters
from drover.agents.dead_letters import FIRST_PAUSE_S, LOGGED_EVERY_S, LONGEST_PAUSE_S, MOST_LOGGED, DeadLetters
from drover.events.codec import Malformed
from drover.events.topics import TopicNames
from drover.service.metrics import Metrics
from drover.shard.messages import Arrival
from drover.testing.memory_journal import MemoryBroker, MemoryJournal

NAMES = TopicNames()
LETTER = (Arrival(0, 7, 1000, b"no command", Malformed("no")), "no")


class Burying:
    """The dead letters of one shard, a broker that may be without their topic, and a clock that stands still."""

    def __init__(self) -> None:
        self.now_s = 1000.0
        self.broker = MemoryBroker()
        self.letters = DeadLetters(NAMES, 0, Metrics(CollectorRegistry()))

    async def is_written(self, after_s: float, *, works: bool) -> bool:
        """Tell whether a dead letter of some seconds later is written."""
        self.now_s += after_s
        self.broker.missing = set() if works else {NAMES.dead_letters}
        before = len(self.broker.values(NAMES.dead_letters, 0))
        await self.letters.bury(MemoryJournal(self.broker, 1), [LETTER])
        return len(self.broker.values(NAMES.dead_letters, 0)) > before


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> Burying:
    burying = Burying()
    monkeypatch.setattr(dead_letters, "monotonic", lambda: burying.now_s)
    return burying


async def test_one_failure_costs_the_dead_letters_of_a_second(made: Burying) -> None:
    assert await made.is_written(0, works=True)
    assert not await made.is_written(5, works=False)
    assert not await made.is_written(FIRST_PAUSE_S / 2, works=True), "the shard does not wait for them"
    assert await made.is_written(FIRST_PAUSE_S / 2, works=True)


async def test_failures_in_a_row_make_the_pause_longer_and_success_makes_it_short_again(made: Burying) -> None:
    for _ in range(20):
        assert not await made.is_written(LONGEST_PAUSE_S, works=False)
    assert not await made.is_written(LONGEST_PAUSE_S - 1, works=True)
    assert await made.is_written(1, works=True)
    assert not await made.is_written(1, works=False)
    assert await made.is_written(FIRST_PAUSE_S, works=True)


async def test_a_flood_of_records_that_are_no_commands_writes_few_lines(made: Burying) -> None:
    with structlog.testing.capture_logs() as logged:
        for _ in range(500):
            await made.is_written(0.1, works=True)
    # Fifty seconds: one minute's lines.
    assert [entry["event"] for entry in logged] == [
        "a record is not a command and went to the dead letters"
    ] * MOST_LOGGED
    with structlog.testing.capture_logs() as logged:
        await made.is_written(LOGGED_EVERY_S, works=True)
    assert [(entry["event"], entry.get("records")) for entry in logged] == [
        ("more records were not commands", 490),
        ("a record is not a command and went to the dead letters", None),
    ]
