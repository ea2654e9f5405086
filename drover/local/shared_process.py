"""Several Kafka nodes in one JVM, as Kafka's own tests run them: half the time to start, a third of the memory.

The nodes are the same classes that `kafka.Kafka` runs, with the same settings, and speak with each other over the same
sockets. They differ only in that they start and die together. The JVM starts as a Py4J gateway, protected by a token.
Through it the nodes are started, and then it is closed.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from py4j.java_gateway import GatewayParameters, JavaGateway
from py4j.protocol import Py4JError

from drover.errors import ClusterUnavailableError

MAIN = ("py4j.GatewayServer", "--enable-auth", "0")


@dataclass(frozen=True, slots=True)
class Gateway:
    """The port of a Py4J gateway on loopback, and the token that it requires."""

    port: int
    token: str


class SharedProcess:
    """The JVM, as long as its gateway is open."""

    def __init__(self, gateway: JavaGateway) -> None:
        self._gateway = gateway
        self._jvm = gateway.jvm

    async def format(self, arguments_file: Path) -> None:
        """Format a log directory as Kafka's storage tool does; its arguments are in the file.

        Raises `ClusterUnavailableError` if it could not.
        """
        await asyncio.to_thread(self._format, arguments_file)

    async def start(self, settings_files: Sequence[Path]) -> None:
        """Start a node for each file of settings, all at once; returns when each has started.

        Raises `ClusterUnavailableError` if one of them could not start.
        """
        await asyncio.gather(*(asyncio.to_thread(self._start, file) for file in settings_files))

    def _format(self, arguments_file: Path) -> None:
        arguments = self._gateway.new_array(self._jvm.java.lang.String, 1)
        arguments[0] = f"@{arguments_file}"
        try:
            self._jvm.kafka.tools.StorageTool.execute(arguments, self._jvm.java.lang.System.out)
        except Py4JError as error:
            raise ClusterUnavailableError(f"a log directory could not be formatted: {error}") from error

    def _start(self, settings_file: Path) -> None:
        try:
            settings = self._jvm.java.util.Properties()
            settings.load(self._jvm.java.io.FileInputStream(str(settings_file)))
            config = self._jvm.kafka.server.KafkaConfig.fromProps(settings, False)
            time = self._jvm.org.apache.kafka.common.utils.Time.SYSTEM
            self._jvm.kafka.server.KafkaRaftServer(config, time).startup()
        except Py4JError as error:
            raise ClusterUnavailableError(f"the node of {settings_file} could not start: {error}") from error


@asynccontextmanager
async def connected(gateway: Gateway) -> AsyncIterator[SharedProcess]:
    """Connect to the gateway of a JVM; close the gateway at the end of the block."""
    connection = JavaGateway(gateway_parameters=GatewayParameters(port=gateway.port, auth_token=gateway.token))
    try:
        yield SharedProcess(connection)
    finally:
        await asyncio.to_thread(connection.shutdown)


def parse_gateway(said: str) -> Gateway | None:
    """Find the port and the token that a JVM started with `MAIN` prints, in two lines; None while they are not whole.

    The JVM may have warned of something before.
    """
    lines = said.splitlines(keepends=True)
    for port, token in pairwise(lines):
        if port.strip().isdecimal() and token.endswith("\n"):
            return Gateway(int(port), token.strip())
    return None
