"""Wrong input of every kind is answered with the remedy, before anything is sent."""

import json
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Self

import pytest
from click.testing import CliRunner

from drover.cli import alter, completion, history, status
from drover.cli.history import Showing
from drover.cli.main import cli
from drover.client.answers import Answer
from drover.client.history import FoldedLog, ValidRecord
from drover.client.live_view import View
from drover.client.views.history_rows import Selection, Wanted
from drover.events.refusals import Refusal, RefusalCode
from tests.client.log import CLUSTER, outcome
from tests.web.scene import Scene, keys

NOWHERE = '[log]\nbootstrap = "127.0.0.1:1"\n[clusters.prod]\nbootstrap = "127.0.0.1:1"\n'
FILES = {
    "drover.toml": NOWHERE,
    "misspelt.toml": NOWHERE.replace("[clusters.prod]\nbootstrap", "[clusters.prod]\nbootstrp"),
    "plan.json": json.dumps({"version": 1, "partitions": [{"topic": "t", "partition": 0, "replicas": [1, 2]}]}),
    "cut.json": '{"version": 1, "partitions": [',
    "topics.json": json.dumps({"version": 1, "topics": []}),
    "model.json": json.dumps(
        {
            "version": 1,
            "brokers": [{"id": 1, "rack": "a"}, {"id": 2, "rack": "b"}, {"id": 3, "rack": "c"}],
            "partitions": [{"topic": "orders", "partition": 0, "replicas": [1, 2]}],
        }
    ),
}
# What is typed, `#` standing for `--reason x`, and what the answer says.
TYPED = (
    ("statsu", "Did you mean `drover status`"),
    ("drain 1", "Did you mean `drover plan drain`"),
    ("status --clutser prod", "Did you mean --cluster?"),
    ("status --cluster prd", "cluster prd is not configured (configured: prod)"),
    ("status --state moving", "is not one of 'pending', 'prepared'"),
    ("status -o xml", "is not one of 'table', 'json'"),
    ("status --config gone.toml", "gone.toml cannot be read (No such file or directory); name another with --config"),
    ("status --config misspelt.toml", "bootstrp is no setting; did you mean bootstrap?"),
    ("status --bootstrap-server kafka", "must be host:port[,host:port...], such as kafka-1:9092"),
    ("describe", "no bootstrap server can be reached (127.0.0.1:1: Connection refused): check the addresses"),
    ("describe --topic ordrs --model model.json", "no topic of the cluster is called ordrs. Did you mean orders?"),
    ("describe --broker 9 --model model.json", "there is no broker 9; there are 1, 2, 3"),
    ("plan drain 99 --model model.json", "The brokers are 1, 2, 3."),
    ("plan drain one --model model.json", "'one' is not a list of broker ids: write 3,4"),
    ("plan set-rf ordrs 3 --model model.json", "ordrs is not a topic of the cluster. Did you mean orders?"),
    ("plan evacuate z --model model.json", "no broker is in rack z: there are a, b, c"),
    ("plan drain 1 --throttle fast --model model.json", "write 10MB/s, 50MiB or a number of bytes per second"),
    ("plan drain 1 --disk-limit 850% --model model.json", "write a percentage up to 100%, such as 85%"),
    ("plan drain 1 --time-limit soon --model model.json", "write 500ms, 30s, 5m, 2h or 1d"),
    ("plan drain 1 --to 3 --model model.json", "--out"),
    ("plan balance --max-bytes lots --model model.json", "write 500GB, 2TiB or a number of bytes"),
    ("plan drain 1 --model plan.json", "; `drover describe --save` writes one"),
    ("plan drain 1 --model gone.json", "the cluster model gone.json cannot be read: No such file"),
    ("alter gone.json #", "the plan gone.json cannot be read: No such file"),
    ("alter cut.json #", "cut.json is not JSON: it ends too early"),
    ("alter topics.json #", "give the output of --generate, or let `drover plan` propose a plan"),
    ("alter plan.json", "Missing option '--reason'"),
    ("alter plan.json --windows someday #", "is no window: write one like"),
    ("cancel --plan friday #", "choose --rollback or --stop"),
    ("cancel --rollback --partition orders/3 #", "write TOPIC:PARTITION, such as orders:3"),
    ("throttle set friday 10Mbit #", "write 1.25MB/s if bits are meant, 10MB/s if not"),
    ("throttle set 50 #", "write 10MB/s, or add --force"),
    ("limits set max_moves_per_brokr=10 #", "is it max_moves_per_broker?"),
    ("limits set max_moves_per_broker #", "is not NAME=VALUE, such as max_moves_per_broker=10"),
    ("limits set max_moves_per_broker=many #", "max_moves_per_broker must be a whole number, and is 'many'"),
    ("broker hold three #", "'three' is not a broker id: write a number, such as 3"),
    ("history --since yesterday", "write 2h for two hours ago, 2026-10-01"),
    ("state --at soon", "write an offset, -2h for two hours ago"),
    ("worker --listen nowhere", "such as 127.0.0.1:8150"),
    ("completion powershell", "is not one of 'bash', 'zsh', 'fish'"),
)


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.delenv("DROVER_CONFIG", raising=False)
    for name, text in FILES.items():
        Path(name).write_text(text)


@pytest.mark.parametrize(("typed", "remedy"), TYPED, ids=[typed for typed, _ in TYPED])
def test_wrong_input_is_answered_with_the_remedy(typed: str, remedy: str) -> None:
    words = [word for part in typed.split() for word in (("--reason", "x") if part == "#" else (part,))]
    result = CliRunner().invoke(cli, words, prog_name="drover")
    assert result.exit_code in {1, 2}
    assert remedy in result.output
    assert "Traceback" not in result.output


def moving() -> View:
    scene = Scene()
    scene.open_plan("friday", "ann", "drain broker 3", None, keys("orders", 2))
    return scene.view


def test_a_plan_that_is_not_there_is_answered_with_the_similar_one(monkeypatch: pytest.MonkeyPatch) -> None:
    async def seen(*_: object) -> View:
        return moving()

    monkeypatch.setattr(status, "look", seen)
    result = CliRunner().invoke(cli, ["status", "--plan", "fryday"], prog_name="drover")
    assert (result.exit_code, result.stderr) == (1, "Error: there is no plan fryday. Did you mean friday?\n")


def test_the_history_of_what_is_not_there_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene()
    scene.open_plan("friday", "ann", "drain broker 3", None, keys("orders", 2))

    class Reader:
        def __init__(self, *_: object) -> None: ...

        async def __aenter__(self) -> Self:
            return self

        async def __aexit__(self, *_: object) -> None: ...

    async def opened(*_: object) -> FoldedLog:
        return scene.view.log

    async def read(*_: object) -> AsyncGenerator[list[ValidRecord], None]:
        yield scene.news

    monkeypatch.setattr(history, "LogReader", Reader)
    monkeypatch.setattr(history, "open_log", opened)
    monkeypatch.setattr(history, "read_log", read)
    for words, said in (
        (["--plan", "fryday"], "there is no plan fryday in the log. Did you mean friday?"),
        (["--topic", "order"], "there is no topic order in the log. Did you mean orders?"),
        (["--partition", "nosuch:0"], "there is no topic nosuch in the log."),
    ):
        result = CliRunner().invoke(cli, ["history", *words], prog_name="drover")
        assert (result.exit_code, result.stderr) == (1, f"Error: {said}\n")
    told = CliRunner().invoke(cli, ["history", "--plan", "friday", "--limit", "1"], prog_name="drover")
    assert "ann asked to move 2 partitions in plan friday: drain broker 3" in told.stdout
    assert "plan-opened" in CliRunner().invoke(cli, ["history", "--events"], prog_name="drover").stdout


def test_rows_are_told_as_they_come(capsys: pytest.CaptureFixture[str]) -> None:
    scene = Scene()
    scene.open_plan("friday", "ann", "drain broker 3", None, keys("orders", 2))
    selection = Selection(Wanted(cluster=CLUSTER))
    selection.add(scene.news)
    rows = selection.take()
    Showing("table", None, as_events=False).tell(rows)
    assert capsys.readouterr().out.endswith(" prod: ann asked to move 2 partitions in plan friday: drain broker 3\n")
    Showing("jsonl", None, as_events=False).tell(rows)
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["what"] for line in lines][1:3] == ["alter accepted", "plan-opened"]
    assert selection.take() == []


def test_an_alter_of_a_topic_that_is_not_there_is_answered_with_the_similar_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = Refusal(RefusalCode.UNKNOWN_TOPIC_OR_PARTITION, "it does not exist", "ordrs", 0)
    answer = Answer(outcome("a1", type="alter", plan="p", refusals=(refused,)), 0, 7, 0)
    monkeypatch.setattr(alter, "send", lambda *_: (answer,))
    monkeypatch.setattr(completion, "names", lambda *_: ["orders", "payments"])
    plan = tmp_path / "ordrs.json"
    plan.write_text('{"version": 1, "partitions": [{"topic": "ordrs", "partition": 0, "replicas": [1, 2]}]}')
    words = ["alter", str(plan), "--reason", "x", "--bootstrap-server", "127.0.0.1:1", "--cluster", "prod"]
    result = CliRunner().invoke(cli, words, prog_name="drover")
    assert "There is no topic ordrs. Did you mean orders?" in result.stderr
