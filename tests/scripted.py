"""A Kafka of one broker that answers what a test tells it to, over real sockets."""

import asyncio
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from kafka.protocol.admin import AlterPartitionReassignmentsResponse, ListPartitionReassignmentsResponse
from kafka.protocol.metadata import ApiVersionsResponse, MetadataResponse
from kafka.protocol.producer import InitProducerIdResponse, ProduceResponse

PRODUCE, METADATA, API_VERSIONS, INIT_PRODUCER, ALTER, LIST = 0, 3, 18, 22, 45, 46
VERSIONS = {PRODUCE: 7, METADATA: 5, API_VERSIONS: 2, INIT_PRODUCER: 0, ALTER: 0, LIST: 0}
TOPIC = "scripted"
BROKER = 1
_HEAD = struct.Struct(">hhi")


class ScriptedKafka:
    """A broker that answers producers with the error codes in `codes`, and records each request's API key in `asked`.

    It has one topic of one partition.
    """

    def __init__(self, cluster_id: str = "one", host: str = "127.0.0.1") -> None:
        self.cluster_id, self.host = cluster_id, host
        self.asked: list[int] = []
        self.codes = {PRODUCE: 0, INIT_PRODUCER: 0}
        self.port = 0
        self._connections: set[asyncio.StreamWriter] = set()

    @property
    def address(self) -> str:
        """Where it listens."""
        return f"{self.host}:{self.port}"

    def hang_up(self) -> None:
        """Close all connections."""
        for connection in self._connections:
            connection.close()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one connection until its end."""
        self._connections.add(writer)
        try:
            while True:
                (size,) = struct.unpack(">i", await reader.readexactly(4))
                key, version, correlation = _HEAD.unpack_from(await reader.readexactly(size))
                self.asked.append(key)
                answer = self._answer(key)
                answer.API_VERSION = version  # before the header, which has none in an answer
                answer.with_header(correlation_id=correlation)
                writer.write(answer.encode(header=True, framed=True))
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            self._connections.discard(writer)
            writer.close()

    def _answer(self, key: int) -> Any:
        if key == API_VERSIONS:
            known = [(one, 0, newest) for one, newest in VERSIONS.items()]
            return ApiVersionsResponse(error_code=0, api_keys=known, throttle_time_ms=0)
        if key == METADATA:
            return MetadataResponse(
                throttle_time_ms=0,
                brokers=[(BROKER, self.host, self.port, None)],
                cluster_id=self.cluster_id,
                controller_id=BROKER,
                topics=[(0, TOPIC, False, [(0, 0, BROKER, [BROKER], [BROKER], [])])],
            )
        if key == INIT_PRODUCER:
            return InitProducerIdResponse(
                throttle_time_ms=0, error_code=self.codes[key], producer_id=7, producer_epoch=0
            )
        if key == PRODUCE:
            written = [(TOPIC, [(0, self.codes[key], 0, -1, 0)])]
            return ProduceResponse(responses=written, throttle_time_ms=0)
        if key == ALTER:
            return AlterPartitionReassignmentsResponse(
                throttle_time_ms=0, error_code=0, error_message=None, responses=[]
            )
        return ListPartitionReassignmentsResponse(throttle_time_ms=0, error_code=0, error_message=None, topics=[])


@asynccontextmanager
async def serving(*kafkas: ScriptedKafka) -> AsyncIterator[None]:
    """Let them listen for the length of a block."""
    servers = [await asyncio.start_server(kafka.serve, kafka.host, kafka.port) for kafka in kafkas]
    for kafka, server in zip(kafkas, servers, strict=True):
        kafka.port = server.sockets[0].getsockname()[1]
    try:
        yield
    finally:
        for kafka, server in zip(kafkas, servers, strict=True):
            server.close()
            kafka.hang_up()
