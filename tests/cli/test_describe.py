"""`drover describe` on clusters in files: every view, the stock format, and what is not as it should be."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from drover.cli.main import cli
from drover.cli.model import parse_model
from drover.cli.plan_file import parse_plan
from tests.cli.models import BROKERS, GIGABYTE, OFFSETS, ORDERS, broker, partition, write_model


def describe(model: str, *arguments: str) -> Result:
    return CliRunner().invoke(cli, ["describe", "--model", model, *arguments], prog_name="drover")


@pytest.fixture
def healthy(tmp_path: Path) -> str:
    return write_model(tmp_path / "model.json")


@pytest.fixture
def ailing(tmp_path: Path) -> str:
    """Broker 2 is dead, 9 is known from a list only, 4 is failing; every partition lacks something else."""
    brokers = (BROKERS[0], broker(2, "b", alive=False), BROKERS[2], broker(4, "a", failing=True), *BROKERS[4:])
    return write_model(
        tmp_path / "ailing.json",
        partition("t", 0, 2, leader=None, isr=[]),
        partition("t", 1, 1, 9, leader=1, isr=[1]),
        partition("t", 2, 1, 4),
        partition("t", 3, 3, 1, leader=1, isr=[1, 3]),
        partition("t", 4, 5, 6, moving=True),
        brokers=brokers,
    )


def test_brokers_are_listed_with_their_load_and_the_balance(healthy: str) -> None:
    shown = describe(healthy)
    assert shown.exit_code == 0
    first = next(line.split() for line in shown.stdout.splitlines() if line.startswith("1 "))
    assert first == ["1", "a", "alive", "7", "3", "3", "7.0", "GB", "1.0", "TB", "500.0", "GB"]
    assert "replicas 2.000/0.000" in shown.stdout
    assert "2 topics, 7 partitions, 21 replicas, 21.0 GB on 6 brokers in 3 racks." in shown.stdout
    assert "Every partition is as it should be." in shown.stdout
    assert describe(healthy, "--broker").stdout == shown.stdout


def test_an_unreachable_broker_is_named_with_the_remedy_and_what_it_leads_is_not_without_a_leader(
    tmp_path: Path,
) -> None:
    model = write_model(
        tmp_path / "hidden.json",
        partition("t", 0, 3, 1, leader=None, isr=[3, 1], leader_unreachable=True),
        partition("t", 1, 1, 3),
        brokers=(*BROKERS[:2], broker(3, None, unreachable=True)),
    )
    shown = describe(model)
    assert shown.exit_code == 0
    assert next(line for line in shown.stdout.splitlines() if line.startswith("3 ")).split()[1] == "unreachable"
    said = " ".join(shown.stdout.split())
    assert "Broker 3 is unreachable: it lives, but does not offer the listener by which Drover connects;" in said
    assert "add that listener, or give Drover a bootstrap that all brokers offer." in said
    assert "Partitions: 1 led by an unreachable broker" in said
    assert "without a leader" not in said
    assert "Dead" not in said
    (first, _) = describe(model, "--topic", "t", "-o", "jsonl").stdout.splitlines()
    assert "led by an unreachable broker" in json.loads(first)["notes"]


def test_what_is_not_as_it_should_be_is_counted_and_named(ailing: str) -> None:
    shown = describe(ailing)
    assert "Dead: broker 2." in shown.stdout
    assert (
        "Partitions: 1 without a leader, 2 under-replicated, 1 moving, 1 in fewer racks than possible, "
        "1 not led by their preferred leader." in shown.stdout
    )
    rows = [json.loads(line) for line in describe(ailing, "--topic", "t", "-o", "jsonl").stdout.splitlines()]
    assert [row["notes"] for row in rows] == [
        ["no leader", "under-replicated"],
        ["under-replicated"],
        ["in fewer racks than possible"],
        ["not led by its preferred leader"],
        ["moving"],
    ]
    states = {
        row["broker"]: row["state"] for row in map(json.loads, describe(ailing, "-o", "jsonl").stdout.splitlines())
    }
    assert states == {1: "alive", 2: "dead", 3: "alive", 4: "failing", 5: "alive", 6: "alive", 9: "dead"}


def test_cordoned_failed_and_shared_directories_are_named(tmp_path: Path) -> None:
    def directory(path: str, free: int, **more: object) -> dict[str, object]:
        return {"path": path, "total_bytes": 1000 * GIGABYTE, "free_bytes": free * GIGABYTE, **more}

    shared = [directory("/d1", 300), directory("/d2", 300)]
    partly = [directory("/d1", 300), directory("/d2", 200, cordoned=True)]
    failed = [directory("/d1", 300), {"path": "/d2", "code": 56}]
    brokers = (
        broker(1, "a", log_dirs=shared),
        broker(2, "b", log_dirs=partly),
        broker(3, "c", log_dirs=[directory("/d1", 300, cordoned=True)]),
        broker(4, "a", log_dirs=failed, failing=True),
    )
    model = write_model(tmp_path / "model.json", *ORDERS, brokers=brokers)
    shown, failure = describe(model), "Log directory /d2 of broker 4 has failed (Kafka error 56)"
    assert shown.stdout.splitlines()[-4:] == [
        "Broker 3 is cordoned, with all of its log directories (cordoned.log.dirs): it receives no replicas.",
        f"{failure}: the broker receives no replicas. Repair the directory and restart the broker.",
        "On broker 1 /d1, /d2 have the same size and the same free bytes: they count as one volume.",
        "On broker 2 /d2 is cordoned: only the room of the others counts.",
    ]
    rows = {row["broker"]: row for row in map(json.loads, describe(model, "-o", "jsonl").stdout.splitlines())}
    states = {number: row["state"] for number, row in rows.items()}
    assert states == {1: "alive", 2: "alive", 3: "cordoned", 4: "failing"}
    assert [row["disk_free_bytes"] // GIGABYTE for row in rows.values()] == [300, 500, 300, 300]
    assert [(one["path"], one["volume"]) for one in rows[1]["log_directories"]] == [("/d1", 1), ("/d2", 1)]
    assert [one["is_cordoned"] for one in rows[2]["log_directories"]] == [False, True]
    assert [one["code"] for one in rows[4]["log_directories"]] == [0, 56]
    stock = describe(model, "-o", "json")
    assert len(parse_plan(stock.stdout, "plan").targets) == 6
    assert "Broker 3 is cordoned" in stock.stderr


def test_topics_and_racks_are_listed(healthy: str) -> None:
    topics = [json.loads(line) for line in describe(healthy, "--topic", "-o", "jsonl").stdout.splitlines()]
    assert [(row["topic"], row["partitions"], row["bytes"]) for row in topics] == [("orders", 6, 18 * GIGABYTE)]
    both = describe(healthy, "--topic", "--include-internal").stdout
    assert "__consumer_offsets" in both
    racks = [json.loads(line) for line in describe(healthy, "--rack", "-o", "jsonl").stdout.splitlines()]
    assert [(row["rack"], row["brokers"], row["replicas"]) for row in racks] == [
        ("a", [1, 4], 7),
        ("b", [2, 5], 7),
        ("c", [3, 6], 7),
    ]
    assert racks[0]["disk_free_bytes"] == 1000 * GIGABYTE


@pytest.mark.parametrize(
    ("arguments", "count"),
    [((), 6), (("--topic", "ord*"), 6), (("--broker", "2"), 6), (("--rack", "b"), 6), (("--broker", "4"), 0)],
)
def test_json_is_the_stock_format_of_the_partitions_in_question(
    healthy: str, arguments: tuple[str, ...], count: int
) -> None:
    shown = describe(healthy, *arguments, "-o", "json")
    document = json.loads(shown.stdout)
    assert document["version"] == 1
    assert len(document["partitions"]) == count
    assert set(document["partitions"][0] if count else ORDERS[0]) >= {"topic", "partition", "replicas"}


def test_json_can_be_submitted_as_it_is_and_says_what_it_leaves_out(healthy: str) -> None:
    shown = describe(healthy, "-o", "json")
    targets = parse_plan(shown.stdout, "p.json").targets
    assert [(one.topic, one.partition, one.replicas) for one in targets] == [
        (row["topic"], row["partition"], tuple(row["replicas"])) for row in ORDERS
    ]
    assert "1 partition of internal topics is left out" in shown.stderr
    whole = describe(healthy, "-o", "json", "--include-internal")
    assert len(json.loads(whole.stdout)["partitions"]) == 7
    assert whole.stderr == ""


def test_a_list_that_is_on_its_way_is_not_offered_for_submission(ailing: str) -> None:
    shown = describe(ailing, "-o", "json")
    assert [one["partition"] for one in json.loads(shown.stdout)["partitions"]] == [0, 1, 2, 3]
    assert "1 partition left out because of a move under way." in shown.stderr


def test_a_saved_cluster_is_the_same_cluster(healthy: str, tmp_path: Path) -> None:
    saved = tmp_path / "saved.json"
    done = describe(healthy, "--save", str(saved))
    assert (done.exit_code, done.stdout) == (0, "")
    assert parse_model(saved.read_text(), "s") == parse_model(Path(healthy).read_text(), "m")
    assert describe(str(saved)).stdout == describe(healthy).stdout


def test_what_is_written_is_shown_where_it_is_known(tmp_path: Path) -> None:
    model = write_model(tmp_path / "m.json", partition("t", 0, 1, 2, write_bytes_per_s=1500.0), OFFSETS)
    assert "1.5 kB/s" in describe(model).stdout
    assert "written" not in describe(write_model(tmp_path / "n.json")).stdout


def test_a_cluster_that_is_not_there_is_told_soon_with_1(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("drover.cli.model.CONNECT_TIMEOUT_MS", 300)
    config = tmp_path / "drover.toml"
    config.write_text('[log]\nbootstrap = "127.0.0.1:1"\n[clusters.prod]\nbootstrap = "127.0.0.1:1"\n')
    shown = CliRunner().invoke(cli, ["describe", "--config", str(config)], prog_name="drover")
    assert "no bootstrap server can be reached (127.0.0.1:1: Connection refused)" in shown.stderr
    assert (shown.exit_code, shown.stdout) == (1, "")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--broker", "9" * 5000], "there is no broker 999"),
        (["--topic", "nope"], "no topic of the cluster is called nope"),
        (["--broker", "7"], "there is no broker 7; there are 1, 2, 3, 4, 5, 6"),
        (["--broker", "one"], "there is no broker one"),
        (["--rack", "z"], "there is no rack z; there are: a, b, c"),
        (["--rack", "--topic"], "choose one of --topic, --broker and --rack"),
        (["--load", "5s"], "choose one"),
        (["--save", "/no/such/directory/file"], "the cluster model /no/such/directory/file cannot be written"),
    ],
)
def test_wrong_input_ends_with_2_and_says_what_is_wrong(healthy: str, arguments: list[str], said: str) -> None:
    shown = describe(healthy, *arguments)
    assert said in shown.stderr
    assert shown.exit_code == 2
    assert shown.stdout == ""


def test_a_partition_that_moves_shows_where_it_goes_and_what_kafka_adds_and_removes(tmp_path: Path) -> None:
    moving = partition("t", 0, 1, 2, 4, moving=True, target=[4, 2], adding=[4], removing=[1])
    brokers = (*BROKERS[:5], broker(6, "c", filled_by="plan friday (ann)"))
    model = write_model(tmp_path / "model.json", moving, partition("t", 1, 1, 2), brokers=brokers)
    shown = describe(model, "--topic", "t")
    heads, _, first, second = (line.split("  ") for line in shown.stdout.splitlines()[:4])
    assert {"target", "adding", "removing"} <= {head.strip() for head in heads}
    assert [cell.strip() for cell in first if cell.strip()][:5] == ["t:0", "1, 2, 4", "4, 2", "4", "1"]
    assert [cell.strip() for cell in second if cell.strip()][:3] == ["t:1", "1, 2", "1"]
    rows = [json.loads(line) for line in describe(model, "--topic", "t", "-o", "jsonl").stdout.splitlines()]
    assert [(row["target"], row["adding"], row["removing"]) for row in rows] == [([4, 2], [4], [1]), (None, [], [])]
    assert "target" not in describe(write_model(tmp_path / "idle.json"), "--topic", "orders").stdout
    assert "being filled" in describe(model).stdout
    saved = tmp_path / "saved.json"
    describe(model, "--save", str(saved))
    assert parse_model(saved.read_text(), "saved") == parse_model(Path(model).read_text(), "model")
