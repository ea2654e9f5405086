"""The projection inside a worker: it ends no worker, and whoever looks sees that it is over."""

import asyncio
import threading
from pathlib import Path

import pytest

from drover.errors import LogUnavailableError
from drover.projections import projection
from drover.projections.projection import Projection, ProjectionThread
from drover.service.health import Check
from drover.service.metrics import Metrics
from drover.settings.settings import Settings
from drover.settings.sources import load_settings

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
async def test_a_projection_that_has_ended_says_so(
    monkeypatch: pytest.MonkeyPatch, settings: Settings, fault: Exception
) -> None:
    async def run(_: Projection, stop: asyncio.Event) -> None:
        raise fault

    monkeypatch.setattr(Projection, "run", run)
    thread = ProjectionThread(settings, Metrics())
    thread.start()
    await thread.close()
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


async def test_a_projection_that_is_closed_before_its_thread_runs_ends(
    monkeypatch: pytest.MonkeyPatch, settings: Settings
) -> None:
    """Nobody told it any more: a worker whose port was taken said so ten seconds later."""
    monkeypatch.setattr(Projection, "run", _until_told)
    monkeypatch.setattr(projection, "STOP_S", 0.0)
    thread = Late(settings)
    thread.start()
    await thread.close()
    thread.go_on.set()
    thread._thread.join(20)
    assert not thread._thread.is_alive()


async def test_what_a_projection_is_doing_is_looked_at_by_its_own_thread_only(
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
    assert looked.wait(20)
    await thread.close()
    assert [(check.name, check.detail) for check in thread.notes()] == [("projection log", "read to its end")]


async def test_a_projection_that_ends_slowly_does_not_hold_up_the_loop_of_its_worker(
    monkeypatch: pytest.MonkeyPatch, settings: Settings
) -> None:
    """Nothing ran in a worker for up to ten seconds of the fifteen that its stop may take."""
    begun, go_on = threading.Event(), threading.Event()

    async def run(_: Projection, stop: asyncio.Event) -> None:
        await stop.wait()
        begun.set()
        go_on.wait(20)

    monkeypatch.setattr(Projection, "run", run)
    thread = ProjectionThread(settings, Metrics())
    thread.start()
    closing = asyncio.create_task(thread.close())
    assert await asyncio.to_thread(begun.wait, 20)
    assert not closing.done()
    go_on.set()
    await closing
    assert not thread._thread.is_alive()


async def test_the_time_that_a_projection_has_to_end_begins_when_it_is_told(
    monkeypatch: pytest.MonkeyPatch, settings: Settings
) -> None:
    thread = Late(settings)
    monkeypatch.setattr(Projection, "run", _until_told)
    monkeypatch.setattr(projection, "STOP_S", 100.0)
    thread.start()
    thread.end()
    assert thread._ending_since_s is not None
    thread._ending_since_s -= projection.STOP_S
    async with asyncio.timeout(10):
        await thread.close()
    assert thread._thread.is_alive()
    thread.go_on.set()
