"""What is refused before a command is sent, what is asked, who asks, and what is said while there is no outcome."""

import json
import os
import pty
import select
import socket
import subprocess
import sys
import time
import tomllib
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Self

import psutil
import pytest
import yaml
from click.testing import CliRunner, Result

from drover.cli.exits import ExitCode, Failure
from drover.cli.invocation import Invocation
from drover.cli.main import cli
from drover.cli.submission import Request, _tell_waiting, send
from drover.client.answers import Answer, OutcomeMissingError, Ownership, Sent
from drover.events.codec import command_digest
from drover.events.commands import Command, Freeze
from drover.events.records import Outcome
from drover.events.topics import TopicNames
from drover.journal.connection import LogConnection
from drover.state.identity import Outage
from tests.architecture.repository import ROOT
from tests.cli.test_commands import CONFIG

PLAN = {"version": 1, "partitions": [{"topic": "t", "partition": 0, "replicas": [1, 2]}]}
NOW_MS = 1_700_000_000_000
# What would be asked of the log, and of a cluster, before the question.
SCRIPT = """
import fcntl, sys, termios
if sys.stdin is not None:
    # The terminal's keys make signals.
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
from drover.cli import moves, throttle
from drover.cli.main import main
from drover.cli.throttle import Throttles
from drover.client.views.found_throttles import FoundRates, Whose
from drover.journal import recovery
from drover.fold.log import Damage, ShardFold
from drover.state.cluster import ClusterState

async def folded(*_):
    fold = ShardFold(0, 1)
    fold.damage = Damage(3, "it is damaged")
    return fold

leftover = FoundRates(broker=1, leader=5, follower=None, whose=Whose.LEFTOVER, says="")
moves.state_now = lambda *_: ClusterState("prod")
throttle.look_at_throttles = lambda *_: Throttles(None, (leftover,), ())
recovery.folded_to_end = folded
main()
"""
COMMANDS = (
    ("cancel", "--all", "--rollback", "--reason", "x"),
    ("throttle", "clean", "--reason", "x"),
    ("log", "recover", "0", "--after", "3"),
)
# In place of a library: Ctrl-C comes while it is imported, in a text, since data classes make their methods of texts.
INTERRUPTED = """
import os, signal
exec("os.kill(os.getpid(), signal.SIGINT); import time; time.sleep(5)")
"""


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DROVER_CONFIG", raising=False)
    Path("drover.toml").write_text(CONFIG)


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, arguments, prog_name="drover")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("cancel", "--rollback", "--partition", f"orders:{10**22}"), "partition: it must be at most 2147483647"),
        (("throttle", "set", str(10**24), "--force"), "bytes_per_second: it must be at most 9223372036854775807"),
        (("alter", "plan.json", "--throttle", str(10**24), "--force"), "throttle_bytes_per_second: it must be at most"),
        (("leaders", "demote", "3", "--for", f"{10**22}d"), "for_ms: it must be at most 9007199254740992"),
    ],
)
def test_a_number_that_no_message_can_hold_is_refused_as_any_that_is_too_large(
    arguments: tuple[str, ...], said: str
) -> None:
    Path("plan.json").write_text(json.dumps(PLAN))
    result = run(*arguments, "--reason", "r")
    assert result.exit_code == ExitCode.USAGE
    assert said in result.output


def test_a_command_without_an_outcome_says_that_the_owner_is_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    sent = (Sent(Freeze(id="a1", cluster="prod", by="me", reason="r"), "drover.cancel", 0, 0),)
    silent = Ownership(0, "w2", 7, None, heard_ms=int(time.time() * 1000) - 8000)

    async def hold(*_: object) -> tuple[Answer, ...]:
        raise OutcomeMissingError(sent, (), silent)

    monkeypatch.setattr("drover.cli.submission._send", hold)
    request = Request(id="a1", cluster="prod", by="me", reason="r", timeout_s=3, output="table")
    with pytest.raises(Failure) as raised:
        send(LogConnection("127.0.0.1:1", TopicNames()), [sent[0].command], request)
    assert "shard 0 is owned by w2 (epoch 7), silent for 8 s; another worker takes over" in raised.value.message


@pytest.mark.parametrize("output", ["table", "json", "jsonl", "yaml"])
def test_programs_that_do_not_wait_read_where_their_command_was_written(
    output: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Writing:
        def __init__(self, _: LogConnection) -> None:
            pass

        async def __aenter__(self) -> Self:
            return self

        async def __aexit__(self, *_: object) -> None:
            pass

        async def submit_all(self, commands: Sequence[Command]) -> list[Sent]:
            return [Sent(command, "drover.cancel", 2, 7) for command in commands]

    monkeypatch.setattr("drover.cli.submission.Client", Writing)
    result = run("freeze", "--reason", "r", "--id", "f1", "--no-wait", "-o", output)
    assert result.exit_code == ExitCode.DONE, result.output
    row = {"id": "f1", "topic": "drover.cancel", "partition": 2, "offset": 7}
    if output == "table":
        assert result.stdout == ""
        assert "f1 was written to drover.cancel 2@7." in result.stderr
    else:
        read = yaml.safe_load(result.stdout)
        assert read == (row if output == "jsonl" else {"outcomes": [], "written": [row]})


@pytest.mark.parametrize("output", ["table", "json", "jsonl"])
def test_what_was_decided_before_a_timeout_is_told_beside_what_was_not(
    output: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    commands = [Freeze(id=name, cluster="prod", by="me", reason="r") for name in ("f1", "f2")]
    left_over = Sent(commands[1], "drover.cancel", 2, 1)
    outcome = Outcome(
        id="f1", cluster="prod", type="freeze", by="me", reason="r", topic="drover.cancel", offset=0, verdict="accepted"
    )

    async def decide_one(*_: object) -> tuple[Answer, ...]:
        raise OutcomeMissingError((left_over,), (Answer(outcome, 2, 40, 0),), None)

    monkeypatch.setattr("drover.cli.submission._send", decide_one)
    request = Request(id="f1", cluster="prod", by="me", reason="r", timeout_s=3, output=output)
    with pytest.raises(Failure, match="no outcome was recorded within 3 s for 1 of 2 commands"):
        send(LogConnection("127.0.0.1:1", TopicNames()), commands, request)
    said = capsys.readouterr().out
    written = {"id": "f2", "topic": "drover.cancel", "partition": 2, "offset": 1}
    if output == "table":
        assert "freeze f1: accepted" in said
    elif output == "jsonl":
        decided, left = (json.loads(line) for line in said.splitlines())
        assert (decided["id"], left) == ("f1", written)
    else:
        document = json.loads(said)
        assert [row["id"] for row in document["outcomes"]] == ["f1"]
        assert document["written"] == [written]


NOT_UTF8 = b"B\xfcro".decode("utf-8", "surrogateescape")


@pytest.mark.parametrize(
    "arguments",
    [
        ("freeze", "--reason", NOT_UTF8),
        ("freeze", "--reason", "r", "--by", NOT_UTF8),
        ("freeze", "--reason", "r", "--id", NOT_UTF8),
        ("cancel", "--rollback", "--topic", NOT_UTF8, "--reason", "r"),
        ("alter", "plan.json", "--plan", NOT_UTF8, "--reason", "r"),
        ("alter", "plan.json", "--plan", NOT_UTF8, "--dry-run"),
    ],
)
def test_words_that_are_not_utf8_are_refused_and_named(arguments: tuple[str, ...]) -> None:
    """A terminal that writes Latin-1 sends such bytes, and no message can hold them."""
    Path("plan.json").write_text(json.dumps(PLAN))
    result = run(*arguments)
    assert result.exit_code == ExitCode.USAGE
    assert "'B\\udcfcro' is not UTF-8 text" in result.output


@pytest.mark.parametrize(
    ("option", "said"), [("--id", "id: the text must have the form"), ("--by", "by: it must not be empty")]
)
def test_an_option_that_is_empty_is_not_one_that_was_left_out(option: str, said: str) -> None:
    """As with a variable that is not set: a retry under another id each time would not be harmless."""
    result = run("freeze", "--reason", "r", option, "")
    assert result.exit_code == ExitCode.USAGE
    assert said in result.output


@pytest.mark.parametrize("what", ["failed", "returned"])
def test_a_report_about_a_broker_is_the_same_command_at_each_try(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The moment of the report is part of it: with another one the id would be refused as another command's."""
    sent: list[Command] = []

    async def write(_: object, commands: Sequence[Command], *_rest: object) -> tuple[Answer, ...]:
        sent.extend(commands)
        return ()

    monkeypatch.setattr("drover.cli.submission._send", write)
    monkeypatch.setattr("drover.cli.submission.check_brokers", lambda *_, **__: None)
    arguments = ("broker", what, "3", "--reason", "r", "--id", "incident-7")
    for at in ((), ("--at", "5m"), ("--at", "90")):
        result = run(*arguments, *at)
        assert result.exit_code == ExitCode.USAGE
        assert "add --at with a date and a time" in result.output
    for now_s in (1_700_000_000, 1_700_000_060):
        monkeypatch.setattr("drover.cli.brokers.time", SimpleNamespace(time=lambda now_s=now_s: now_s))
        assert run(*arguments, "--at", "2026-11-20T15:04:05Z", "--no-wait").exit_code == ExitCode.DONE
    first, second = sent
    assert command_digest(first) == command_digest(second)
    assert run("broker", what, "3", "--reason", "r", "--no-wait").exit_code == ExitCode.DONE


@pytest.mark.parametrize(
    ("partitions", "said"),
    [(2, None), (12_000, "This takes 2 commands, a1 to a1.2.")],
)
def test_a_plan_in_several_commands_names_them(
    partitions: int, said: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("drover.cli.alter.send", lambda *_: ())
    targets = [{"topic": "t", "partition": number, "replicas": [1, 2]} for number in range(partitions)]
    Path("plan.json").write_text(json.dumps({"version": 1, "partitions": targets}))
    done = run("alter", "plan.json", "--reason", "r", "--id", "a1", "--no-wait")
    assert done.exit_code == ExitCode.DONE
    if said is None:
        assert done.stderr == ""
    else:
        assert said in done.stderr


LONG_AGO_MS = NOW_MS - 600_000
OUTAGE = Outage(LONG_AGO_MS, "the controller of cluster prod does not answer")


@pytest.mark.parametrize(
    ("shard", "why", "what_next"),
    [
        (None, "the log itself could not be read in that time", "once the shard has an owner"),
        (Ownership(4, "", 0, None), "shard 4 has never had an owner: start a worker", "once the shard has an owner"),
        (
            Ownership(4, "", 0, None, running={"w2": NOW_MS, "w1": NOW_MS, "w0": LONG_AGO_MS}),
            "no worker owns shard 4 yet: w1 and w2 are running, and their consumer group is rebalancing",
            "once the shard has an owner",
        ),
        (
            Ownership(4, "w0", 7, LONG_AGO_MS, running={"w1": NOW_MS}),
            "no worker owns shard 4 yet (the last owner was w0 (epoch 7)): w1 is running, and",
            "once the shard has an owner",
        ),
        (
            Ownership(4, "w0", 7, LONG_AGO_MS),
            "start a worker with `drover worker` (the last owner was w0 (epoch 7))",
            "once the shard has an owner",
        ),
        (
            Ownership(4, "w1", 7, None, heard_ms=NOW_MS),
            "shard 4 is owned by w1 (epoch 7), which is running: look at its log",
            "and the owner decides it",
        ),
        (
            Ownership(4, "w1", 7, None, heard_ms=NOW_MS, outage=OUTAGE),
            "for which the cluster has been out of reach since ",
            "it is refused if the cluster stays out of reach",
        ),
    ],
)
def test_what_a_command_waits_for_is_true_after_two_seconds_and_at_the_end(
    shard: Ownership | None,
    why: str,
    what_next: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("drover.cli.submission.time", SimpleNamespace(time=lambda: NOW_MS / 1000))
    _tell_waiting(shard)
    assert ("Waiting: the log has not been read yet." if shard is None else why) in capsys.readouterr().err
    command = Freeze(id="f1", cluster="prod", by="me", reason="r")

    async def decide_nothing(*_: object) -> tuple[Answer, ...]:
        raise OutcomeMissingError((Sent(command, "drover.cancel", 4, 0),), (), shard)

    monkeypatch.setattr("drover.cli.submission._send", decide_nothing)
    request = Request(id="f1", cluster="prod", by="me", reason="r", timeout_s=3, output="table")
    with pytest.raises(Failure) as raised:
        send(LogConnection("127.0.0.1:1", TopicNames()), [command], request)
    assert why in raised.value.message
    assert what_next in raised.value.message
    if shard is not None and shard.outage is not None:
        assert OUTAGE.detail in raised.value.message


def answered(command: tuple[str, ...], directory: Path, key: bytes) -> tuple[int, str]:
    """Run a command on a terminal, press a key at its question, and return its exit code and all that it said."""
    config = directory / "drover.toml"
    config.write_text(CONFIG)
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        (sys.executable, "-c", SCRIPT, "--config", str(config), *command), cwd=ROOT, stdin=theirs, stdout=theirs,
        stderr=theirs, start_new_session=True, env={**os.environ, "PYTHONPATH": str(ROOT)},
    ) as process:  # fmt: skip
        os.close(theirs)
        said, is_pressed, deadline = b"", False, time.monotonic() + 30
        while time.monotonic() < deadline:
            if not select.select([ours], [], [], 0.2)[0]:
                continue
            try:
                said += os.read(ours, 4096)
            except OSError:
                break
            if not is_pressed and b"[y/N]" in said:
                # What comes before the line is read does not interrupt its reading.
                _until_it_reads(process.pid, deadline)
                os.write(ours, key)
                is_pressed = True
        os.close(ours)
        return process.wait(10), said.decode()


def _until_it_reads(pid: int, deadline: float) -> None:
    reading = psutil.Process(pid)
    while reading.status() != psutil.STATUS_SLEEPING:
        assert time.monotonic() < deadline, "the command does not wait for an answer"
        time.sleep(0.01)


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
def test_ctrl_c_at_a_question_is_an_interruption(command: tuple[str, ...], tmp_path: Path) -> None:
    code, said = answered(command, tmp_path, b"\x03")
    assert code == 130, said
    assert "Interrupted." in said
    assert "Aborted" not in said


@pytest.mark.parametrize(
    ("command", "key"), [(COMMANDS[0], b"\x04"), (COMMANDS[2], b"n\n")], ids=["ctrl-d", "n"]
)  # fmt: skip
def test_ctrl_d_at_a_question_is_a_no(command: tuple[str, ...], key: bytes, tmp_path: Path) -> None:
    code, said = answered(command, tmp_path, key)
    assert code == 2, said
    assert "Error: nothing was " in said
    assert "Aborted" not in said


@pytest.mark.parametrize("command", COMMANDS[:2], ids=lambda command: command[0])
def test_with_its_input_closed_a_command_cannot_ask_and_says_what_to_add(
    command: tuple[str, ...], tmp_path: Path
) -> None:
    config = tmp_path / "drover.toml"
    config.write_text(CONFIG)
    done = subprocess.run(
        ("sh", "-c", 'exec "$@" <&-', "sh", sys.executable, "-c", SCRIPT, "--config", str(config), *command),
        capture_output=True, text=True, check=False, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert (done.returncode, "Traceback" in done.stderr) == (2, False), done.stderr
    assert "-y" in done.stderr


@pytest.mark.parametrize("library", ["click", "asyncio"])
@pytest.mark.parametrize("installed", [False, True])
def test_ctrl_c_while_a_command_is_imported_is_an_interruption(
    library: str, tmp_path: Path, *, installed: bool
) -> None:
    libraries, script = tmp_path / "libraries", tmp_path / "drover"
    libraries.mkdir()
    (libraries / f"{library}.py").write_text(INTERRUPTED)
    entry = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]["drover"]
    module, _, function = entry.partition(":")
    script.write_text(f"import sys\nfrom {module} import {function}\nsys.exit({function}())\n")
    command = (str(script),) if installed else ("-m", "drover")
    done = subprocess.run(
        (sys.executable, *command, "status"), capture_output=True, text=True, check=False, cwd=ROOT,
        env={**os.environ, "PYTHONPATH": f"{libraries}:{ROOT}"},
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (130, "Interrupted.\n")


def test_a_user_who_has_a_number_and_no_name_is_named_by_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in Drover's own image, where the user is 10001."""
    for name in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.delenv(name, raising=False)

    def unknown(number: int) -> None:
        raise KeyError(f"getpwuid(): uid not found: {number}")

    monkeypatch.setattr("pwd.getpwuid", unknown)
    assert Invocation().author == f"uid-{os.getuid()}@{socket.gethostname()}"
    assert Invocation(by="ann").author == "ann"
