"""The programs in events/README.md, run as they are printed: what they send is a command where its shard reads it.

Java if a JDK is installed, the shell's if there is kcat. What they and Go's send is decoded by
`tests/events/test_readme.py` in any case; compiling Go's client would take minutes.
"""

import asyncio
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from drover.events.codec import decode_command
from drover.events.commands import Alter
from drover.events.topics import DEFAULT_SHARDS, shard_of
from drover.jars import KAFKA_VERSION, class_path, ensure, kafka_set
from drover.journal.reader import LogReader
from drover.local import LocalCluster
from tests.integration.support import installation

pytestmark = [pytest.mark.cluster, pytest.mark.story]
README = Path(__file__).parents[2] / "events" / "README.md"


def example(language: str) -> str:
    text = README.read_text(encoding="utf-8").split("\n## From other languages\n")[1].split("\n## ")[0]
    (found,) = re.findall(rf"```{language}\n(.*?)```", text, flags=re.DOTALL)
    assert isinstance(found, str)
    return found


def run(directory: Path, *command: str, **variables: str) -> str:
    """Run a program to its end and return what it printed."""
    done = subprocess.run(
        command,
        cwd=directory,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def in_shell(directory: Path, text: str) -> None:
    run(directory, "sh", "-euc", text)


def in_java(directory: Path, text: str) -> None:
    (directory / "SendAlter.java").write_text(text, encoding="utf-8")
    libraries = f"{class_path(ensure(kafka_set(KAFKA_VERSION)))}{os.pathsep}."
    run(directory, "javac", "SendAlter.java", CLASSPATH=libraries)
    run(directory, "java", "SendAlter", CLASSPATH=libraries)


async def test_the_programs_of_other_languages_send_a_command_to_its_shard(
    local_cluster: LocalCluster, tmp_path: Path
) -> None:
    known = {
        "sh": (in_shell, bool(shutil.which("kcat"))),
        "java": (in_java, bool(shutil.which("javac"))),
    }
    programs = {language: program for language, (program, is_there) in known.items() if is_there}
    async with installation(local_cluster, tmp_path, "spoken") as made:
        topic = made.names.commands[0]
        for language, program in programs.items():
            text = example(language)
            assert ("kafka-1:9092" in text, "drover.alter" in text) == (True, True)
            text = text.replace("kafka-1:9092", local_cluster.bootstrap).replace("drover.alter", topic)
            await asyncio.to_thread(program, tmp_path, text)
        async with LogReader(made.connection) as reader:
            shards = range(DEFAULT_SHARDS)
            ends = await reader.end_offsets(topic, shards)
            assert ends == {
                shard: len(programs) if shard == shard_of("prod", DEFAULT_SHARDS) else 0 for shard in shards
            }
            records = [record async for part in reader.read(topic, dict.fromkeys(shards, 0)) for record in part]
    assert len(records) == len(programs)
    for record in records:
        assert record.key == b"prod"
        assert record.header("content-type") == "application/json"
        alter = decode_command(record.payload, "application/json")
        assert isinstance(alter, Alter)
        assert (alter.id, alter.cluster, alter.partitions[0].replicas) == ("friday-1", "prod", (4, 2, 3))
