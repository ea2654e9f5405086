"""What a real worker exposes after a real move is what the document, the alerts and the dashboard speak of."""

import asyncio
import shutil
import socket
import urllib.request

import pytest
from prometheus_client.parser import text_string_to_metric_families

from drover.events.partitions import TopicPartition
from drover.local import LocalCluster
from tests.integration.support import MANAGED, installation, wait_for
from tests.runtime.expressions import asked_by, expressions
from tests.runtime.test_signals import ADDED, known

pytestmark = [pytest.mark.cluster, pytest.mark.story]
# They need what this test does not do: a snapshot, a block, a throttle, a projection, a record that was forwarded …
ELSEWHERE = (
    "projected",
    "projection",
    "snapshot",
    "forwarded",
    "reassignments_blocked",
    "dead_letters_lost",
    "shard_damaged",
)
# Nothing failed here.
UNSEEN = ((("result", "=", "failed"),), (("result", "=", "failed"), ("cluster", "=~", ".*")))


def read(port: int) -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as response:
        text: str = response.read().decode()
    return text


async def test_a_worker_exposes_what_is_documented(
    local_cluster: LocalCluster, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    async with installation(local_cluster, tmp_path_factory.mktemp("metrics"), "metrics") as drover:
        await drover.start_worker("solo", "--listen", f"127.0.0.1:{port}")
        await drover.wait_until_owned("solo")
        await drover.create_topic("counted", {0: [1, 2, 3]}, kilobytes=2048)
        sent = await drover.alter("counted", {TopicPartition("counted", 0): [4, 2, 3]}, "--throttle", "400kB/s")
        assert sent.code == 0, sent.errors

        async def is_counted() -> bool:
            return f'drover_reassignments_ended_total{{cluster="{MANAGED}",outcome="completed"}} 1.0' in read(port)

        await wait_for(is_counted, "the end of the move to be counted", pause_s=0.5)
        text = read(port)
    exposed = {line.split("{")[0].split(" ")[0] for line in text.splitlines() if not line.startswith("#")}
    missing = {name for name in known() if name not in exposed}
    assert {name for name in missing if not name.removeprefix("drover_").startswith(ELSEWHERE)} <= {
        "drover_broker_throttle_bytes_per_second"
    }
    samples = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
    for expression in expressions():
        for asked in asked_by(expression):
            found = [sample for sample in samples if asked.takes(sample)]
            assert found or asked.name in missing or asked.conditions in UNSEEN, expression
            assert all(asked.labels - ADDED <= sample.labels.keys() for sample in found), expression
    assert f'drover_copied_bytes_total{{cluster="{MANAGED}"}} 0.0' not in text
    assert "_created" not in text
    if (program := shutil.which("promtool")) is not None:
        checking = await asyncio.create_subprocess_exec(
            program, "check", "metrics", stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
        )
        said, _ = await checking.communicate(text.encode())
        assert checking.returncode == 0, said.decode()
