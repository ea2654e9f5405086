"""A ZooKeeper without Kafka, for tests and benchmarks."""

import signal
from collections.abc import Sequence
from pathlib import Path

from drover.local import probe
from drover.local.deadline import wait_until
from drover.local.layout import ZOOKEEPER, ClusterSpec, Layout, random_id
from drover.local.nodes import Nodes
from drover.local.ports import reserve
from drover.local.processes import ProcessState
from drover.local.programs import Programs, node_command, prepare
from drover.local.settings import LOGGING, zookeeper_settings

SERVE_TIMEOUT_S = 60.0


class LocalZooKeeper:
    """A real ZooKeeper as a child process in its own directory; `more` are further lines of its settings."""

    def __init__(self, directory: Path, more: Sequence[str] = ()) -> None:
        self._layout = Layout(directory)
        self._nodes = Nodes(self._layout)
        self._more = more
        self._programs: Programs | None = None

    @property
    def hosts(self) -> str:
        """The address, which stays the same across restarts."""
        return self._nodes.spec.zookeeper

    async def start(self) -> None:
        """Start the ZooKeeper, or start it again on its data; return when it serves."""
        if self._programs is None:
            self._programs = prepare()
            spec = reserve(self._layout, 1, lambda ports: ClusterSpec(random_id(), (), 0, (), ports[0]))
            data = self._layout.data_directory(ZOOKEEPER)
            data.mkdir(parents=True)
            self._layout.logging_file.write_text(LOGGING, encoding="utf-8")
            text = "\n".join([zookeeper_settings(spec, data), *self._more])
            self._layout.settings_file(ZOOKEEPER).write_text(text, encoding="utf-8")
        self._nodes.spawn(ZOOKEEPER, node_command(self._programs, self._layout, ZOOKEEPER), self._programs)
        port = self._nodes.spec.zookeeper_port
        goal = "the ZooKeeper serves"
        await wait_until(lambda: probe.zookeeper_serves(port), what=goal, timeout_s=SERVE_TIMEOUT_S)

    async def kill(self) -> None:
        """Kill the process, as a power cut would."""
        await self._nodes.kill(ZOOKEEPER)

    async def pause(self) -> None:
        """Pause the process (SIGSTOP)."""
        await self._nodes.signal(ZOOKEEPER, signal.SIGSTOP, ProcessState.PAUSED)

    async def resume(self) -> None:
        """Resume a paused process."""
        await self._nodes.signal(ZOOKEEPER, signal.SIGCONT, ProcessState.RUNNING)

    async def stop(self) -> None:
        """Stop the process and free its port; its files stay."""
        await self._nodes.end_all(grace_s=0.0, wake_paused=False)
        self._layout.spec_file.unlink(missing_ok=True)
