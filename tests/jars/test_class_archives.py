"""Class data archives: kept only when the JVM says that they are whole, and never a reason to fail."""

import os
from pathlib import Path

import pytest

from drover.jars.class_archives import RECORD_FLAG, Archives, archives_for
from drover.local.layout import Layout
from drover.local.programs import JVM_FLAGS, RECORDER, Programs, node_command, shared_command

# Fails when it is to use an archive that holds the word "broken"; makes a base when it is told to.
JAVA = """#!/bin/sh
for argument; do
    case "$argument" in
        -Xshare:dump) dump=yes ;;
        -XX:SharedArchiveFile=*) files=${argument#*=} ;;
    esac
done
if [ -n "$dump" ]; then echo base > "$files"; exit 0; fi
for file in $(echo "$files" | tr ':' ' '); do grep -q broken "$file" && exit 1; done
exit 0
"""


@pytest.fixture
def java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DROVER_CACHE_DIR", str(tmp_path / "cache"))
    home = tmp_path / "jre"
    (home / "lib" / "server").mkdir(parents=True)
    (home / "lib" / "server" / "libjvm.so").write_bytes(b"a JVM")
    (home / "lib" / "server" / "classes.jsa").write_bytes(b"its own classes")
    program = home / "bin" / "java"
    program.parent.mkdir()
    program.write_text(JAVA, encoding="utf-8")
    program.chmod(0o755)
    return program


def made(java: Path, class_path: str = "kafka.jar") -> Archives:
    archives = archives_for(java, JVM_FLAGS, class_path)
    assert archives is not None
    return archives


def without_own_classes(java: Path) -> None:
    (java.parents[1] / "lib" / "server" / "classes.jsa").unlink()


def recorded(tmp_path: Path, content: str = "whole") -> Path:
    file = tmp_path / "recorded.jsa"
    file.write_text(content, encoding="utf-8")
    return file


def test_an_archive_that_the_jvm_verifies_is_kept_and_used(java: Path, tmp_path: Path) -> None:
    archives = made(java)
    assert not archives.use_flags
    assert archives.keep(recorded(tmp_path))
    assert archives.classes.read_text(encoding="utf-8") == "whole"
    assert archives.use_flags[0] == f"-XX:SharedArchiveFile={archives.classes}"
    assert made(java) == archives


def test_a_broken_archive_is_thrown_away_without_a_trace(java: Path, tmp_path: Path) -> None:
    archives = made(java)
    assert not archives.keep(recorded(tmp_path, "broken"))
    assert list(archives.classes.parent.iterdir()) == []


def test_what_was_kept_is_not_replaced(java: Path, tmp_path: Path) -> None:
    archives = made(java)
    assert archives.keep(recorded(tmp_path))
    assert not archives.keep(recorded(tmp_path, "later"))
    assert archives.classes.read_text(encoding="utf-8") == "whole"


def test_nothing_recorded_is_nothing_kept(java: Path, tmp_path: Path) -> None:
    assert not made(java).keep(tmp_path / "never-written.jsa")


def test_a_java_without_its_own_archive_gets_one(java: Path, tmp_path: Path) -> None:
    without_own_classes(java)
    archives = made(java)
    assert archives.base is not None
    assert archives.base.read_text(encoding="utf-8") == "base\n"
    assert archives.use_flags[0] == f"-XX:SharedArchiveFile={archives.base}"
    assert archives.record_flags(tmp_path / "x.jsa")[0] == archives.use_flags[0]
    assert archives.keep(recorded(tmp_path))
    assert archives.use_flags[0] == f"-XX:SharedArchiveFile={archives.base}{os.pathsep}{archives.classes}"


def test_another_java_another_class_path_and_an_upgraded_java_have_archives_of_their_own(java: Path) -> None:
    first = made(java)
    assert made(java, "other.jar").classes != first.classes
    (java.parents[1] / "lib" / "server" / "libjvm.so").write_bytes(b"a newer JVM")
    assert made(java).classes != first.classes


def test_a_java_that_cannot_make_a_base_runs_without_archives(java: Path) -> None:
    without_own_classes(java)
    java.write_text("#!/bin/sh\nexit 1\n", encoding="utf-8")
    assert archives_for(java, JVM_FLAGS, "kafka.jar") is None


def test_a_java_that_is_only_a_script_runs_without_archives(tmp_path: Path) -> None:
    script = tmp_path / "bin" / "java"
    assert archives_for(script, JVM_FLAGS, "kafka.jar") is None


def test_a_cache_that_cannot_be_written_means_no_archives(java: Path, tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file where a directory should be", encoding="utf-8")
    assert archives_for(java, JVM_FLAGS, "kafka.jar") is None


def test_an_archive_that_others_could_have_put_there_is_not_used(java: Path, tmp_path: Path) -> None:
    assert made(java).keep(recorded(tmp_path))
    (tmp_path / "cache" / "class-archives").chmod(0o777)
    assert archives_for(java, JVM_FLAGS, "kafka.jar") is None


def test_one_broker_records_until_there_is_an_archive_and_then_all_use_it(java: Path, tmp_path: Path) -> None:
    archives = made(java)
    programs = Programs(java, "kafka.jar", "zookeeper.jar", archives)
    layout = Layout(tmp_path / "cluster")
    recording = [node for node in ("1", "2", "100") if _records(node_command(programs, layout, node))]
    assert recording == [RECORDER]
    assert _records(shared_command(programs, layout, ["1", "100"]))
    assert not _records(shared_command(programs, layout, ["2", "100"]))
    assert archives.keep(recorded(tmp_path))
    for node in ("1", "2", "100"):
        assert archives.use_flags[0] in node_command(programs, layout, node)
        assert not _records(node_command(programs, layout, node))
    assert archives.use_flags[0] in shared_command(programs, layout, ["1", "100"])
    assert not _records(shared_command(programs, layout, ["1", "100"]))
    assert archives.use_flags[0] not in node_command(programs, layout, "zookeeper")


def _records(command: list[str]) -> bool:
    return any(argument.startswith(RECORD_FLAG) for argument in command)
