"""The model of a cluster: in a file, and as the log and the cluster give it."""

import json
from typing import Any

import pytest

from drover.cli import model
from drover.cli.model import Source, knowledge_of, live_model, parse_model, save_model
from drover.errors import ConfigurationError
from drover.events.brokers import BlacklistSet
from drover.events.clusters import HoldRole
from drover.events.leadership import ListedBroker
from drover.fold.evolve import apply
from drover.inventory import Inventory, RegisteredBroker
from drover.planner.model import Broker, BrokerSet, ClusterModel, LogDir, Partition
from drover.planner.placement import Placement, with_placement
from drover.settings.settings import ClusterSettings, LogSettings, Settings
from drover.state.cluster import ClusterState
from drover.state.scheduling import HeldBroker

MODEL = ClusterModel.of(
    [
        Broker(2, "b", excluded=True, held=True, failing=True, demoted=True, demoted_topics=("t", "u")),
        Broker(1, "a", log_dirs=(LogDir("/d1", 100, 40), LogDir("/d2")), arriving_bytes=9),
        Broker(3, None, alive=False),
    ],
    [
        Partition("t", 1, (3,), None, (), internal=True, moving=True),
        Partition("t", 0, (2, 1), 1, (1,), 7, 0.5, topic_id="AbC"),
    ],
    "kafka-1",
)


def read(brokers: list[dict[str, Any]], *partitions: dict[str, Any], version: int = 1) -> ClusterModel:
    return parse_model(json.dumps({"version": version, "brokers": brokers, "partitions": partitions}), "m.json")


def test_what_is_saved_is_read_back_with_one_line_for_each_thing() -> None:
    text = save_model(MODEL)
    assert parse_model(text, "m.json") == MODEL
    assert '{"topic":"t","partition":0,"replicas":[2,1],"leader":1' in text
    assert len(text.splitlines()) == 3 + 3 + 2 + 2


def test_a_mark_of_the_byte_order_is_no_part_of_the_file() -> None:
    text = '{"version": 1, "brokers": [{"id": 1}], "partitions": []}'
    assert parse_model(f"\ufeff{text}", "c.json") == parse_model(text, "c.json")


def test_what_people_leave_out_is_a_healthy_cluster() -> None:
    model = read(
        [{"id": 1}, {"id": 2, "alive": False}],
        {"topic": "t", "partition": 0, "replicas": [2, 1]},
        {"topic": "t", "partition": 1, "replicas": [1], "leader": None},
        {"topic": "t", "partition": 2, "replicas": [2]},
    )
    assert [(one.leader, one.isr) for one in model.partitions] == [(1, (1,)), (None, (1,)), (None, ())]
    assert model.brokers == (Broker(1), Broker(2, alive=False))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "m.json is not JSON"),
        ("[]", "m.json is not a cluster model: Expected `object`"),
        ('{"version": 1, "brokers": []}', "missing required field `partitions`"),
        ('{"version": 2, "brokers": [], "partitions": []}', "has version 2; this Drover reads version 1 only"),
        ('{"version": 1, "brokers": [{"id": "x"}], "partitions": []}', r"\$.brokers\[0\].id"),
        ('{"version": 1, "brokers": [{"id": 1}, {"id": 1}], "partitions": []}', "names broker 1 twice"),
        (
            '{"version": 1, "brokers": [], "partitions": [{"topic": "t", "partition": 0, "replicas": [1, 1]}]}',
            "t:0 must have at least one replica, and each broker once",
        ),
        (
            '{"version": 1, "brokers": [], "partitions": [{"topic": "t", "partition": 0, "replicas": []}]}',
            "t:0 must have at least one replica",
        ),
    ],
)
def test_a_wrong_file_is_refused_with_the_place(text: str, said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        parse_model(text, "m.json")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("size_bytes", -1),
        ("size_bytes", 10**400),
        ("write_bytes_per_s", -0.5),
        ("write_bytes_per_s", 1e300),
        ("partition", -1),
        ("replicas", [-1]),
        ("leader", -1),
        ("isr", [2**31]),
    ],
)
def test_a_number_that_no_partition_has_is_refused_with_the_place(field: str, value: object) -> None:
    with pytest.raises(ConfigurationError, match=rf"m.json is not a cluster model: .*\$\.partitions\[0\]\.{field}"):
        read([{"id": 1}], {"topic": "t", "partition": 0, "replicas": [1], field: value})


@pytest.mark.parametrize("field", ["total_bytes", "free_bytes"])
@pytest.mark.parametrize("value", [-1, 10**400], ids=["negative", "huge"])
def test_a_disk_that_cannot_be_is_refused_with_the_place(field: str, value: int) -> None:
    with pytest.raises(ConfigurationError, match=rf"\$\.brokers\[0\]\.log_dirs\[0\]\.{field}"):
        read([{"id": 1, "log_dirs": [{"path": "/d", field: value}]}])
    with pytest.raises(ConfigurationError, match=r"\$\.brokers\[0\]\.arriving_bytes"):
        read([{"id": 1, "arriving_bytes": value}])


def test_a_partition_that_is_named_twice_is_refused() -> None:
    entry = {"topic": "t", "partition": 0, "replicas": [1]}
    with pytest.raises(ConfigurationError, match="names partition t:0 twice"):
        read([{"id": 1}], entry, entry)


def test_a_plan_gives_nothing_to_brokers_that_are_held_and_takes_off_them_what_it_likes() -> None:
    state = ClusterState("prod")
    for broker, role in ((4, HoldRole.BOTH), (5, HoldRole.SOURCE), (6, HoldRole.DESTINATION)):
        state.held_brokers[broker] = HeldBroker("ana", "a new disk", 0, role)
    assert knowledge_of(state).held == {4, 6}


def test_a_plan_knows_which_brokers_should_not_lead_which_topics() -> None:
    state = ClusterState("prod")
    listed = (ListedBroker(broker=4, topics=("orders",)),)
    event = BlacklistSet(cluster="prod", brokers=(3, 4), previous_brokers=(), by="ana", reason="x", entries=listed)
    apply(state, event, 0)
    known = knowledge_of(state)
    assert (set(known.demoted_everywhere), known.demoted) == ({3}, {"orders": {4}})


async def test_a_broker_that_does_not_answer_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    brokers = {
        1: RegisteredBroker(1, None, is_alive=True, directories=()),
        2: RegisteredBroker(2, None, is_alive=False),
        3: RegisteredBroker(3, None, is_alive=True),
    }

    async def look(*_: object) -> tuple[Inventory, None]:
        return Inventory("kafka", 0, brokers, {}, {}), None

    monkeypatch.setattr(model, "_look", look)
    settings = Settings(LogSettings("nowhere:1"), {"prod": ClusterSettings("nowhere:1")})
    await live_model(settings, ClusterState("prod"), Source())
    assert capsys.readouterr().err.strip() == (
        "broker 3 of cluster prod has not answered in time: its directories and the sizes of its replicas are unknown."
    )


def test_what_people_ask_of_a_cluster_is_saved_with_it() -> None:
    placement = Placement((BrokerSet("gold", (1, 2), ("orders*",)),), (("orders*", 2),), ("a",))
    bare = ClusterModel.of([Broker(1, "a"), Broker(2, "b")], [])
    made = with_placement(bare, placement)
    assert [broker.demoted for broker in made.brokers] == [False, True]
    assert parse_model(save_model(made), "saved") == made
