"""Right answers: unknown brokers are asked about, undo names later plans, and no client's objects are in a message."""

import asyncio
from pathlib import Path

import msgspec
import pytest
from aiokafka.errors import KafkaConnectionError
from click.testing import CliRunner, Result

from drover.cli.main import cli
from drover.client.history import ValidRecord
from drover.client.undo import Undo
from drover.client.views.history_rows import HistoryRow, Selection, Wanted
from drover.cluster.reach import check_reachable
from drover.errors import AppendUnknownError, ClusterUnavailableError
from drover.events.healing import HealEnd, HealEnded, HealPlanned
from drover.events.plans import PlanOpened
from drover.events.reassignments import ReassignmentCompleted, ReassignmentCreated
from drover.reasons import reason_of
from drover.state.cluster import ClusterState
from tests.client.log import CLUSTER, Writer
from tests.web.scene import Scene

FLAGS = ("--bootstrap-server", "127.0.0.1:1", "--cluster", CLUSTER, "--reason", "x")


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """What is sent to a cluster that has shown brokers 1 to 4."""

    async def folded(*_: object) -> ClusterState:
        state = ClusterState(CLUSTER)
        state.known_brokers = (1, 2, 3, 4)
        return state

    def keep(_log: object, commands: list[object], _request: object) -> tuple[()]:
        commands_sent.extend(commands)
        return ()

    commands_sent: list[object] = []
    monkeypatch.setattr("drover.cli.submission.fold_cluster", folded)
    monkeypatch.setattr("drover.cli.submission.send", keep)
    return commands_sent


def run(*arguments: str, answer: str | None = None) -> Result:
    return CliRunner().invoke(cli, [*arguments, *FLAGS], input=answer, prog_name="drover")


COMMANDS = pytest.mark.parametrize(
    "command",
    [
        ("broker", "hold", "99"),
        ("broker", "failed", "99"),
        ("leaders", "demote", "99"),
        ("leaders", "blacklist", "set", "1", "99"),
        ("heal", "start", "99"),
    ],
    ids=" ".join,
)


@COMMANDS
def test_an_unknown_broker_is_refused_where_nobody_can_be_asked(command: tuple[str, ...], sent: list[object]) -> None:
    result = run(*command)
    assert (result.exit_code, sent) == (2, [])
    assert "prod has no broker 99; it has 1, 2, 3, 4. Add --yes if it is meant" in result.stderr


@COMMANDS
def test_an_unknown_broker_is_asked_about(
    command: tuple[str, ...], sent: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("drover.cli.submission.can_ask", lambda: True)
    refused = run(*command, answer="n\n")
    assert "nothing was sent" in refused.stderr
    assert sent == []
    run(*command, answer="y\n")
    assert len(sent) == 1
    run(*command, "--yes")
    assert len(sent) == 2


def test_a_broker_that_the_cluster_has_is_not_asked_about(sent: list[object]) -> None:
    run("broker", "hold", "3")
    assert len(sent) == 1


def test_undo_names_the_plans_that_have_moved_its_partitions_since() -> None:
    writer, undo = Writer(), Undo(CLUSTER, "friday")
    writer.begin()

    def moved(plan: str, partition: int, original: tuple[int, ...], target: tuple[int, ...]) -> None:
        key = {"cluster": CLUSTER, "topic": "orders", "partition": partition}
        begun = {**key, "topic_id": "QBjRZu1kRSm0SVvmuSHUxg", "plan": plan, "original": original, "target": target}
        opened = PlanOpened(cluster=CLUSTER, plan=plan, by="ann", reason="r")
        created = msgspec.convert(begun, ReassignmentCreated)
        done = msgspec.convert({**key, "replicas": target}, ReassignmentCompleted)
        undo.see([ValidRecord(0, 2, writer.batch(opened, created, done))])

    moved("friday", 0, (1, 2), (2, 3))
    moved("friday", 1, (1, 2), (2, 3))
    assert undo.later_plans() == {}
    moved("monday", 0, (2, 3), (3, 4))
    assert undo.later_plans() == {"monday": 1}
    assert len(undo.targets()) == 2


def test_a_message_has_no_objects_of_a_client() -> None:
    error = KafkaConnectionError("Unable to bootstrap from [('kafka', 9092, <AddressFamily.AF_UNSPEC: 0>)]")
    assert reason_of(error) == "none of its bootstrap servers answers"


def test_an_append_of_unknown_outcome_is_answered_with_the_way_to_send_it_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def unknown(*_: object) -> None:
        raise AppendUnknownError("drover.alter/3: it is unknown whether the record was written (no answer in time)")

    monkeypatch.setattr("drover.cli.submission._send", unknown)
    result = run("freeze", "--id", "f1")
    assert result.exit_code == 3
    assert "(no answer in time). Send it again with --id f1: the same id takes effect once" in result.stderr


@pytest.mark.parametrize(
    ("bootstrap", "why"),
    [
        ("127.0.0.1:1", "127.0.0.1:1: Connection refused"),
        ("no.such.host.invalid:9092", "the host no.such.host.invalid is unknown"),
    ],
)
def test_where_nobody_listens_it_is_said_for_each_address(bootstrap: str, why: str) -> None:
    with pytest.raises(ClusterUnavailableError, match="no bootstrap server can be reached") as refused:
        asyncio.run(check_reachable(bootstrap))
    assert why in str(refused.value)


def test_heal_status_tells_what_was_healed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene()
    scene.say(HealPlanned(cluster=CLUSTER, heal="heal-1", number=1, brokers=(3,), chunks=1, partitions=2))
    scene.say(HealEnded(cluster=CLUSTER, heal="heal-1", why=HealEnd.DONE))
    selection = Selection(Wanted())
    selection.add(scene.news)

    async def rows(*_: object) -> list[HistoryRow]:
        return selection.rows()

    monkeypatch.setattr("drover.cli.brokers.read_rows", rows)
    monkeypatch.setattr("drover.cli.brokers._states", lambda *_: [scene.view.log.cluster(CLUSTER)])
    config = tmp_path / "drover.toml"
    config.write_text('[log]\nbootstrap = "127.0.0.1:1"\n')
    shown = CliRunner().invoke(cli, ["heal", "status", "--since", "30d", "--config", str(config)]).stdout.splitlines()
    assert "healing is not set up" in shown[0]
    assert [line.partition(" prod: ")[2] for line in shown[1:]] == [
        "heal-1 replaces broker 3: 2 partitions in 1 chunks",
        "heal-1 has ended: done",
    ]
