"""Start all nodes of a cluster, without waiting until they serve."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from drover.errors import ClusterUnavailableError
from drover.local import files, security
from drover.local.deadline import wait_until
from drover.local.layout import FORMATTER, ZOOKEEPER, ClusterSpec, Layout
from drover.local.nodes import Nodes
from drover.local.processes import ProcessState, state_of
from drover.local.programs import Programs, format_command, node_command


@dataclass(frozen=True, slots=True)
class Start:
    """The start of a cluster whose nodes have settings files but no processes yet."""

    layout: Layout
    nodes: Nodes
    spec: ClusterSpec
    programs: Programs
    timeout_s: float

    def spawn(self, *names: str) -> None:
        """Start these nodes, each in its own process."""
        for name in names:
            self.nodes.spawn(name, node_command(self.programs, self.layout, name), self.programs)

    async def format_controllers(self) -> None:
        """Format the controllers with Kafka's own tool, unless an earlier start has done so.

        Raises `ClusterUnavailableError` if they cannot be formatted.
        """
        if not self.spec.controllers or files.is_formatted(self.layout):
            return
        arguments = security.write_format_arguments(self.layout, self.spec)
        try:
            command = format_command(self.programs, self.layout, arguments)
            tool = self.nodes.spawn(FORMATTER, command, self.programs)
            await wait_until(
                lambda: state_of(tool) is ProcessState.DEAD,
                what="the controller's log directory is formatted",
                timeout_s=self.timeout_s,
            )
        finally:
            arguments.unlink()
        if not files.is_formatted(self.layout):
            end = self.nodes.log_end(FORMATTER)
            raise ClusterUnavailableError(f"the controller could not be formatted; {end}")
        files.format_other_controllers(self.layout, self.spec)


# Starts every node of a cluster; raises `ClusterUnavailableError` if one of them cannot be started.
StartNodes = Callable[[Start], Awaitable[None]]


async def one_process_each(start: Start) -> None:
    """Start every node in its own process; the brokers start while the controllers are formatted, and wait for them."""
    start.spawn(*(str(broker.id) for broker in start.spec.brokers), ZOOKEEPER)
    await start.format_controllers()
    start.spawn(*start.spec.controllers)
