"""AWS MSK IAM: what AWS's own library signs is what both clients show to a broker, which writes it down.

No Kafka but Amazon's can check such a token.
"""

import asyncio
import base64
import json
import os
import re
import struct
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
import pytest_asyncio
from kafka.protocol.metadata import ApiVersionsResponse
from kafka.protocol.sasl import SaslAuthenticateResponse, SaslHandshakeResponse

from drover.cluster.kafka import KafkaDriver
from drover.errors import ClusterAccessError, LogUnavailableError
from drover.journal.connection import LogConnection
from drover.journal.producer import LogProducer
from drover.local import local_cluster
from drover.local.layout import HOST, BrokerSpec
from drover.local.ports import HIGHEST_PORT, is_free
from drover.settings.security import Security
from drover.testing.commands import Finished, PythonCommands
from drover.testing.shared_process import SharedProcess
from tests.logins.iam_gate import AUTHENTICATE, BEARER, HANDSHAKE, IAMGate
from tests.scripted import API_VERSIONS, VERSIONS, ScriptedKafka, serving

SECTION = "log.security"
HEAD = struct.Struct(">hhi")
# What AWS's programs are told; its files are not those of whoever runs the tests.
CREDENTIALS = {"AWS_ACCESS_KEY_ID": "AKIAOFNOBODY", "AWS_SECRET_ACCESS_KEY": "hunter2"}


class RecordingKafka(ScriptedKafka):
    """A broker that takes every token, and remembers it."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens: list[str] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._connections.add(writer)
        try:
            while True:
                (size,) = struct.unpack(">i", await reader.readexactly(4))
                content = await reader.readexactly(size)
                key, version, correlation = HEAD.unpack_from(content)
                self.tokens += [token.decode() for token in BEARER.findall(content)]
                answer = self._answer(key)
                answer.API_VERSION = version
                answer.with_header(correlation_id=correlation)
                writer.write(answer.encode(header=True, framed=True))
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            self._connections.discard(writer)
            writer.close()

    def _answer(self, key: int) -> Any:
        if key == API_VERSIONS:
            known = [(one, 0, newest) for one, newest in {**VERSIONS, HANDSHAKE: 1, AUTHENTICATE: 0}.items()]
            return ApiVersionsResponse(error_code=0, api_keys=known, throttle_time_ms=0)
        if key == HANDSHAKE:
            return SaslHandshakeResponse(error_code=0, mechanisms=["OAUTHBEARER"])
        if key == AUTHENTICATE:
            return SaslAuthenticateResponse(error_code=0, error_message=None, auth_bytes=b"", session_lifetime_ms=0)
        return super()._answer(key)


@pytest.fixture
def options(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    for name in ("AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path_factory.mktemp("aws") / "none"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path_factory.mktemp("aws") / "none"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    for name, value in CREDENTIALS.items():
        monkeypatch.setenv(name, value)
    security = Security("SASL_PLAINTEXT", "AWS_MSK_IAM", allow_plaintext_sasl=True, sasl_aws_region="eu-west-1")
    return security.client_options(SECTION)


def signed(token: str) -> tuple[str, dict[str, str]]:
    """Return the host and the parameters of the request that a token stands for."""
    url = urlsplit(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)).decode())
    return url.netloc, {name: value[0] for name, value in parse_qs(url.query).items()}


async def test_the_log_and_a_cluster_are_shown_what_aws_signed(options: dict[str, object]) -> None:
    kafka = RecordingKafka()
    async with serving(kafka):
        driver = KafkaDriver("prod", kafka.address, options)
        log = LogProducer(LogConnection(kafka.address, security=options), "test")
        try:
            assert (await driver.identify()).kafka_cluster_id == "one"
            await log.start()
        finally:
            await driver.close()
            await log.close()
    assert len(kafka.tokens) >= 2
    assert len(set(kafka.tokens)) == 1, "it is kept for its life"
    host, request = signed(kafka.tokens[0])
    assert host == "kafka.eu-west-1.amazonaws.com"
    assert request["Action"] == "kafka-cluster:Connect"
    assert request["X-Amz-Credential"].startswith("AKIAOFNOBODY/")
    assert request["X-Amz-Credential"].endswith("/eu-west-1/kafka-cluster/aws4_request")
    assert re.fullmatch("[0-9a-f]{64}", request["X-Amz-Signature"])
    assert "hunter2" not in str(request)


async def test_without_credentials_one_sentence_says_so(
    options: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in CREDENTIALS:
        monkeypatch.delenv(name)
    kafka = RecordingKafka()
    async with serving(kafka):
        driver = KafkaDriver("prod", kafka.address, options)
        with pytest.raises(ClusterAccessError, match=r"cannot be shown a token \(AWS gives no credentials"):
            await driver.identify()
        await driver.close()
        log = LogProducer(LogConnection(kafka.address, security=options), "test")
        with pytest.raises(
            LogUnavailableError, match="there is no token for the log's Kafka: AWS gives no credentials"
        ):
            await log.start()
    assert kafka.tokens == []


@dataclass
class IAMCluster:
    """A Kafka with a gate before each broker."""

    gates: tuple[IAMGate, ...]
    bootstrap: str
    nowhere: str

    async def drover(self, *arguments: str, **environment: str) -> Finished:
        section = "DROVER_CLUSTERS__DEFAULT__SECURITY__"
        settings = {
            f"{section}SECURITY_PROTOCOL": "SASL_PLAINTEXT",
            f"{section}ALLOW_PLAINTEXT_SASL": "true",
            f"{section}SASL_MECHANISM": "AWS_MSK_IAM",
            f"{section}SASL_AWS_REGION": "eu-west-1",
            "AWS_CONFIG_FILE": self.nowhere,
            "AWS_SHARED_CREDENTIALS_FILE": self.nowhere,
            "AWS_EC2_METADATA_DISABLED": "true",
            "PATH": os.environ["PATH"],
            "NO_COLOR": "1",
            "COLUMNS": "200",
        }
        flags = ("--bootstrap-server", self.bootstrap)
        return await PythonCommands().run((*arguments, *flags), {**settings, **CREDENTIALS, **environment}, "")


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def amazon(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[IAMCluster]:
    free = (port for port in range(HIGHEST_PORT + 300, HIGHEST_PORT + 700) if is_free(port))
    ports = {broker: (next(free), next(free)) for broker in (1, 2, 3)}

    def listeners(broker: BrokerSpec) -> str:
        gate, behind = ports[broker.id]
        own = f"PLAINTEXT://{HOST}:{broker.port}"
        return (
            f"listeners={own},IAM://{HOST}:{behind}\nadvertised.listeners={own},IAM://{HOST}:{gate}\n"
            "inter.broker.listener.name=PLAINTEXT\n"
            "listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,IAM:PLAINTEXT\n"
        )

    place = tmp_path_factory.mktemp("iam")
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(local_cluster(place, 3, start_nodes=SharedProcess(), more_settings=listeners))
        gates = tuple(IAMGate(HOST, *both) for both in ports.values())
        for gate in gates:
            await stack.enter_async_context(gate.open())
        bootstrap = ",".join(f"{HOST}:{gate}" for gate, _ in ports.values())
        yield IAMCluster(gates, bootstrap, str(place / "none"))


@pytest.mark.cluster
@pytest.mark.story
@pytest.mark.timeout(600)
async def test_spark_shows_what_amazons_jar_has_signed(amazon: IAMCluster) -> None:
    made = await amazon.drover("log", "init")
    assert made.code == 0, made.errors
    assert any(gate.tokens for gate in amazon.gates)
    assert not any(gate.requests for gate in amazon.gates), "these are Spark's"
    done = await amazon.drover("audit", "--section", "commands", "-o", "json")
    assert done.code == 0, done.errors
    assert json.loads(done.output)
    requests = [request for gate in amazon.gates for request in gate.requests]
    assert requests
    for request in requests:
        assert request["action"] == "kafka-cluster:Connect"
        assert request["x-amz-credential"].startswith("AKIAOFNOBODY/")
        assert request["x-amz-credential"].endswith("/eu-west-1/kafka-cluster/aws4_request")
        assert re.fullmatch("[0-9a-f]{64}", request["x-amz-signature"])
        assert "hunter2" not in str(request)
