"""The nodes of a directory as processes: start, find, signal and end them. `probe` checks whether they serve."""

import signal
from collections.abc import Sequence

from drover.errors import ClusterUnavailableError, ConfigurationError
from drover.local import files
from drover.local.deadline import wait_until
from drover.local.layout import CONTROLLER_ID, ZOOKEEPER, ClusterSpec, Layout, read_spec
from drover.local.processes import Child, ProcessState, find_marked, read_child, send, spawn, state_of
from drover.local.programs import Programs, mark, node_environment

SIGNAL_TIMEOUT_S = 10.0
STOP_GRACE_S = 15.0


class Nodes:
    """All processes of the cluster in a directory, no matter who started them; the object holds only paths."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._mark = mark(layout)

    @property
    def spec(self) -> ClusterSpec:
        """The cluster's spec. Raises `ConfigurationError` if the directory has none."""
        spec = read_spec(self._layout)
        if spec is None:
            directory = self._layout.directory
            raise ConfigurationError(f"no local cluster in {directory}; start one: drover local up --dir {directory}")
        return spec

    def name(self, node: int | str) -> str:
        """Return a node's name. Raises `ConfigurationError` for an unknown node."""
        name, nodes = str(node), self.spec.nodes
        if name not in nodes:
            raise ConfigurationError(
                f"the cluster in {self._layout.directory} has no node {name}; it has {', '.join(nodes)}"
            )
        return name

    def killable(self, node: int | str) -> str:
        """Return the name of a node. Raises `ConfigurationError` for a node that shares its process with others."""
        name = self.name(node)
        if self._layout.pid_file(name).is_symlink():
            raise ConfigurationError(f"node {name} shares its process with others, so they stop and start together")
        return name

    def find(self, name: str) -> Child | None:
        """Return a node's living process, if there is one."""
        return read_child(self._layout.pid_file(name), self._mark)

    def living(self, name: str) -> Child:
        """Return a node's living process. Raises `ConfigurationError` if it is dead."""
        child = self.find(name)
        if child is None:
            raise ConfigurationError(
                f"node {name} is dead; start it: drover local start {name} --dir {self._layout.directory}"
            )
        return child

    def state(self, name: str) -> ProcessState:
        """Return the state of a node's process."""
        child = self.find(name)
        return ProcessState.DEAD if child is None else state_of(child)

    def spawn(self, name: str, command: list[str], programs: Programs) -> Child:
        """Start a node's process, or a tool that works for it, as this node."""
        log_file = self._layout.log_file(name)
        if log_file.is_symlink():  # the node shared a process with others before
            log_file.unlink()
        return spawn(command, self._mark, node_environment(programs, name), log_file, self._layout.pid_file(name))

    def log_end(self, name: str) -> str:
        """Return the end of a node's output, with the name of the file."""
        return f"the end of {self._layout.log_file(name)}:\n{files.log_tail(self._layout, name)}"

    def named(self) -> dict[str, Child]:
        """Return the living nodes by name, from the pid files."""
        spec = read_spec(self._layout)
        names = () if spec is None else spec.nodes
        return {name: child for name in names if (child := self.find(name)) is not None}

    def all(self) -> tuple[Child, ...]:
        """Return every living process of the cluster, even if its pid file was never written."""
        by_pid = {child.pid: child for child in (*self.named().values(), *find_marked(self._mark))}
        return tuple(child for child in by_pid.values() if state_of(child) is not ProcessState.DEAD)

    async def signal(self, name: str, number: signal.Signals, state: ProcessState) -> None:
        """Send a signal to a living node, and wait until its process is in this state."""
        send(self.living(name), number)
        goal = f"node {name} is {state.value}"
        await wait_until(lambda: self.state(name) is state, what=goal, timeout_s=SIGNAL_TIMEOUT_S)

    async def kill(self, name: str) -> None:
        """Kill a node with SIGKILL, even if it is paused; does nothing for a dead one."""
        child = self.find(name)
        if child is not None:
            send(child, signal.SIGKILL)
            goal = f"process {child.pid} of node {name} is gone"
            await wait_until(lambda: _all_dead((child,)), what=goal, timeout_s=SIGNAL_TIMEOUT_S)

    async def stop(self, name: str, grace_s: float = STOP_GRACE_S) -> None:
        """Stop a node with SIGTERM, and with SIGKILL after `grace_s`: a broker's clean stop needs the controller.

        Wakes a paused node, and does nothing for a dead one. Returns when the node is dead.
        """
        child = self.find(name)
        if child is not None:
            await _ask_to_end((child,), grace_s=grace_s, wake_paused=True)
            await self.kill(name)

    async def end_all(self, *, grace_s: float, wake_paused: bool) -> None:
        """End every process: stop the brokers first, because their clean stop needs the controller; then kill the rest.

        Paused processes are woken for a clean stop only with `wake_paused`.
        """
        if grace_s > 0:
            await _ask_to_end(self._brokers(), grace_s=grace_s, wake_paused=wake_paused)
            await _ask_to_end(self.all(), grace_s=grace_s, wake_paused=wake_paused)
        goal = f"every process of {self._layout.directory} is gone"
        await wait_until(self._none_left, what=goal, timeout_s=SIGNAL_TIMEOUT_S)

    def _brokers(self) -> list[Child]:
        return [child for name, child in self.named().items() if name != ZOOKEEPER and int(name) < CONTROLLER_ID]

    def _none_left(self) -> bool:
        """Kill all remaining processes and return whether none is left; a dying `up` may still start another one."""
        left = self.all()
        for child in left:
            send(child, signal.SIGKILL)
        return not left


async def _ask_to_end(children: Sequence[Child], *, grace_s: float, wake_paused: bool) -> None:
    """Send SIGTERM and wait up to the grace; leave out paused processes that are not woken, since they cannot stop."""
    asked = [child for child in children if wake_paused or state_of(child) is ProcessState.RUNNING]
    for child in asked:
        send(child, signal.SIGTERM)
        send(child, signal.SIGCONT)
    try:
        await wait_until(lambda: _all_dead(asked), what="a clean stop", timeout_s=grace_s)
    except ClusterUnavailableError:
        return  # the caller kills them


def _all_dead(children: Sequence[Child]) -> bool:
    return all(state_of(child) is ProcessState.DEAD for child in children)
