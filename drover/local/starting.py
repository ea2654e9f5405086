"""Start all nodes of a cluster, each in its process or in the one that several share; returns before they serve."""

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from drover.errors import ClusterUnavailableError
from drover.local import files, security
from drover.local.layout import CONTROLLER, FORMATTER, SHARED, ZOOKEEPER, BrokerSpec, ClusterSpec, Layout
from drover.local.nodes import Nodes
from drover.local.processes import ProcessState, state_of
from drover.local.programs import Programs, format_command, node_command
from drover.local.shared_process import Gateway, SharedProcess, connected, parse_gateway
from drover.local.waiting import wait_until
from drover.time_limits import time_limit


class Start:
    """One start of a cluster of which nothing runs yet."""

    def __init__(
        self,
        layout: Layout,
        nodes: Nodes,
        spec: ClusterSpec,
        programs: Programs,
        timeout_s: float,
        more_settings: Callable[[BrokerSpec], str],
    ) -> None:
        self._layout = layout
        self._nodes = nodes
        self._spec = spec
        self._programs = programs
        self._timeout_s = timeout_s
        self._more_settings = more_settings

    async def run(self) -> None:
        """Start every node; brokers start beside the controllers' formatting and wait for them by themselves.

        Raises `ClusterUnavailableError` if the controller cannot be formatted, or a node of the shared process fails.
        """
        spec = self._spec
        files.write_files(self._layout, spec, self._more_settings)
        async with AsyncExitStack() as gateways:
            log_begins = self._spawn_shared() if spec.shared else 0
            self._spawn_alone(*(str(broker.id) for broker in spec.brokers), ZOOKEEPER)
            shared = await gateways.enter_async_context(self._connected(log_begins)) if spec.shared else None
            if spec.controllers and not files.is_formatted(self._layout):
                # Kafka 3 has the same tool only as a program.
                in_shared = CONTROLLER in spec.shared and not spec.kafka.startswith("3.")
                await self._format(shared if in_shared else None)
            self._spawn_alone(*spec.controllers)
            if shared is not None:
                await self._start_shared(shared)

    def _spawn_alone(self, *names: str) -> None:
        for name in names:
            if name not in self._spec.shared:
                self._nodes.spawn(name, node_command(self._programs, self._layout, name), self._programs)

    async def _format(self, shared: SharedProcess | None) -> None:
        """Format the first controller with Kafka's own tool, in the shared process or in one of its own."""
        arguments = security.write_format_arguments(self._layout, self._spec)
        try:
            if shared is not None:
                await shared.format(arguments)
            else:
                await self._run_format_tool(arguments)
        finally:
            arguments.unlink()
        if not files.is_formatted(self._layout):
            end = self._nodes.log_end(SHARED if shared is not None else FORMATTER)
            raise ClusterUnavailableError(f"the controller could not be formatted; {end}")
        files.format_other_controllers(self._layout, self._spec)

    async def _run_format_tool(self, arguments: Path) -> None:
        command = format_command(self._programs, self._layout, arguments)
        tool = self._nodes.spawn(FORMATTER, command, self._programs)
        await wait_until(
            lambda: state_of(tool) is ProcessState.DEAD,
            what="the controller's log directory is formatted",
            timeout_s=self._timeout_s,
        )

    def _spawn_shared(self) -> int:
        """Start the shared process; returns how many bytes its log had before."""
        log_file = self._layout.log_file(SHARED)
        had = log_file.stat().st_size if log_file.exists() else 0
        self._nodes.spawn_shared(self._spec.shared, self._programs)
        return had

    @asynccontextmanager
    async def _connected(self, log_begins: int) -> AsyncIterator[SharedProcess]:
        """Connect to the gateway of the shared process, whose port and token are in its log."""

        def said() -> Gateway | None:
            return parse_gateway(self._layout.log_file(SHARED).read_bytes()[log_begins:].decode(errors="replace"))

        def has_said_or_died() -> bool:
            return said() is not None or self._nodes.state(self._spec.shared[0]) is ProcessState.DEAD

        await wait_until(has_said_or_died, what="the shared process has a gateway", timeout_s=self._timeout_s)
        gateway = said()
        if gateway is None:
            raise ClusterUnavailableError(f"the shared process is dead; {self._nodes.log_end(SHARED)}")
        async with connected(gateway) as shared:
            yield shared

    async def _start_shared(self, shared: SharedProcess) -> None:
        try:
            async with time_limit(self._timeout_s):
                await shared.start([self._layout.settings_file(node) for node in self._spec.shared])
        except TimeoutError as error:
            late = f"not within {self._timeout_s:g} s: the nodes of the shared process start"
            raise ClusterUnavailableError(f"{late}; {self._nodes.log_end(SHARED)}") from error
