"""Spark's tables of a log in memory, as the job would write them: made by the tests' plain fold, without a JVM."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from drover.cli.page import Tables
from drover.settings.settings import LogSettings, Settings, SparkSettings
from drover.spark.files import JobFiles
from drover.spark.heartbeat import Heartbeat, JobState
from drover.spark.merge import Part
from drover.spark.schema import TABLES
from drover.spark.sinks.port import Applied
from drover.spark.sinks.sqlite import SqliteSink
from tests.spark.kafka_rows import NAMES, Stored
from tests.spark.oracle import Oracle
from tests.web.scene import Scene


@dataclass(frozen=True)
class SceneTables:
    """The tables, and a job that seems to run from when it is touched."""

    files: JobFiles

    def touch(self) -> None:
        """Let the job say that it is running."""
        Heartbeat(self.files.alive).tell(JobState.RUNNING)

    def read(self) -> Mapping[str, Any]:
        """Read them as `drover web` does."""
        settings = Settings(LogSettings("nowhere:1"), spark=SparkSettings(directory=str(self.files.directory)))
        return Tables(settings).read(None)


def tables_of(scene: Scene, directory: Path) -> SceneTables:
    """Write the tables into a directory."""
    now_ms = time.time_ns() // 1_000_000
    records = [Stored(NAMES.events, 0, offset, now_ms, payload) for offset, payload in enumerate(scene.writer.records)]
    found = Oracle().read(records, NAMES.progress).tables()
    rows = {name: tuple(_row(name, key, values) for key, values in found[name].items()) for name in found}
    files = JobFiles(directory)
    sink = SqliteSink(files.tables)
    sink.apply("it", Applied(0, Part(rows, {}, now_ms), now_ms))
    sink.close()
    return SceneTables(files)


def _row(name: str, key: Any, values: dict[str, Any]) -> dict[str, Any]:
    table = TABLES[name]
    keys = key if isinstance(key, tuple) else (key,)
    known = {**dict(zip(table.keys, keys, strict=True)), **values}
    return {column: known.get(column) for column in table.names}
