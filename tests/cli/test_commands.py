"""The command line without a Kafka: wrong input, exit codes, what is printed where."""

import json
import subprocess
import sys
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from click.testing import CliRunner, Result

from drover.cli.dry_run import Tried
from drover.cli.exits import ExitCode, failure_of
from drover.cli.main import COMMANDS, cli
from drover.cli.submission import exit_code, print_answers
from drover.client.answers import Answer
from drover.client.history import FoldedLog, ValidRecord
from drover.client.undo import Undo
from drover.client.views.dead_letter_rows import shown
from drover.decide.decision import Decision, refuse_partition
from drover.errors import ClusterUnavailableError, ConfigurationError, CorruptLogError, LogUnavailableError
from drover.events.commands import Command
from drover.events.partitions import PartitionReference, TopicPartition
from drover.events.plans import PlanOpened
from drover.events.reassignments import ReassignmentCompleted, ReassignmentCreated
from drover.events.records import AnyEvent
from drover.events.refusals import Refusal, RefusalCode
from drover.fold.log import ShardFold
from drover.state.phase import Phase
from drover.state.reassignment import Reassignment
from tests.client.log import Writer, outcome

PLAN = {"version": 1, "partitions": [{"topic": "t", "partition": 0, "replicas": [1, 2]}]}
PLAN_OPENED = PlanOpened(cluster="prod", plan="p", by="ann", reason="r")
QUEUED = ReassignmentCreated(
    cluster="prod", topic="t", partition=0, topic_id="QBjRZu1kRSm0SVvmuSHUxg", plan="p", original=(1, 2), target=(3, 4)
)
COMPLETED = ReassignmentCompleted(cluster="prod", topic="t", partition=0, replicas=(3, 4))
# Nothing listens there.
CONFIG = """
[log]
bootstrap = "127.0.0.1:1"
[clusters.prod]
bootstrap = "127.0.0.1:1"
"""


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DROVER_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.delenv("DROVER_CONFIG", raising=False)
    Path("drover.toml").write_text(CONFIG)
    Path("plan.json").write_text(json.dumps(PLAN))

    async def nobody(_settings: object, _commands: object) -> Tried:
        raise ClusterUnavailableError("no broker of prod answers")

    monkeypatch.setattr("drover.cli.dry_run._tried", nobody)


def run(*arguments: str, stdin: str | None = None) -> Result:
    return CliRunner().invoke(cli, arguments, input=stdin, prog_name="drover")


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_explains_itself(name: str) -> None:
    result = run(name, "--help")
    assert result.exit_code == 0
    assert result.output.startswith(f"Usage: drover {name}")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["alter", "plan.json"], "Missing option '--reason'"),
        (["alter", "gone.json", "--reason", "x"], "the plan gone.json cannot be read: No such file"),
        (["alter", "plan.json", "--reason", "x", "--throttle", "fast"], "'fast' is not a rate"),
        (["alter", "plan.json", "--reason", "x", "--timeout", "soon"], "'soon' is not a duration"),
        (["alter", "plan.json", "--reason", "x", "--cluster", "test"], "configured: prod"),
        (["alter", "plan.json", "--reason", "", "--dry-run"], "this is not a valid command"),
        (["alter", "plan.json", "--reason", "x", "--id", "a b", "--dry-run"], "this is not a valid command"),
        (["alter", "plan.json", "--reason", "x", "--follow", "--no-wait"], "choose one"),
        (["alter", "plan.json", "--reason", "x", "--config", "gone.toml"], "gone.toml cannot be read"),
        (["alter", "--reason", "x"], "either a PLAN.json or --undo PLAN"),
        (["alter", "plan.json", "--undo", "p", "--reason", "x"], "either a PLAN.json or --undo PLAN"),
        (["alter", "plan.json", "--dry-run", "--follow"], "--dry-run sends nothing"),
        (["alter", "plan.json", "--dry-run", "--no-wait"], "--dry-run sends nothing"),
        (["alter", "plan.json", "--reason", "x", "--throttle", "10Mbps"], "write 1.25MB/s if bits are meant"),
        (["alter", "plan.json", "--reason", "x", "--throttle", "50"], "add --force"),
        (["throttle", "set", "p", "999TB/s", "--reason", "x"], "no network is that fast"),
        (["throttle", "set", "p", "10Mbit", "--reason", "x"], "counts bits"),
        (["cancel", "--rollback", "--stop", "--all", "-y", "--reason", "x"], "exclude each other"),
        (["worker", "--cluster", "prod"], "No such option: --cluster"),
        (["--cluster", "prod", "log", "init"], "does not take --cluster"),
        (["cancel", "--all", "--reason", "x"], "--rollback or --stop"),
        (["cancel", "--queued", "a1", "--all", "--reason", "x"], "exactly one of"),
        (["cancel", "--rollback", "--reason", "x"], "exactly one of"),
        (["cancel", "--rollback", "--reason", "x", "--all", "--plan", "p"], "exactly one of"),
        (["cancel", "--rollback", "--reason", "x", "--partition", "t"], "write TOPIC:PARTITION"),
        (["cancel", "--rollback", "--reason", "x", "--all"], "--all needs -y"),
        (["leaders", "blacklist", "set", "1", "1", "--reason", "x"], "a broker is named twice"),
        (["broker", "failed", "-1", "--reason", "x"], "-1"),
        (["status", "--follow", "-o", "json"], "--follow goes with -o table or jsonl"),
        (["history", "--since", "yesterday"], "'yesterday' is not a time"),
        (["worker", "--listen", "nowhere"], "listen must be host:port"),
        (["nonsense"], "No such command 'nonsense'"),
        (["local", "down", "--dir", ""], "'--dir': the path is empty: check that the shell variable is set"),
    ],
)
def test_wrong_usage_ends_with_2_and_says_what_is_wrong(arguments: list[str], said: str) -> None:
    result = run(*arguments)
    assert said in result.stderr
    assert result.exit_code == ExitCode.USAGE
    assert result.stdout == ""
    assert "Traceback" not in result.stderr


def test_a_trial_needs_no_reason_and_refuses_what_no_cluster_takes() -> None:
    assert run("alter", "plan.json", "--dry-run").exit_code == ExitCode.DONE
    wrong = [
        {"topic": "t", "partition": 0, "replicas": [1, 1]},
        {"topic": "t", "partition": 1, "replicas": [-1, 2]},
        {"topic": "drover.snapshots", "partition": 0, "replicas": [1, 2]},
        {"topic": "t", "partition": 2, "replicas": [1, 2]},
    ]
    Path("plan.json").write_text(json.dumps({"version": 1, "partitions": wrong}))
    result = run("alter", "plan.json", "--dry-run")
    assert result.exit_code == ExitCode.FAILED
    for said in ("would refuse 3 partitions", "names a broker twice", "broker -1 is no broker", "Drover's own"):
        assert said in result.stderr


def test_a_trial_refuses_what_a_worker_would_refuse_now(monkeypatch: pytest.MonkeyPatch) -> None:
    key = TopicPartition("t", 0)
    refusal = refuse_partition(key, RefusalCode.ORIGINAL_REPLICAS_DIFFER, "t:0 has the replicas 1, 2 now")
    decision = Decision(refusals=(refusal,), unchanged=(TopicPartition("t", 1),), remarks=("the throttle stays",))

    async def tried(_settings: object, commands: Sequence[object]) -> Tried:
        return Tried((decision,) * len(commands))

    monkeypatch.setattr("drover.cli.dry_run._tried", tried)
    result = run("alter", "plan.json", "--dry-run", "-o", "json")
    assert result.exit_code == ExitCode.FAILED
    assert json.loads(result.stdout)["commands"]
    for said in ("would refuse 1 partition", "t:0 has the replicas 1, 2", "1 partition would stay", "throttle stays"):
        assert said in result.stderr


def test_an_answer_says_what_a_command_did_not_do(capsys: pytest.CaptureFixture[str]) -> None:
    said = msgspec.structs.replace(outcome("a"), remarks=("the throttle was not set",))
    print_answers([Answer(said, 0, 7, 1000)], "table")
    printed = capsys.readouterr().out
    assert "\n  the throttle was not set\n" in printed
    print_answers([Answer(said, 0, 7, 1000)], "json")
    (document,) = json.loads(capsys.readouterr().out)["outcomes"]
    assert document["remarks"] == ["the throttle was not set"]


@pytest.mark.parametrize(
    ("arguments", "scope"),
    [
        (["cancel", "--queued", "a1"], {"queued": "a1"}),
        (["cancel", "--stop", "--topic", "t"], {"topics": ("t",), "mode": "stop"}),
        (["unfreeze", "--all"], {"all": True}),
        (["throttle", "set", "p", "5", "--force"], {"plan": "p", "bytes_per_second": 5}),
    ],
)
def test_what_is_typed_is_what_is_sent(
    arguments: list[str], scope: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[Command] = []

    def keep(commands: Sequence[Command]) -> tuple[()]:
        sent.extend(commands)
        return ()

    for module in ("submission", "moves"):
        monkeypatch.setattr(f"drover.cli.{module}.send", lambda _log, commands, _request: keep(commands))
    monkeypatch.setattr("drover.cli.moves._restored", lambda *_: ())
    assert run(*arguments, "--reason", "x").exit_code == ExitCode.DONE
    assert {name: getattr(sent[0], name) for name in scope} == scope


def test_cancelling_everything_tells_how_much_that_is_and_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    async def folded(*_: object) -> FoldedLog:
        fold = ShardFold(0, 1)
        for number in range(3):
            fold.state.cluster("prod").put(queued(number))
        return FoldedLog({0: fold})

    monkeypatch.setattr("drover.cli.moves.can_ask", lambda: True)
    monkeypatch.setattr("drover.client.history.fold_shards", folded)
    result = run("cancel", "--rollback", "--all", "--reason", "x", stdin="n\n")
    assert "Rollback 3 reassignments of cluster prod" in result.stderr
    assert "nothing was cancelled" in result.stderr
    assert result.exit_code == ExitCode.USAGE
    # With a yes it goes on to the log, where nobody answers.
    assert run("cancel", "--rollback", "--all", "--reason", "x", stdin="y\n").exit_code == ExitCode.FAILED


def queued(partition: int) -> Reassignment:
    return Reassignment(
        key=TopicPartition("t", partition), topic_id="id", plan="p", number=partition, original=(1,), target=(2,),
        created_ms=0, phase=Phase.PENDING, since_ms=0, current=(1,),
    )  # fmt: skip


def test_options_for_all_commands_stand_before_or_after_the_name() -> None:
    Path("other.toml").write_text('[log]\nbootstrap = "127.0.0.1:1"\n')
    for arguments in (
        ["--config", "other.toml", "alter", "plan.json", "--reason", "x", "--dry-run"],
        ["alter", "plan.json", "--reason", "x", "--dry-run", "--config", "other.toml"],
    ):
        assert "choose a cluster with --cluster" in run(*arguments).stderr
        assert run(*arguments, "--cluster", "anything").exit_code == 0


def test_a_dry_run_shows_what_would_be_sent_also_where_no_cluster_answers() -> None:
    arguments = (
        "alter",
        "plan.json",
        "--reason",
        "x",
        "--by",
        "ann",
        "--id",
        "a1",
        "--throttle",
        "10MB/s",
        "--dry-run",
    )
    result = run(*arguments)
    assert result.exit_code == 0
    assert "t:0" in result.stdout
    assert "as plan a1 to cluster prod. Nothing was sent." in result.stderr
    assert "Only the format was checked, because the cluster does not answer: no broker of prod" in result.stderr
    (command,) = json.loads(run(*arguments, "-o", "json").stdout)["commands"]
    assert (command["by"], command["throttle_bytes_per_second"]) == ("ann", 10_000_000)
    assert yaml.safe_load(run(*arguments, "-o", "yaml").stdout)["commands"] == [command]
    assert json.loads(run(*arguments, "-o", "jsonl").stdout) == command


def test_a_plan_is_read_from_standard_input() -> None:
    result = run("alter", "-", "--reason", "x", "--dry-run", stdin=json.dumps(PLAN))
    assert result.exit_code == 0
    assert "t:0" in result.stdout


def test_what_stops_and_what_is_asserted_is_shown_before_it_is_sent() -> None:
    partitions = [
        {"topic": "t", "partition": 0, "replicas": None},
        {"topic": "t", "partition": 1, "replicas": [1, 2], "original_replicas": [2, 1]},
    ]
    arguments = ("alter", "-", "--reason", "x", "--dry-run", "--queue")
    text = json.dumps({"partitions": partitions})
    result = run(*arguments, stdin=text)
    assert "stop its move" in result.stdout
    assert "2, 1" in result.stdout
    (command,) = json.loads(run(*arguments, "-o", "json", stdin=text).stdout)["commands"]
    assert command["queue"] is True
    assert command["partitions"] == partitions


@pytest.mark.parametrize(
    ("events", "said"), [((), "there is no plan p in prod"), ((PLAN_OPENED,), "plan p has completed no move in prod")]
)
def test_an_undo_of_nothing_is_refused(
    monkeypatch: pytest.MonkeyPatch, events: tuple[PlanOpened, ...], said: str
) -> None:
    monkeypatch.setattr("drover.cli.alter.read_undo", undo_of(events))
    result = run("alter", "--undo", "p", "--reason", "x")
    assert said in result.stderr
    assert result.exit_code == ExitCode.FAILED


def test_an_undo_is_shown_before_it_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("drover.cli.alter.read_undo", undo_of((PLAN_OPENED, QUEUED, COMPLETED)))
    result = run("alter", "--undo", "p", "--reason", "x", "--dry-run", "-o", "json")
    (command,) = json.loads(result.stdout)["commands"]
    assert command["partitions"] == [
        {"topic": "t", "partition": 0, "replicas": [1, 2], "original_replicas": [3, 4], "topic_id": QUEUED.topic_id},
    ]
    # Nobody can name another list of what was there before.
    assert command["drops_unregistered"]


def undo_of(events: tuple[AnyEvent, ...]) -> Callable[..., Awaitable[Undo]]:
    """Read these events of cluster prod, whatever the log says."""

    async def read(_connection: object, cluster: str, plan: str) -> Undo:
        undo = Undo(cluster, plan)
        writer = Writer()
        writer.begin()
        undo.see([ValidRecord(0, 2, writer.batch(*events))])
        return undo

    return read


def test_a_log_that_does_not_answer_is_named_with_the_remedy_and_without_a_traceback() -> None:
    for arguments in (["freeze", "--reason", "x"], ["status"], ["history"], ["replay"], ["dead-letters", "list"]):
        result = run(*arguments)
        assert result.exit_code == ExitCode.FAILED
        assert "the log's Kafka at 127.0.0.1:1 did not answer" in result.stderr
        assert "[log] bootstrap" in result.stderr
        assert result.stdout == ""


def test_debug_shows_the_exception() -> None:
    assert isinstance(run("freeze", "--reason", "x", "--debug").exception, LogUnavailableError)


def test_faults_have_their_exit_codes() -> None:
    assert failure_of(ConfigurationError("x")).exit_code == 2
    assert failure_of(CorruptLogError("event log shard 3 offset 7: x")).exit_code == 5
    assert failure_of(LogUnavailableError("x")).exit_code == 1


def answer(**more: Any) -> Answer:
    return Answer(outcome("a1", **more), 3, 57, 1000)


def refusal(code: RefusalCode) -> tuple[Refusal, ...]:
    return (Refusal(code, "because [it] is so", "t", 1),)


def test_exit_codes_of_outcomes() -> None:
    done = answer(accepted=(PartitionReference("t", 0),))
    assert exit_code([done]) == ExitCode.DONE
    assert exit_code([done, answer(refusals=refusal(RefusalCode.UNMANAGED_MOVE))]) == ExitCode.FAILED
    assert exit_code([answer(verdict="refused", refusals=refusal(RefusalCode.MALFORMED))]) == ExitCode.FAILED
    guarded = answer(verdict="refused", refusals=refusal(RefusalCode.DROVER_TOPIC))
    assert exit_code([guarded]) == ExitCode.GUARDED
    assert exit_code([done, guarded]) == ExitCode.FAILED


def test_each_refused_partition_is_listed_with_code_and_detail(capsys: pytest.CaptureFixture[str]) -> None:
    partly = answer(
        type="alter", plan="p", accepted=(PartitionReference("t", 0),), refusals=refusal(RefusalCode.UNKNOWN_PLAN)
    )
    print_answers([partly], "table")
    printed = capsys.readouterr().out
    assert "alter a1: accepted, plan p, 1 partition, 1 refused (log 3@57)" in printed
    assert "t:1" in printed
    assert "unknown-plan" in printed
    assert "because [it] is so" in printed
    print_answers([partly], "json")
    (row,) = json.loads(capsys.readouterr().out)["outcomes"]
    assert row["refusals"][0]["code"] == "unknown-plan"


def test_payloads_are_shown_as_well_as_can_be() -> None:
    assert shown(b'{"a": 1}') == '{"a": 1}'
    assert shown(b"\x81\xa1a\x01") == '{"a": 1}'
    assert shown(b"\xc1\xff") == "wf8="


def test_the_entry_point_ends_with_the_code_of_the_command() -> None:
    done = subprocess.run(
        [sys.executable, "-c", "from drover.cli.main import main; main()", "freeze"],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parents[2],
    )
    assert done.returncode == 2
    assert "Missing option '--reason'" in done.stderr


def test_sending_a_command_imports_neither_rich_nor_faust() -> None:
    code = (
        "import sys, drover.cli.main, drover.cli.alter, drover.client.client; "
        "print([name for name in ('rich', 'faust', 'kafka', 'yaml') if name in sys.modules])"
    )
    root = Path(__file__).parents[2]
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=root)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("reason", "word"), [("r" * 1025, "1025 bytes"), ("a\nb", "control character"), ("\u3000", "reason is blank")]
)
def test_a_reason_out_of_bounds_is_wrong_usage_before_anything_is_sent(reason: str, word: str) -> None:
    result = run("freeze", "--reason", reason)
    assert result.exit_code == ExitCode.USAGE
    assert word in result.stderr
