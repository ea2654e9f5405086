"""The class data archive of Spark's Java: made behind a job, used by the next, and never a reason to fail."""

import os
import shutil
import time
from pathlib import Path

import pytest

from drover.jars.class_archives import Archives, archives_for
from drover.spark import class_archive
from drover.spark.class_archive import KIND, LIST_FLAG, ArchiveMaker, archive_maker, java_options

# Makes an archive of the classes that it is told of, and refuses to use one that holds the word "broken".
JAVA = """#!/bin/sh
for argument; do
    case "$argument" in
        -Xshare:dump) dump=yes ;;
        -XX:SharedClassListFile=*) list=${argument#*=} ;;
        -XX:SharedArchiveFile=*) file=${argument#*=} ;;
    esac
done
if [ -n "$dump" ]; then grep -q endless "$list" && exec sleep 60; cp "$list" "$file"; exit; fi
! grep -q broken "$file"
"""


@pytest.fixture
def java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DROVER_CACHE_DIR", str(tmp_path / "cache"))
    program = tmp_path / "jre" / "bin" / "java"
    library = tmp_path / "jre" / "lib" / "server" / "libjvm.so"
    for file, text in ((program, JAVA), (library, "a JVM")):
        file.parent.mkdir(parents=True)
        file.write_text(text, encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setattr(class_archive, "own_java", lambda: program)
    return program


def list_of(options: tuple[str, ...]) -> Path:
    (option,) = options
    assert option.startswith(LIST_FLAG)
    return Path(option.removeprefix(LIST_FLAG))


def make(java: Path, options: tuple[str, ...], classes: str = "java/lang/Object\norg/apache/Spa") -> None:
    """Do what a job does whose Java has written down these classes so far."""
    list_of(options).write_text(classes, encoding="utf-8")
    maker = ArchiveMaker([str(java), "-cp", "spark.jar", *options, "Main"], 0)
    maker.begin()
    assert maker._thread is not None
    maker._thread.join()
    maker.close()


def kept(tmp_path: Path) -> list[str]:
    return [file.name for file in (tmp_path / "cache" / "class-archives").glob("*.jsa*")]


def test_an_archive_of_what_was_loaded_is_made_and_used_from_then_on(java: Path, tmp_path: Path) -> None:
    first = java_options("spark 1", tmp_path)
    make(java, first)
    used = java_options("spark 1", tmp_path)[0].removeprefix("-XX:SharedArchiveFile=")
    assert Path(used).read_text(encoding="utf-8") == "java/lang/Object\n", "a line that is half written is left out"
    assert Path(used).name.startswith(KIND)
    assert java_options("spark 2", tmp_path)[0].startswith(LIST_FLAG), "another Spark has one of its own"


@pytest.mark.parametrize("classes", ["broken\n", ""])
def test_what_java_does_not_accept_is_thrown_away(java: Path, tmp_path: Path, classes: str) -> None:
    if not classes:
        java.write_text("#!/bin/sh\nexit 1\n", encoding="utf-8")
    make(java, java_options("spark 1", tmp_path), classes)
    assert kept(tmp_path) == []
    assert list_of(java_options("spark 1", tmp_path)).parent == tmp_path


def test_a_stop_does_not_wait_for_the_archive(java: Path, tmp_path: Path) -> None:
    options = java_options("spark 1", tmp_path)
    list_of(options).write_text("endless\n", encoding="utf-8")
    maker = ArchiveMaker([str(java), "-cp", "spark.jar", *options], 0)
    maker.begin()
    deadline = time.monotonic() + 20
    while maker._process is None:
        assert time.monotonic() < deadline
    maker.close()
    assert maker._process.returncode != 0
    maker.begin()
    assert kept(tmp_path) == []


def test_a_job_that_ends_soon_makes_no_archive(java: Path, tmp_path: Path) -> None:
    options = java_options("spark 1", tmp_path)
    list_of(options).write_text("java/lang/Object\n", encoding="utf-8")
    maker = ArchiveMaker([str(java), "-cp", "spark.jar", *options])
    maker.begin()
    maker.close()
    assert maker._process is None
    assert kept(tmp_path) == []


def test_a_java_that_uses_an_archive_makes_none(java: Path, tmp_path: Path) -> None:
    with archive_maker([str(java), "-cp", "spark.jar", "-XX:SharedArchiveFile=x.jsa"]) as begin:
        begin()
    assert not (tmp_path / "cache").exists()


def test_a_list_that_is_gone_and_a_cache_that_cannot_be_written_cost_nothing_but_time(
    java: Path, tmp_path: Path
) -> None:
    options = java_options("spark 1", tmp_path)
    list_of(options).unlink(missing_ok=True)
    gone = ArchiveMaker([str(java), "-cp", "spark.jar", *options], 0)
    gone.begin()
    assert gone._thread is not None
    gone._thread.join()
    shutil.rmtree(tmp_path / "cache")
    (tmp_path / "cache").write_text("a file where a directory should be", encoding="utf-8")
    make(java, options)
    assert java_options("spark 1", tmp_path) == ()


def test_archives_that_nobody_has_made_anew_for_a_month_are_removed(java: Path, tmp_path: Path) -> None:
    make(java, java_options("spark 1", tmp_path))
    (old,) = kept(tmp_path)
    month_ago = time.time() - class_archive.KEEPS_S - 1
    os.utime(tmp_path / "cache" / "class-archives" / old, (month_ago, month_ago))
    make(java, java_options("spark 2", tmp_path))
    (new,) = kept(tmp_path)
    assert new != old


def test_an_archive_that_is_whole_needs_no_base(java: Path) -> None:
    whole = archives_for(java, (), "spark", kind=KIND, is_whole=True)
    assert isinstance(whole, Archives)
    assert whole.base is None
