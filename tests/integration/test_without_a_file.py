"""A worker and commands that know nothing but the addresses of brokers: the cluster also holds the log."""

import json
from pathlib import Path

import pytest

from drover.local import LocalCluster
from drover.testing.commands import DroverProcess, PythonCommands

pytestmark = [pytest.mark.cluster, pytest.mark.story]


async def test_a_worker_decides_what_a_command_asks_both_by_flags(local_cluster: LocalCluster, tmp_path: Path) -> None:
    (tmp_path / "client.properties").write_text(f"bootstrap.servers={local_cluster.bootstrap}\n")
    flags = ("--command-config", str(tmp_path / "client.properties"))
    environment = {"DROVER_LOG__PREFIX": "by-flags", "DROVER_CLUSTER": "prod", "NO_COLOR": "1"}
    commands = PythonCommands()
    made = await commands.run(("log", "init", "--shards", "1", *flags), environment, "")
    assert made.code == 0, made.errors
    arguments = ("worker", "--name", "by-flags", "--listen", "127.0.0.1:0", *flags)
    worker = DroverProcess(arguments, environment, tmp_path / "worker.log", commands)
    worker.start()
    try:
        frozen = await commands.run(("freeze", "--reason", "try", "-o", "json", *flags), environment, "")
        assert frozen.code == 0, frozen.errors + (tmp_path / "worker.log").read_text()
        status = await commands.run(("status", "-o", "json", *flags), environment, "")
        assert "prod" in status.output
        (outcome,) = json.loads(frozen.output)["outcomes"]
        assert outcome["verdict"] == "accepted"
    finally:
        await worker.kill()
