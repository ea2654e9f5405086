"""A secure cluster of its own, who runs on it, and what its processes let everybody see."""

import asyncio
import hashlib
import os
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
from kafka.protocol.admin import AlterUserScramCredentialsRequest, DeleteAclsRequest

from drover.cluster.acls import ALLOW, ANYWHERE, LITERAL, Acl
from drover.cluster.kafka import KafkaDriver
from drover.cluster.wire import Connection, Deadline
from drover.events.partitions import TopicPartition
from drover.local import LocalCluster, local_cluster
from drover.local.layout import CONTROLLER_ID, OPERATOR, USERS, Layout
from drover.local.programs import mark
from drover.local.security import client_options, password
from drover.testing.commands import Finished
from drover.testing.shared_process import SharedProcess
from tests.architecture.repository import ROOT

SCRAM_SHA_512 = 2
ITERATIONS = 4096
TIMEOUT_MS = 10_000
# Broker 2 is killed. A controller with its own process is formatted by a program, whose command line is checked for
# passwords.
KILLABLE = (2, CONTROLLER_ID)
# Of nobody but this cluster's test users.
TEST_PASSWORD = "of a test user"  # noqa: S105 - see above


@dataclass
class SecureCluster:
    """The cluster, and every command line that was seen of its processes and of Drover's on it."""

    local: LocalCluster
    directory: Path
    seen: set[str] = field(default_factory=set)

    @property
    def layout(self) -> Layout:
        return Layout(self.local.directory)

    @property
    def passwords(self) -> tuple[str, ...]:
        return tuple(password(self.layout, user) for user in USERS)

    # -- Drover on it

    async def drover(self, *arguments: str, config: Path) -> Finished:
        """Run a command as a user would."""
        process = await self.start(*arguments, config=config)
        output, errors = await process.communicate()
        assert process.returncode is not None
        return Finished(process.returncode, output.decode(), errors.decode())

    async def start(self, *arguments: str, config: Path, log: Path | None = None) -> asyncio.subprocess.Process:
        """Start a command; with `log` all that it says goes there."""
        environment = {**os.environ, "NO_COLOR": "1", "COLUMNS": "200", "DROVER_CONFIG": str(config)}
        environment["DROVER_CACHE_DIR"] = str(self.directory / "cache")
        output = asyncio.subprocess.PIPE if log is None else os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "drover", *arguments),
            cwd=ROOT,
            env=environment,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=output,
            stderr=asyncio.subprocess.PIPE if log is None else output,
        )
        if log is not None:
            os.close(output)
        self.seen |= set(command_lines([process.pid]))
        return process

    def config(self, name: str, user: str, setting: str, value: str) -> Path:
        """Write a user's settings file with one value of its security sections replaced."""
        lines = self.local.config_of(user).read_text().splitlines()
        changed = [f'{setting} = "{value}"' if line.startswith(f"{setting} =") else line for line in lines]
        assert changed != lines
        file = self.directory / f"{name}.toml"
        file.write_text("\n".join(changed))
        return file

    # -- users and what they may do

    def options_of(self, user: str) -> dict[str, object]:
        """The client options of a user made by `add_users`."""
        options = client_options(self.layout, USERS[0])
        return {**options, "sasl_plain_username": user, "sasl_plain_password": TEST_PASSWORD}

    async def add_users(self, names: Sequence[str]) -> None:
        salt = os.urandom(16)
        salted = hashlib.pbkdf2_hmac("sha512", TEST_PASSWORD.encode(), salt, ITERATIONS)
        upsertions = [(name, SCRAM_SHA_512, ITERATIONS, salt, salted) for name in names]
        response = await self._admin(AlterUserScramCredentialsRequest(deletions=[], upsertions=upsertions))
        assert [result.error_code for result in response.results] == [0] * len(names)

    async def remove_acl(self, acl: Acl) -> None:
        """Take away exactly this ACL, which must be there."""
        wanted = DeleteAclsRequest.DeleteAclsFilter(
            resource_type_filter=int(acl.resource),
            resource_name_filter=acl.name,
            pattern_type_filter=LITERAL,
            principal_filter=f"User:{acl.user}",
            host_filter=ANYWHERE,
            operation=int(acl.operation),
            permission_type=ALLOW,
        )
        (result,) = (await self._admin(DeleteAclsRequest(filters=[wanted]))).filter_results
        assert (result.error_code, len(result.matching_acls)) == (0, 1), f"{acl} was not there"

    async def _admin(self, request: Any) -> Any:
        connection = Connection("test", self.local.bootstrap, self.local.admin_options, TIMEOUT_MS)
        try:
            return await connection.send(request, Deadline.after_ms(TIMEOUT_MS), changes=True)
        finally:
            await connection.close()


@asynccontextmanager
async def secure_cluster(directory: Path) -> AsyncIterator[SecureCluster]:
    """Run a secure cluster of three brokers; whatever its processes show to others while it starts is kept."""
    place = directory / "cluster"
    seen: set[str] = set()
    watching = asyncio.create_task(_watch(mark(Layout(place.resolve())), seen))
    try:
        async with local_cluster(place, brokers=3, racks=3, secure=True, start_nodes=SharedProcess(KILLABLE)) as local:
            watching.cancel()
            with suppress(asyncio.CancelledError):
                await watching
            yield SecureCluster(local, directory, seen)
    finally:
        watching.cancel()


async def _watch(marked: str, seen: set[str]) -> None:
    """Collect what everybody on this machine could read of a cluster's processes."""
    known: set[int] = set()
    while True:
        lines = {pid: command_lines([pid]) for pid in set(psutil.pids()) - known}
        # An instant after its start a process still shows what its parent does: it is looked at until it is another.
        known |= {pid for pid, shown in lines.items() if any(marked in line for line in shown)}
        seen |= {line for shown in lines.values() for line in shown if marked in line}
        await asyncio.sleep(0.3)


def command_lines(pids: Sequence[int]) -> list[str]:
    found = []
    for pid in pids:
        with suppress(psutil.Error):
            found.append(" ".join(psutil.Process(pid).cmdline()))
    return found


@dataclass
class Serving:
    """A worker that owns every shard, and the commands of an operator."""

    secure: SecureCluster
    log: Path

    async def operator(self, *arguments: str) -> Finished:
        return await self.secure.drover(*arguments, config=self.secure.local.config_of(OPERATOR))

    async def replicas(self, topic: str) -> tuple[int, ...]:
        driver = KafkaDriver("observer", self.secure.local.bootstrap, self.secure.local.admin_options)
        try:
            found = (await driver.observe([TopicPartition(topic, 0)])).partitions[TopicPartition(topic, 0)]
            return () if found is None else found.replicas
        finally:
            await driver.close()


@asynccontextmanager
async def worker(secure: SecureCluster, config: Path, name: str) -> AsyncIterator[Path]:
    log = secure.directory / f"{name}.log"
    arguments = ("worker", "--name", name, "--group", "drover-worker", "--listen", "127.0.0.1:0")
    process = await secure.start(*arguments, config=config, log=log)
    try:
        yield log
    finally:
        process.terminate()
        async with asyncio.timeout(60):
            assert await process.wait() == 0, log.read_text()
