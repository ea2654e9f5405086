"""`drover throttle show` and `drover throttle` on the model cluster: what is shown, asked, sent and refused."""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from drover.cli import submission, throttle
from drover.cli.exits import ExitCode
from drover.cli.main import cli
from drover.cli.submission import Request
from drover.cluster.port import AddThrottledReplicas, SetBrokerRates, ThrottleChange
from drover.events.commands import Command, RestoreThrottles, Throttle
from drover.facts import BrokerRates, ThrottledReplicas
from drover.journal.connection import LogConnection
from drover.state.cluster import ClusterState
from drover.state.plans import ClusterThrottle
from drover.testing.model import ClusterModel
from drover.testing.simulated import SimulatedDriver

CLUSTER = "prod"
# Nothing listens there.
CONFIG = '[log]\nbootstrap = "127.0.0.1:1"\n[clusters.prod]\nbootstrap = "127.0.0.1:1"\n'
REASON = ("--reason", "a test")
STRAYS: tuple[ThrottleChange, ...] = (
    SetBrokerRates(2, BrokerRates(1_000_000, None)),
    AddThrottledReplicas("orders", ThrottledReplicas(("0:1",), ("0:9",))),
)


@pytest.fixture
def model() -> ClusterModel:
    made = ClusterModel({1: "a", 2: "b", 3: "c"})
    made.create_topic("orders", {0: (1, 2)})
    return made


@pytest.fixture
def state() -> ClusterState:
    """The cluster as the log says it is."""
    return ClusterState(CLUSTER)


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[Command]:
    """Every command that would have been sent."""
    commands: list[Command] = []

    def keep(_connection: LogConnection, written: Sequence[Command], _request: Request) -> tuple[()]:
        commands.extend(written)
        return ()

    monkeypatch.setattr(submission, "send", keep)
    return commands


@pytest.fixture(autouse=True)
def elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, model: ClusterModel, state: ClusterState, sent: list[Command]
) -> None:
    """A settings file, and the model in place of Kafka."""
    assert sent == []

    @asynccontextmanager
    async def open_model(*_settings: object) -> AsyncIterator[SimulatedDriver]:
        yield SimulatedDriver(model, CLUSTER)

    async def read_nothing(*_log: object) -> ClusterState:
        return state

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DROVER_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("DROVER_CONFIG", raising=False)
    monkeypatch.setattr(throttle, "open_driver", open_model)
    monkeypatch.setattr(throttle, "fold_cluster", read_nothing)
    Path("drover.toml").write_text(CONFIG)


def run(*arguments: str, answer: str | None = None) -> Result:
    return CliRunner().invoke(cli, arguments, input=answer, env={"COLUMNS": "200", "NO_COLOR": "1"})


def leave_leftovers(model: ClusterModel) -> None:
    answers = asyncio.run(SimulatedDriver(model, CLUSTER).change_throttles(STRAYS))
    assert all(answer.accepted for answer in answers.values())


def test_every_throttle_is_shown_and_whose_it_is(model: ClusterModel, state: ClusterState) -> None:
    empty = run("throttle", "show")
    assert (empty.exit_code, empty.stdout.strip()) == (
        ExitCode.DONE,
        "No broker has a throttle, and no topic has throttled replicas.",
    )
    leave_leftovers(model)
    state.cluster_throttle = ClusterThrottle(5_000_000, "ana", "a quiet night", 0)
    shown = run("throttle", "show")
    assert "Plans without a throttle of their own: 5.0 MB/s per broker, set by ana" in shown.stdout
    assert "1.0 MB/s" in shown.stdout
    assert "0:1" in shown.stdout
    assert "2 leftover throttles: `drover throttle clean` deletes them." in shown.stderr
    document = json.loads(run("throttle", "show", "-o", "json").stdout)
    assert document["throttle"]["bytes_per_second"] == 5_000_000
    assert [(row["broker"], row["leader"], row["follower"], row["whose"]) for row in document["brokers"]] == [
        (2, 1_000_000, None, "leftover")
    ]
    assert [(row["topic"], row["leader"], row["follower"]) for row in document["topics"]] == [
        ("orders", ["0:1"], ["0:9"])
    ]


@pytest.mark.parametrize(
    ("given", "plan", "rate", "clear", "may_rise_to"),
    [
        (["10MB/s"], None, 10_000_000, False, None),
        (["evening", "50MiB"], "evening", 50 * 1024 * 1024, False, None),
        (["evening", "10MB/s", "--may-rise-to", "40MB/s"], "evening", 10_000_000, False, 40_000_000),
        (["500", "--force"], None, 500, False, None),
        (["none"], None, None, True, None),
        (["evening", "None"], "evening", None, True, None),
    ],
)
def test_a_throttle_is_sent_for_a_plan_or_for_the_cluster(
    sent: list[Command], given: list[str], plan: str | None, rate: int | None, *, clear: bool, may_rise_to: int | None
) -> None:
    result = run("throttle", "set", *given, *REASON)
    assert result.exit_code == ExitCode.DONE, result.stderr
    (command,) = sent
    assert isinstance(command, Throttle)
    told = (command.plan, command.bytes_per_second, command.clear, command.may_rise_to, command.reason)
    assert told == (plan, rate, clear, may_rise_to, "a test")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ([], "Missing argument"),
        (["a", "b", "10MB/s"], "give [PLAN] RATE"),
        (["fast"], "is not a rate: write 10MB/s"),
        (["10MB/s", "evening"], "is not a rate: write 10MB/s"),
        (["0"], "would stop all copying"),
        (["-5"], "No such option"),
        (["10Mbit/s"], "throttles count bytes"),
        (["10"], "is an unlikely throttle (copies would never catch up)"),
        (["200GB/s"], "is an unlikely throttle (no network is that fast)"),
        (["10MB/s", "--may-rise-to", "soon"], "is not a rate"),
        (["10MB/s", "--may-rise-to", "40MB/s"], "may_rise_to belongs to a plan"),
        (["evening", "10MB/s", "--may-rise-to", "1MB/s"], "is not below it"),
        (["evening", "none", "--may-rise-to", "1MB/s"], "needs a throttle"),
    ],
)
def test_a_throttle_that_makes_no_sense_is_refused_before_it_is_sent(
    sent: list[Command], given: list[str], said: str
) -> None:
    result = run("throttle", "set", *given, *REASON)
    assert (result.exit_code, sent) == (ExitCode.USAGE, [])
    assert said in " ".join(result.stderr.split())


@pytest.mark.parametrize("command", [("set", "10MB/s"), ("clean", "--yes")])
def test_a_change_needs_a_reason(model: ClusterModel, sent: list[Command], command: tuple[str, ...]) -> None:
    leave_leftovers(model)
    result = run("throttle", *command)
    assert (result.exit_code, sent) == (ExitCode.USAGE, [])
    assert "Missing option '--reason'" in result.stderr


def test_restore_names_what_it_would_delete_and_asks(
    model: ClusterModel, sent: list[Command], monkeypatch: pytest.MonkeyPatch
) -> None:
    leave_leftovers(model)
    unanswered = run("throttle", "clean", *REASON)
    assert (unanswered.exit_code, sent) == (ExitCode.USAGE, [])
    assert "broker 2: out 1,000,000 bytes per second\ntopic orders: 1 leaders and 1 followers" in unanswered.stderr
    assert "add --yes to delete these" in unanswered.stderr
    monkeypatch.setattr("click.testing._NamedTextIOWrapper.isatty", lambda _self: True)
    refused = run("throttle", "clean", *REASON, answer="n\n")
    assert (refused.exit_code, sent) == (ExitCode.USAGE, [])
    assert "nothing was deleted" in refused.stderr
    agreed = run("throttle", "clean", *REASON, answer="y\n")
    assert (agreed.exit_code, len(sent)) == (ExitCode.DONE, 1)


@pytest.mark.parametrize(
    ("given", "brokers", "topics"),
    [
        ([], [2], ["orders"]),
        (["--broker", "2"], [2], []),
        (["--topic", "orders"], [], ["orders"]),
        (["--broker", "1", "--topic", "orders"], [], ["orders"]),
    ],
)
def test_restore_deletes_the_leftover_throttles_that_are_named_or_all(
    model: ClusterModel, sent: list[Command], given: list[str], brokers: list[int], topics: list[str]
) -> None:
    leave_leftovers(model)
    result = run("throttle", "clean", "-y", *given, *REASON)
    assert result.exit_code == ExitCode.DONE, result.stderr
    (command,) = sent
    assert isinstance(command, RestoreThrottles)
    # As they were seen: a worker deletes nothing that has changed meanwhile.
    assert [(one.broker, one.leader, one.follower) for one in command.brokers] == [
        (broker, 1_000_000, None) for broker in brokers
    ]
    assert [(one.topic, one.leader, one.follower) for one in command.topics] == [
        (topic, ("0:1",), ("0:9",)) for topic in topics
    ]


@pytest.mark.parametrize("output", ["json", "yaml"])
def test_nothing_to_restore_is_a_document_for_programs_too(
    model: ClusterModel, sent: list[Command], output: str
) -> None:
    result = run("throttle", "clean", *REASON, "-o", output)
    assert (result.exit_code, sent) == (ExitCode.DONE, [])
    assert yaml.safe_load(result.stdout) == {"outcomes": []}


@pytest.mark.parametrize("given", [["--broker", "1"], ["--topic", "nowhere"]])
def test_restore_has_nothing_to_do_where_no_leftover_throttle_is(
    model: ClusterModel, sent: list[Command], given: list[str]
) -> None:
    leave_leftovers(model)
    result = run("throttle", "clean", "--yes", *given, *REASON)
    assert (result.exit_code, sent) == (ExitCode.DONE, [])
    assert "There is nothing to delete: no throttle is left over." in result.stderr


@pytest.mark.parametrize("given", [["--broker", "two"], ["--no-such-option"], ["orders"]])
def test_restore_refuses_wrong_input(sent: list[Command], given: list[str]) -> None:
    result = run("throttle", "clean", "--yes", *given, *REASON)
    assert (result.exit_code, sent) == (ExitCode.USAGE, [])


def test_an_unknown_cluster_is_refused() -> None:
    result = run("throttle", "show", "--cluster", "elsewhere")
    assert result.exit_code == ExitCode.USAGE
    assert "elsewhere" in result.stderr


def test_alter_refuses_a_throttle_that_may_rise_to_less() -> None:
    Path("plan.json").write_text('{"version": 1, "partitions": [{"topic": "a", "partition": 0, "replicas": [1]}]}')
    rates = ("--throttle", "10MB/s", "--throttle-may-rise-to", "1MB/s")
    result = run("alter", "plan.json", *rates, *REASON)
    assert result.exit_code == ExitCode.USAGE
    assert "--throttle-may-rise-to is below --throttle" in result.stderr
