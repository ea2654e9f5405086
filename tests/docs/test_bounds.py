"""docs/security.md lists every bound of what clients send, with the number that the code has."""

import ast
import importlib
import re
from pathlib import Path

import msgspec
import pytest

from drover.events.fields import ClusterName, GivenLimit, Identifier, LimitName, TopicName
from drover.events.topics import TopicNames
from drover.journal.topics import rules
from tests.architecture.repository import ROOT

TEXT = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")
SECTION = TEXT.split("\n## Bounds\n")[1].split("\n## ")[0]
ROWS = {line.split(" | ")[0].removeprefix("| "): line for line in SECTION.splitlines() if line.startswith("| ")}

# By the beginning of a row: the constants whose numbers it names.
IN_ROWS = {
    "a command": ("drover.events.codec.MAX_COMMAND_BYTES", "drover.agents.dead_letters.MAX_PAYLOAD_BYTES"),
    "`by`, `reason`": ("drover.events.bounds.MAX_BY_BYTES", "drover.events.bounds.MAX_REASON_BYTES"),
    "brokers in a replica list": (
        "drover.events.bounds.MAX_REPLICAS",
        "drover.events.bounds.MAX_BROKERS",
        "drover.events.bounds.MAX_TOPICS",
    ),
    "brokers and topics whose throttles": ("drover.events.bounds.MAX_BROKERS", "drover.events.bounds.MAX_TOPICS"),
    "limits that a command names": ("drover.events.bounds.MAX_LIMITS",),
    "what a refusal": ("drover.events.bounds.MAX_DETAIL_BYTES",),
    "dead letters of one record": ("drover.shard.pipeline.MOST_DEAD_LETTERS", "drover.agents.dead_letters.MOST_LOGGED"),
    "waiting for dead letters": (
        "drover.agents.dead_letters.WRITE_TIMEOUT_S",
        "drover.agents.dead_letters.FIRST_PAUSE_S",
        "drover.agents.dead_letters.LONGEST_PAUSE_S",
    ),
    "commands that are read": ("drover.shard.inbox.HIGH_COUNT", "drover.shard.inbox.HIGH_BYTES"),
    "what one topic": ("drover.shard.inbox.CLOSE_BYTES",),
    "waiting for the end of a call": ("drover.shard.pipeline.MAX_CALL_WAIT_MS",),
    "what one record of the log decides": ("drover.shard.inbox.CLOSE_BYTES",),
    "a decision about one command": ("drover.shard.pipeline.MAX_DECISION_BYTES",),
    "partitions that an alter": ("drover.events.bounds.MAX_PARTITIONS",),
    "a record of the log": ("drover.shard.proposals.RECORD_BYTES", "drover.journal.producer.MAX_REQUEST_BYTES"),
    "ids of decided commands": (
        "drover.fold.decided_commands.MOST_PER_CLUSTER",
        "drover.fold.decided_commands.MOST_PER_SOURCE",
    ),
    "brokers reported as failed": ("drover.decide.broker_reports.MAX_FAILED_BROKERS",),
    "brokers held": ("drover.decide.broker_holds.MAX_HELD_BROKERS", "drover.decide.freezes.MAX_FREEZES"),
    "plans that have ended": ("drover.reconcile.plans.reconciler.MAX_ENDED_PLANS",),
    "moves of others": ("drover.decide.unmanaged_moves.MAX_UNMANAGED_MOVES",),
    "headers of a command": ("drover.shard.messages.MAX_HEADER_BYTES",),
    "connections to": ("drover.service.health.MAX_CONNECTIONS",),
    "the log's time": ("drover.reconcile.messages.MAX_AHEAD_MS",),
}
# What these say of the page is in its own section.
ON_THE_PAGE = (
    "drover.service.connections.HEAD_TIMEOUT_S",
    "drover.web.bodies.BODY_TIMEOUT_S",
    "drover.web.past.MAX_ASKED",
    "drover.web.past.MAX_ASKED_EACH",
    "drover.web.page_server.MAX_CONNECTIONS",
    "drover.web.page_server.MAX_CONNECTIONS_PER_PEER",
    "drover.web.channels.MAX_CHANNELS",
    "drover.web.server.MAX_VIEWERS",
    "drover.web.surveys.MAX_NAME_BYTES",
    "drover.web.surveys.MAX_PLAN_BYTES",
    "drover.web.surveys.MAX_WAITING",
    "drover.web.guards.TAKING_S",
    "drover.web.writes.MAX_BODY_BYTES",
    "drover.web.writes.MAX_PARTITIONS_KEPT",
    "drover.web.writes.MAX_SENDING",
    "drover.web.writes.MAX_TRIALS_KEPT",
)
# Where what clients send is read, bounded and kept.
PLACES = (
    "agents",
    "events",
    "drover/decide",
    "drover/fold",
    "drover/shard",
    "drover/journal/producer.py",
    "drover/web/channels.py",
    "drover/web/past.py",
    "drover/web/server.py",
    "drover/web/page_server.py",
    "drover/web/surveys.py",
    "drover/web/writes.py",
)


def value_of(name: str) -> float:
    module, _, constant = name.rpartition(".")
    value = getattr(importlib.import_module(module), constant)
    assert isinstance(value, int | float), name
    return value


def ways_to_write(name: str) -> set[str]:
    """How a document may write the number of a constant, by the unit at the end of its name."""
    value = value_of(name)
    ways = {f"{value:,.0f}"}
    if name.endswith("_BYTES"):
        ways |= {f"{value / 1024:g} KiB"} if value < 1024**2 else {f"{value / 1024**2:g} MiB"}
    if name.endswith("_MS"):
        ways = {f"{value / 1000:g} s"}
    if name.endswith("_S"):
        ways = {f"{value:g} s"}
    return ways


def says(text: str, name: str) -> bool:
    return any(re.search(rf"(?<![\d,.]){re.escape(way)}(?![\d,]\d)", text) for way in ways_to_write(name))


def row(beginning: str) -> str:
    (found,) = [line for what, line in ROWS.items() if what.startswith(beginning)]
    return found


@pytest.mark.parametrize("beginning", IN_ROWS)
def test_a_row_names_the_numbers_that_the_code_has(beginning: str) -> None:
    assert [name for name in IN_ROWS[beginning] if not says(row(beginning), name)] == []


def test_the_pages_section_names_its_numbers() -> None:
    section = TEXT.split("\n## The page\n")[1].split("\n## ")[0]
    assert [name for name in ON_THE_PAGE if not says(section, name)] == []


def constants(path: Path) -> set[str]:
    """The module's constants that are called a maximum."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    module = ".".join(parts if parts[0] == "drover" else ("drover", *parts))
    names = {
        name.id
        for statement in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(statement, ast.Assign)
        for target in statement.targets
        for name in ast.walk(target)
        if isinstance(name, ast.Name)
    }
    return {f"{module}.{name}" for name in names if re.match(r"_?(MAX|MOST|HIGH)_", name)}


def test_no_bound_of_what_clients_send_is_missing() -> None:
    files = [
        file for place in PLACES for file in ([ROOT / place] if place.endswith(".py") else (ROOT / place).rglob("*.py"))
    ]
    found = set().union(*map(constants, files))
    assert len(found) > 20
    listed = {name for names in IN_ROWS.values() for name in names} | set(ON_THE_PAGE)
    assert sorted(found - listed) == []


@pytest.mark.parametrize(
    ("kind", "most"), [(Identifier, 128), (ClusterName, 64), (TopicName, 249), (LimitName, 128), (GivenLimit, 256)]
)
def test_names_are_as_long_as_the_table_says(kind: object, most: int) -> None:
    assert msgspec.convert("a" * most, kind) == "a" * most
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert("a" * (most + 1), kind)
    rows = row("`id`, plan names") + row("limits that a command names")
    assert re.search(rf"(?<!\d){most}(?!\d)", rows)


def test_the_topics_take_what_the_table_says() -> None:
    topics = TopicNames()
    sizes = {rule.name: rule.required.get("max.message.bytes") for rule in rules(topics, 6)}
    assert {sizes[name] for name in topics.commands} == {str(2 * 1024 * 1024)}
    assert "the topic takes 2 MiB" in row("a command")
    assert sizes[topics.events] == str(8 * 1024 * 1024)
    assert "the topic takes 8 MiB" in row("a record of the log")
