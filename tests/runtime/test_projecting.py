"""The projection inside a worker: it ends no worker, and whoever looks sees that it is over."""

import asyncio
from pathlib import Path

import pytest

from drover.errors import LogUnavailableError
from drover.runtime.metrics import Metrics
from drover.runtime.projecting import Projection, ProjectionThread
from drover.runtime.settings_sources import load_settings

SETTINGS = """
[log]
bootstrap = "127.0.0.1:1"
[clusters.one]
bootstrap = "127.0.0.1:1"
[zookeeper]
hosts = "127.0.0.1:1"
allow_open_zookeeper = true
"""


@pytest.mark.parametrize("fault", [LogUnavailableError("it is away"), RecursionError("too deep")], ids=["known", "any"])
def test_a_projection_that_has_ended_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, fault: Exception) -> None:
    async def run(_: Projection, stop: asyncio.Event) -> None:
        raise fault

    monkeypatch.setattr(Projection, "run", run)
    monkeypatch.setenv("DROVER_CACHE_DIR", str(tmp_path / "cache"))
    file = tmp_path / "drover.toml"
    file.write_text(SETTINGS)
    thread = ProjectionThread(load_settings(file), Metrics())
    thread.start()
    thread.close()
    (check,) = thread.notes()
    assert check.ok, "no decision depends on it"
    assert check.detail.startswith("has ended: ")
    assert str(fault) in check.detail
