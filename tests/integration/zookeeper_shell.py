"""ZooKeeper's own shell, as operators have always used it."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from drover.jars import class_path, ensure
from drover.local import prepare

PATIENCE_S = 60
FLAGS = ("-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData")


class ZooKeeperShell:
    """A running shell; what it prints is kept."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self.output = ""

    async def type(self, line: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{line}\n".encode())
        await self._process.stdin.drain()

    async def ask(self, line: str, answer: str) -> str:
        """Type a line and wait until what is printed since has `answer`; returns that."""
        begin = len(self.output)
        await self.type(line)
        return await self.until(answer, begin)

    async def until(self, answer: str, begin: int = 0) -> str:
        """Wait until what was printed from `begin` on has `answer` and the rest of its line."""
        assert self._process.stdout is not None
        while answer not in self.output[begin:]:
            async with asyncio.timeout(PATIENCE_S):
                line = await self._process.stdout.readline()
            assert line, f"the shell has ended: {self.output}"
            self.output += line.decode()
        return self.output[begin:]


@asynccontextmanager
async def zookeeper_shell(hosts: str) -> AsyncIterator[ZooKeeperShell]:
    """Start org.apache.zookeeper.ZooKeeperMain on host:port/chroot."""
    programs = prepare()
    path = os.pathsep.join((programs.zookeeper_class_path, class_path(ensure("zookeeper-shell"))))
    process = await asyncio.create_subprocess_exec(
        *(str(programs.java), *FLAGS, "org.apache.zookeeper.ZooKeeperMain", "-server", hosts),
        env={**os.environ, "CLASSPATH": path},
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        shell = ZooKeeperShell(process)
        await shell.until("JLine support is disabled")
        yield shell
        await shell.type("quit")
        async with asyncio.timeout(PATIENCE_S):
            await process.wait()
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGKILL)
            await process.wait()
