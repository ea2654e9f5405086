"""What Python programs need is exported from `drover.client`, and the page that makes the promise names all of it."""

import asyncio
import os
import signal
from pathlib import Path
from typing import Self, get_args

import msgspec
import pytest

import drover.client
from drover.client import Client, ClusterState, ConfigurationError, Freeze, LogConnection, SyncClient, events
from drover.client.commands import payload_of
from drover.events.bounds import INTAKE_BY, INTAKE_ID_PREFIX
from drover.events.commands import AnyCommand, RequestRefused
from drover.events.records import AnyEvent
from tests.architecture.repository import ROOT

PAGE = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")


def test_every_command_that_a_client_may_send_is_exported() -> None:
    # Only the intake of ZooKeeper may send this one.
    names = {command.__name__ for command in get_args(AnyCommand) if command is not RequestRefused}
    assert names <= set(drover.client.__all__)


def test_every_event_is_exported() -> None:
    assert {event.__name__ for event in get_args(AnyEvent)} | {"AnyEvent"} == set(events.__all__)


def test_every_struct_in_an_exported_command_is_exported() -> None:
    structs = set()
    for command in get_args(AnyCommand):
        for field in msgspec.structs.fields(command):
            structs |= {kind.__name__ for kind in _structs_in(field.type)}
    assert structs == {"BlacklistEntry", "LeftoverEntries", "LeftoverRates", "PartitionName", "PartitionTarget"}
    assert structs <= set(drover.client.__all__)


def _structs_in(kind: object) -> set[type[msgspec.Struct]]:
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return {kind}
    return set().union(*map(_structs_in, get_args(kind)))


@pytest.mark.parametrize("name", drover.client.__all__)
def test_the_page_of_the_client_names_each(name: str) -> None:
    assert f"`{name}`" in PAGE


async def test_what_is_no_command_is_a_type_error_that_shows_the_call() -> None:
    client = Client(LogConnection("nowhere:1"))
    freeze = {"type": "freeze", "id": "f1", "cluster": "prod", "by": "me", "reason": "why"}
    with pytest.raises(TypeError, match=r"a dict is not a command: write Freeze\(id='f1', cluster='prod', by='me', re"):
        await client.submit(freeze)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"a str is not a command: write a struct such as Freeze\(id=\.\.\., cluster="):
        await client.send("freeze")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("command", "why"),
    [
        (Freeze(id="with blanks", cluster="prod", by="me", reason="why"), "id"),
        (Freeze(id="f1", cluster="PROD", by="me", reason="why"), "cluster"),
        (Freeze(id="f1", cluster="prod", by="me", reason=" "), "reason is blank"),
        (Freeze(id="f1", cluster="prod", by="\udcff", reason="why"), "not UTF-8"),
        (Freeze(id=f"{INTAKE_ID_PREFIX}1", cluster="prod", by="me", reason="why"), "choose another id"),
        (Freeze(id="f1", cluster="prod", by=INTAKE_BY, reason="why"), "write your own name"),
    ],
)
def test_a_command_that_workers_would_put_aside_is_refused_before_it_is_sent(command: Freeze, why: str) -> None:
    with pytest.raises(ConfigurationError, match=why):
        payload_of(command)


def test_a_client_that_knows_no_cluster_says_how_to_choose_one() -> None:
    with pytest.raises(ConfigurationError, match='choose a cluster with cluster="NAME"'):
        _ = Client(LogConnection("nowhere:1")).cluster


def test_the_blocking_client_is_used_in_its_context() -> None:
    client = SyncClient(Client(LogConnection("nowhere:1"), "prod"))
    with pytest.raises(RuntimeError, match="this client is not connected"):
        client.state()
    with pytest.raises(RuntimeError, match="this client is not connected"):
        next(iter(client.replay()))


SETTINGS = """
[log]
bootstrap = "kafka-1:9092"
prefix = "team"
[clusters.prod]
bootstrap = "prod-1:9092"
"""


def test_a_client_takes_log_and_cluster_from_the_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "drover.toml"
    file.write_text(SETTINGS, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    for client in (Client.from_settings(file), Client.from_settings(), SyncClient.from_settings(str(file))):
        assert client.cluster == "prod"
    assert Client.from_settings(file).connection.topics.events == "team.events"
    file.write_text(f'{SETTINGS}[clusters.test]\nbootstrap = "test-1:9092"\n', encoding="utf-8")
    assert Client.from_settings(cluster="test").cluster == "test"
    with pytest.raises(ConfigurationError, match="cluster elsewhere is not configured"):
        Client.from_settings(cluster="elsewhere")
    with pytest.raises(ConfigurationError, match='choose a cluster with cluster="NAME"'):
        _ = Client.from_settings().cluster


def test_ctrl_c_ends_a_wait_of_the_blocking_client(monkeypatch: pytest.MonkeyPatch) -> None:
    ended: list[str] = []

    class Endless(Client):
        async def __aenter__(self) -> Self:
            return self

        async def __aexit__(self, *_: object) -> None:
            ended.append("the connection")

        async def state(self, *_: object, **__: object) -> ClusterState:
            os.kill(os.getpid(), signal.SIGINT)
            try:
                await asyncio.Event().wait()
                raise AssertionError("it is never set")
            finally:
                ended.append("the wait")

    with pytest.raises(KeyboardInterrupt), SyncClient(Endless(LogConnection("nowhere:1"), "prod")) as client:
        client.state()
    assert ended == ["the wait", "the connection"]
