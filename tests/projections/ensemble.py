"""Three real ZooKeepers that vote."""

import asyncio
import os
import signal
from functools import partial
from pathlib import Path

from drover.local import prepare, probe, wait_until
from drover.local.layout import HOST, Layout, new_spec
from drover.local.ports import reserve
from drover.local.programs import JVM_FLAGS

SERVERS = (1, 2, 3)
TICK = "tickTime=500\ninitLimit=20\nsyncLimit=10\nadmin.enableServer=false\n4lw.commands.whitelist=srvr\n"


class Ensemble:
    """`hosts` names all three; each is a child process that can be killed and started again."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._layout = Layout(directory)
        # The ports of one local cluster of this size: for clients, for the leader, for elections.
        spec = reserve(self._layout, 9, lambda ports: new_spec(7, 1, ports))
        ports = sorted(spec.ports)
        self._clients = dict(zip(SERVERS, ports[:3], strict=True))
        self._peers = {number: (ports[2 + number], ports[5 + number]) for number in SERVERS}
        self._processes: dict[int, asyncio.subprocess.Process] = {}

    @property
    def hosts(self) -> str:
        return ",".join(f"{HOST}:{port}" for port in self._clients.values())

    async def start(self, *numbers: int) -> None:
        """Start some and return at once."""
        programs = prepare()
        for number in numbers:
            home = self._directory / f"server-{number}"
            (home / "data").mkdir(parents=True, exist_ok=True)
            (home / "data" / "myid").write_text(f"{number}\n", encoding="utf-8")
            peers = [f"server.{each}={HOST}:{a}:{b}\n" for each, (a, b) in self._peers.items()]
            settings = f"dataDir={home / 'data'}\nclientPort={self._clients[number]}\nclientPortAddress={HOST}\n"
            (home / "zoo.cfg").write_text(TICK + settings + "".join(peers), encoding="utf-8")
            with (home / "log").open("ab") as log:
                self._processes[number] = await asyncio.create_subprocess_exec(
                    *(str(programs.java), *JVM_FLAGS, "-Dlog4j2.level=WARN"),
                    *("org.apache.zookeeper.server.quorum.QuorumPeerMain", str(home / "zoo.cfg")),
                    env={**os.environ, "CLASSPATH": programs.zookeeper_class_path},
                    stdout=log,
                    stderr=log,
                )

    async def until_serving(self, *numbers: int) -> None:
        """Wait until these answer clients, which they do with a quorum only."""
        for number in numbers:
            is_serving = partial(probe.zookeeper_serves, self._clients[number])
            await wait_until(is_serving, what=f"ZooKeeper {number} serves")

    async def kill(self, *numbers: int) -> None:
        for number in numbers:
            process = self._processes.pop(number)
            process.send_signal(signal.SIGKILL)
            await process.wait()

    async def stop(self) -> None:
        await self.kill(*list(self._processes))
        self._layout.spec_file.unlink(missing_ok=True)
