"""The programs in events/README.md, run as they are printed: what they send is a command where its shard reads it.

Python in any case, Java if a JDK is installed, the shell's if there is kcat, and JavaScript if the variable
`DROVER_TEST_NODE_MODULES` names a folder with its client. What they and Go's send is decoded by
`tests/events/test_readme.py` in any case; compiling Go's client would take minutes.
"""

import asyncio
import os
import re
import shutil
import subprocess
import sys
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
NODE_MODULES = "DROVER_TEST_NODE_MODULES"
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


def in_python(directory: Path, text: str) -> None:
    run(directory, sys.executable, "-c", text)


def in_javascript(directory: Path, text: str) -> None:
    (directory / "node_modules").symlink_to(os.environ[NODE_MODULES])
    (directory / "send.mjs").write_text(text, encoding="utf-8")
    run(directory, "node", "send.mjs")


async def test_the_programs_of_other_languages_send_a_command_to_its_shard(
    local_cluster: LocalCluster, tmp_path: Path
) -> None:
    known = {
        "sh": (in_shell, bool(shutil.which("kcat"))),
        "python": (in_python, True),
        "js": (in_javascript, NODE_MODULES in os.environ),
        "java": (in_java, bool(shutil.which("javac"))),
    }
    programs = {language: program for language, (program, is_there) in known.items() if is_there}
    async with installation(local_cluster, tmp_path, "spoken") as made:
        topic = made.names.commands[0]
        for language, program in programs.items():
            text = example(language)
            assert ("kafka-1:9092" in text, "drover.alter" in text) == (True, True)
            server = local_cluster.bootstrap.split(",")[0]
            text = text.replace("kafka-1:9092", server).replace("drover.alter", topic)
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
