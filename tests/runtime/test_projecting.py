"""The projection inside a worker: it ends no worker, and whoever looks sees that it is over."""

import asyncio
import threading
from pathlib import Path

import pytest

from drover.errors import LogUnavailableError
from drover.runtime import projecting
from drover.runtime.health import Check
from drover.runtime.metrics import Metrics
from drover.runtime.projecting import Projection, ProjectionThread
from drover.runtime.settings import Settings
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


@pytest.fixture
def settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Settings:
    monkeypatch.setenv("DROVER_CACHE_DIR", str(tmp_path / "cache"))
    file = tmp_path / "drover.toml"
    file.write_text(SETTINGS)
    return load_settings(file)


@pytest.mark.parametrize("fault", [LogUnavailableError("it is away"), RecursionError("too deep")], ids=["known", "any"])
def test_a_projection_that_has_ended_says_so(
    monkeypatch: pytest.MonkeyPatch, settings: Settings, fault: Exception
) -> None:
    async def run(_: Projection, stop: asyncio.Event) -> None:
        raise fault

    monkeypatch.setattr(Projection, "run", run)
    thread = ProjectionThread(settings, Metrics())
    thread.start()
    thread.close()
    (check,) = thread.notes()
    assert check.ok, "no decision depends on it"
    assert check.detail.startswith("has ended: ")
    assert str(fault) in check.detail


async def _until_told(_: Projection, stop: asyncio.Event) -> None:
    await stop.wait()


class Late(ProjectionThread):
    """Its thread gets no time until somebody lets it go on."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings, Metrics())
        self.go_on = threading.Event()

    def _run(self) -> None:
        self.go_on.wait(20)
        super()._run()


def test_a_projection_that_is_closed_before_its_thread_runs_ends(
    monkeypatch: pytest.MonkeyPatch, settings: Settings
) -> None:
    """Nobody told it any more: a worker whose port was taken said so ten seconds later."""
    monkeypatch.setattr(Projection, "run", _until_told)
    monkeypatch.setattr(projecting, "STOP_S", 0.0)
    thread = Late(settings)
    thread.start()
    thread.close()
    thread.go_on.set()
    thread._thread.join(5)
    assert not thread._thread.is_alive()


def test_what_a_projection_is_doing_is_looked_at_by_its_own_thread_only(
    monkeypatch: pytest.MonkeyPatch, settings: Settings
) -> None:
    """A cluster that it meets meanwhile changed what `/readyz` of the worker was going through: no answer."""
    looked = threading.Event()

    def checks(_: Projection) -> tuple[Check, ...]:
        if threading.current_thread().name != "projection":
            return (Check("log", ok=False, detail="another thread looked"),)
        looked.set()
        return (Check("log", ok=True, detail="read to its end"),)

    monkeypatch.setattr(Projection, "run", _until_told)
    monkeypatch.setattr(Projection, "checks", checks)
    thread = ProjectionThread(settings, Metrics())
    thread.start()
    assert looked.wait(5)
    thread.close()
    assert [(check.name, check.detail) for check in thread.notes()] == [("projection log", "read to its end")]
