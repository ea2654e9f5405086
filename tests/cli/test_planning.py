"""What `--apply` submits and what it does not, and how the search for a plan is ended."""

import json
import shlex
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from drover.cli.exits import ExitCode
from drover.cli.main import cli
from drover.cli.model_file import parse_model
from drover.cli.planning import stopping
from drover.events.commands import Alter
from drover.events.partitions import TopicPartition
from tests.cli.models import BROKERS, GIGABYTE, OFFSETS, ORDERS, broker, write_model

CONFIG = '[log]\nbootstrap = "127.0.0.1:1"\n[clusters.prod]\nbootstrap = "127.0.0.1:1"\n'
FULL = broker(6, "c", log_dirs=[{"path": "/data", "total_bytes": 1000 * GIGABYTE, "free_bytes": 1}])


class Live:
    """A live cluster that is a file, and whatever was submitted to it."""

    def __init__(self, directory: Path) -> None:
        self.model = directory / "model.json"
        self.config = directory / "drover.toml"
        self.config.write_text(CONFIG)
        self.submitted: list[Alter] = []
        self.told: dict[str, Any] = {}
        write_model(self.model)

    def submit(self, _connection: object, commands: Sequence[Alter], _request: object, **options: Any) -> None:
        self.submitted += commands
        self.told = dict(options["told"])

    def apply(self, *goal: str) -> Result:
        arguments = ("plan", *goal, "--apply", "--reason", "why", "--config", str(self.config))
        return CliRunner().invoke(cli, arguments, prog_name="drover")


@pytest.fixture
def live(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Live:
    made = Live(tmp_path)
    monkeypatch.setattr("drover.cli.planning.submit", made.submit)
    monkeypatch.setattr(
        "drover.cli.planning.read_model", lambda *_, **__: parse_model(made.model.read_text(), "model.json")
    )
    return made


def test_a_proposal_is_printed_and_submitted_as_a_plan_with_what_it_was_made_for(live: Live) -> None:
    done = live.apply(
        "drain", "3", "--include-internal", "--plan", "friday", "--throttle", "5MB/s", "--queue", "--by", "ann"
    )
    assert done.exit_code == ExitCode.DONE, done.output
    assert done.stdout.startswith("drain 3: 7 partitions to change")
    (command,) = live.submitted
    assert (command.plan, command.by, command.reason, command.queue) == ("friday", "ann", "why", True)
    assert command.throttle_bytes_per_second == 5_000_000
    assert command.allow_drover_topics
    lists = {one.key: (one.original_replicas, one.replicas) for one in command.partitions}
    assert lists[TopicPartition("orders", 0)] == ((1, 2, 3), (1, 2, 6))


@pytest.mark.parametrize(
    ("goal", "empties", "fills"),
    [
        (("drain", "2", "3"), (2, 3), ()),
        (("evacuate", "c"), (3, 6), ()),
        (("add", "4"), (), (4,)),
        (("replace", "3", "--with", "6"), (3,), (6,)),
        (("balance",), (), ()),
    ],
)
def test_a_plan_says_which_brokers_it_empties_and_fills_also_by_way_of_a_file(
    live: Live, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, goal: tuple[str, ...], empties: tuple[int, ...],
    fills: tuple[int, ...],
) -> None:  # fmt: skip
    write_model(live.model, *ORDERS)
    assert live.apply(*goal).exit_code == ExitCode.DONE
    file = tmp_path / "plan.json"
    written = CliRunner().invoke(cli, ("plan", *goal, "--config", str(live.config), "--to", str(file)))
    assert written.exit_code == ExitCode.DONE, written.output
    monkeypatch.setattr(
        "drover.cli.alter.submit", lambda _connection, commands, _request, **_options: live.submitted.extend(commands)
    )
    shown = tmp_path / "shown.json"
    shown.write_text(CliRunner().invoke(cli, ("plan", *goal, "--config", str(live.config), "-o", "json")).stdout)
    assert (
        CliRunner().invoke(cli, ("alter", str(shown), "--reason", "why", "--config", str(live.config))).exit_code == 0
    )
    allowed = ("alter", str(file), "--reason", "why", "--config", str(live.config), "--allow-emptied-brokers")
    assert CliRunner().invoke(cli, allowed).exit_code == ExitCode.DONE
    assert [(one.empties, one.fills) for one in live.submitted] == [(empties, fills)] * 3
    assert [one.allow_emptied_brokers for one in live.submitted] == [False, False, True]


def test_a_plan_of_others_that_was_checked_says_which_brokers_it_drains(live: Live, tmp_path: Path) -> None:
    write_model(live.model, *ORDERS[:2])
    given, held = tmp_path / "given.json", tmp_path / "held.json"
    lists = [{"topic": "orders", "partition": number, "replicas": [1, 2, 6]} for number in range(2)]
    given.write_text(json.dumps({"version": 1, "partitions": lists}))
    done = CliRunner().invoke(cli, ("plan", "check", str(given), "--model", str(live.model), "--to", str(held)))
    assert done.exit_code == ExitCode.DONE, done.output
    assert json.loads(held.read_text())["proposal"]["empties"] == [3]


def test_programs_get_the_proposal_and_the_outcomes_in_one_document(live: Live) -> None:
    done = live.apply("drain", "3", "--include-internal", "-o", "json")
    assert done.stdout == ""
    assert live.told["proposal"]["asked"] == "drain 3"
    assert json.dumps(live.told, default=str)


def test_what_is_not_met_is_submitted_only_as_partial(live: Live) -> None:
    write_model(live.model, *ORDERS[:1], OFFSETS)
    refused = live.apply("drain", "3")
    assert "nothing was submitted, since something is not met: --partial submits the rest" in refused.stderr
    assert (refused.exit_code, live.submitted) == (ExitCode.GUARDED, [])
    assert live.apply("drain", "3", "--partial").exit_code == ExitCode.DONE
    (command,) = live.submitted
    assert [one.topic for one in command.partitions] == ["orders"]
    assert not command.allow_drover_topics


def test_where_nothing_can_move_nothing_is_submitted(live: Live) -> None:
    write_model(live.model, *ORDERS, brokers=(*BROKERS[:3], FULL))
    full = live.apply("drain", "3", "--partial")
    assert full.stdout.startswith("drain 3: nothing can be moved.")
    assert "no-room" in full.stdout
    assert full.exit_code == ExitCode.GUARDED
    assert live.apply("drain", "9").exit_code == ExitCode.USAGE
    write_model(live.model, *ORDERS)
    assert live.apply("drain", "5").stdout == "drain 5: nothing has to move.\n"
    assert live.submitted == []


def test_the_first_interrupt_ends_the_search_and_the_second_one_the_command() -> None:
    before = signal.getsignal(signal.SIGINT)
    with stopping(None) as stop:
        assert not stop()
        signal.raise_signal(signal.SIGINT)
        assert stop()
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is before


def test_the_search_ends_when_its_time_is_over() -> None:
    with stopping(3600) as patient, stopping(0) as hasty:
        assert not patient()
        assert hasty()


def test_what_was_not_planned_in_time_is_named_and_ends_with_4(tmp_path: Path) -> None:
    model = write_model(tmp_path / "m.json", *ORDERS)
    arguments = ["plan", "drain", "3", "--model", model, "--time-limit", "0s", "-o", "json"]
    shown = CliRunner().invoke(cli, arguments, prog_name="drover")
    document = json.loads(shown.stdout)
    assert document["interrupted"]
    assert {one["code"] for one in document["unmet"]} == {"interrupted"}
    assert shown.exit_code == ExitCode.GUARDED


def test_the_way_to_submit_a_plan_can_be_pasted_whatever_the_file_is_called(tmp_path: Path) -> None:
    model, file = tmp_path / "model.json", tmp_path / "friday's plan.json"
    write_model(model)
    done = CliRunner().invoke(cli, ["plan", "drain", "3", "--model", str(model), "--to", str(file)])
    (told,) = (line for line in done.stderr.splitlines() if "Submit it with: " in line)
    words = shlex.split(told.partition("Submit it with: ")[2])
    assert words[:3] == ["drover", "alter", str(file)]
