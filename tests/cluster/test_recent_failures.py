"""A broker that hangs costs a process one attempt, not one for each of its connections to the cluster."""

import random
import socket

import pytest

from drover.cluster import recent_failures, wire
from drover.cluster.kafka import KafkaDriver
from drover.cluster.recent_failures import note_failure, servers_to_ask
from tests.journal.test_silent_brokers import connections_to
from tests.scripted import ScriptedKafka, serving


@pytest.fixture(autouse=True)
def nothing_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recent_failures, "_until", {})
    monkeypatch.setattr(recent_failures, "REMEMBERED_S", 60.0)


def test_servers_that_failed_lately_are_left_out_while_there_are_others() -> None:
    note_failure(("b", 9092))
    note_failure(("::1", 9092))
    assert servers_to_ask("a:9092,b:9092,b:9093,[::1]:9092") == ["a:9092", "b:9093"]
    assert servers_to_ask("b:9092") == ["b:9092"]


def test_a_failure_is_forgotten_after_some_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recent_failures, "REMEMBERED_S", 0.0)
    note_failure(("b", 9092))
    assert servers_to_ask("a:9092,b:9092") == ["a:9092", "b:9092"]


async def test_a_bootstrap_server_that_hangs_is_tried_once_for_all_connections_of_all_drivers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(wire, "CONNECT_ATTEMPT_MS", 500)
    # Kafka's client asks them in any order.
    monkeypatch.setattr(random, "shuffle", lambda _: None)
    monkeypatch.setattr(random, "choice", lambda servers: servers[0])
    kafka = ScriptedKafka()
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        async with serving(kafka):
            servers = f"127.0.0.1:{deaf.getsockname()[1]},{kafka.address}"
            for _ in range(2):
                driver = KafkaDriver("prod", servers, call_timeout_ms=20_000)
                await driver.identify()
                await driver.broker_versions()
                await driver.close()
        assert connections_to(deaf) == 1
