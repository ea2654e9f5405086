"""The Python programs of docs/python.md and docs/testing-your-tools.md, run from the installed wheel."""

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from drover.local import local_cluster
from drover.testing import LocalInstallation, LocalSettings, local_installation
from tests.testing.pages import programs

MOST_LINES = 30
TESTS = ("test_on_a_model.py", "test_without_pytest.py", "test_on_kafka.py")
# The functions of the client's page, on a model installation: each does what its own words say.
ON_A_MODEL = """
import asyncio, move, follow, undo, report
from drover.client import SyncClient

async def test_programs(drover_model, capsys):
    drover_model.cluster.create_topic("orders", {0: [1, 2, 3]}, partition_bytes=10_000_000)
    assert await move.move(drover_model.client)
    await follow.follow(drover_model.client, "friday")
    assert capsys.readouterr().out.splitlines() == [
        "orders:0: reassignment-completed", "orders:0 is on (4, 2, 3)", "plan friday has finished"]
    assert follow.PLACE.read_text().isdecimal()
    def blocking():
        with SyncClient(drover_model.client) as client:
            return report.report(client)
    assert await asyncio.to_thread(blocking) == ["friday: finished, 1 completed"]
    assert await undo.undo(drover_model.client, "friday") == 1
    assert drover_model.replicas("orders", 0) == (1, 2, 3)
    assert await move.move(drover_model.client)
    assert drover_model.replicas("orders", 0) == (1, 2, 3), "a retry has no second effect"
"""


async def run(directory: Path, environment: Path, *arguments: str, **variables: str) -> str:
    """Run the environment's Python to its end, and return what it prints."""
    process = await asyncio.create_subprocess_exec(
        str(environment / "bin" / "python"),
        *arguments,
        cwd=directory,
        env={"PATH": os.environ["PATH"], "HOME": str(environment), **variables},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output, _ = await process.communicate()
    assert process.returncode == 0, output.decode()
    return output.decode()


def write(directory: Path, page: str, *names: str) -> None:
    for name in names or programs(page):
        (directory / name).write_text(programs(page)[name], encoding="utf-8")


@pytest.mark.parametrize("name", TESTS)
def test_an_example_is_short(name: str) -> None:
    assert len(programs("testing-your-tools.md")[name].splitlines()) <= MOST_LINES


async def test_the_examples_on_models_pass(environment: Path, test_tools: Path, tmp_path: Path) -> None:
    write(tmp_path, "testing-your-tools.md", "test_on_a_model.py", "test_without_pytest.py")
    assert "3 passed" in await run(tmp_path, environment, "-m", "pytest", PYTHONPATH=str(test_tools))
    # Without pytest, as it says.
    assert "OK" in await run(tmp_path, environment, "test_without_pytest.py")


async def test_the_programs_of_the_clients_page_do_what_they_say(
    environment: Path, test_tools: Path, tmp_path: Path
) -> None:
    write(tmp_path, "python.md")
    (tmp_path / "test_programs.py").write_text(ON_A_MODEL, encoding="utf-8")
    said = await run(
        tmp_path, environment, "-m", "pytest", "-o", "asyncio_mode=auto", PYTHONPATH=f"{test_tools}:{tmp_path}"
    )
    assert "1 passed" in said


@pytest.mark.cluster
@pytest.mark.story
async def test_the_example_on_real_brokers_passes(environment: Path, test_tools: Path, tmp_path: Path) -> None:
    write(tmp_path, "testing-your-tools.md", "test_on_kafka.py", "conftest.py")
    assert "1 passed" in await run(tmp_path, environment, "-m", "pytest", PYTHONPATH=str(test_tools))


@pytest.fixture
async def installation(tmp_path: Path) -> AsyncIterator[LocalInstallation]:
    async with (
        local_cluster(tmp_path / "cluster", 4, 3) as cluster,
        local_installation(cluster, tmp_path, LocalSettings()) as made,
    ):
        yield made


@pytest.mark.cluster
@pytest.mark.story
async def test_the_programs_of_the_clients_page_run_on_a_real_cluster(
    environment: Path, installation: LocalInstallation, tmp_path: Path
) -> None:
    await installation.create_topic("orders", {0: [1, 2, 3]}, kilobytes=1024)
    write(tmp_path, "python.md")

    async def program(name: str) -> list[str]:
        return (await run(tmp_path, environment, name, DROVER_CONFIG=str(installation.config))).splitlines()

    assert await program("move.py") == ["orders:0: reassignment-completed", "arrived"]
    assert await program("follow.py") == ["orders:0 is on (4, 2, 3)", "plan friday has finished"]
    assert await program("report.py") == ["friday: finished, 1 completed"]
    assert await program("undo.py") == ["an hour ago, 0 partitions were moving", "1 partitions are back"]
    assert await program("move.py") == ["orders:0: reassignment-completed", "arrived"], "a retry has no second effect"
