"""The local installation: real processes on a real cluster, which a test can kill and start again."""

import signal
from pathlib import Path

import pytest

from drover.events.commands import Freeze
from drover.local import LocalCluster
from drover.settings.sources import load_settings
from drover.testing.local import LocalSettings, local_installation

pytestmark = pytest.mark.cluster


async def test_workers_are_killed_restarted_and_added_while_a_client_goes_on(
    local_cluster: LocalCluster, tmp_path: Path
) -> None:
    async with local_installation(local_cluster, tmp_path, LocalSettings(prefix="installed")) as drover:
        first = drover.worker
        assert set((await drover.owners()).values()) == {"worker-1"}
        async with drover.client() as client:
            sent = await client.submit(Freeze(id="f1", cluster="local", by="me", reason="test"))
            (answer,) = await client.outcomes([sent], timeout_s=60)
            assert answer.outcome.verdict == "accepted"
            await first.kill()
            assert first.returncode == -signal.SIGKILL
            sent = await client.submit(Freeze(id="f2", cluster="local", by="you", reason="test"))
            await first.restart()
            (answer,) = await client.outcomes([sent], timeout_s=60)
            assert answer.outcome.verdict == "accepted"
        second = await drover.add_worker()
        assert set((await drover.owners()).values()) == {"worker-1", "worker-2"}
        assert await second.stop() == 0
        assert "shards are owned" in second.log_text()
        status = await drover.drover("status", "-o", "json")
        assert status.document["reassignments"] == []
    assert not first.is_running


async def test_the_settings_of_an_installation_are_in_its_file(local_cluster: LocalCluster, tmp_path: Path) -> None:
    wanted = LocalSettings(
        prefix="settled",
        workers=0,
        limits={"max_moves_per_broker": 2, "lazy_leadership": True},
        healing={"alarm_ms": 7},
    )
    async with local_installation(local_cluster, tmp_path, wanted) as drover:
        settings = load_settings(drover.config)
        assert settings.log.topics == drover.names
        cluster = settings.clusters["local"]
        assert (cluster.bootstrap, cluster.max_moves_per_broker) == (drover.bootstrap, 2)
        assert cluster.lazy_leadership
        assert cluster.healing is not None
        assert cluster.healing.alarm_ms == 7
