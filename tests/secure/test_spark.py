"""Spark's Kafka client on a secure cluster: what Python's clients are told, it is told, and nobody else is."""

import asyncio
import json
import signal
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from drover.jars.cache import jars_directory
from drover.local.layout import OPERATOR
from drover.spark.files import JobFiles
from tests.integration.support import wait_for
from tests.secure.support import SecureCluster, Serving, command_lines
from tests.spark import live

pytestmark = [pytest.mark.cluster, pytest.mark.story]


def operators_settings(secure: SecureCluster, directory: Path) -> Path:
    """An operator's settings with Spark's files beside them; the jars are not fetched again."""
    cache = secure.directory / "cache"
    cache.mkdir(exist_ok=True)
    (cache / "jars").symlink_to(jars_directory())
    file = secure.directory / "spark.toml"
    text = secure.local.config_of(OPERATOR).read_text()
    file.write_text(f'{text}\n[spark]\ndirectory = "{directory}"\nkeeps_history = true\n')
    return file


def contents(directory: Path) -> dict[Path, str]:
    return {file: file.read_bytes().decode(errors="replace") for file in directory.rglob("*") if file.is_file()}


async def test_an_operator_keeps_the_tables_and_no_password_is_seen_of_it(serving: Serving, tmp_path: Path) -> None:
    secure = serving.secure
    config = operators_settings(secure, tmp_path / "spark")
    job = await secure.start("spark", "run", config=config, log=tmp_path / "said.log")
    seen: set[str] = set()

    async def wrote_rows() -> bool:
        assert job.returncode is None, (tmp_path / "said.log").read_text()
        seen.update(command_lines([child.pid for child in psutil.Process(job.pid).children(recursive=True)]))
        return live.has_rows(JobFiles(tmp_path / "spark"), "takeovers")

    await wait_for(wrote_rows, "the first rows of the tables", timeout_s=400, pause_s=1.0)
    shown = await secure.drover("progress", "--table", "takeovers", "-o", "json", config=config)
    assert json.loads(shown.output)["takeovers"]
    # As systemd stops a service: the driver, its Java and the Python workers, all at once.
    driver = psutil.Process(job.pid)
    for process in [driver, *driver.children(recursive=True)]:
        with suppress(psutil.NoSuchProcess):
            process.send_signal(signal.SIGTERM)
    async with asyncio.timeout(60):
        assert await job.wait() == 0, (tmp_path / "said.log").read_text()
    said = (tmp_path / "said.log").read_text().splitlines()
    assert said[0].startswith("Starting Spark")
    assert said[-1].startswith("Stopped")
    assert len(said) <= 4, said
    assert any("SparkSubmit" in line for line in seen)
    files = contents(tmp_path)
    assert {"said.log", "spark.log", "tables.sqlite"} <= {file.name for file in files}
    visible = [*seen, *files.values()]
    for secret in secure.passwords:
        assert [text[:200] for text in visible if secret in text] == []
