"""Directories in which no cluster can be started: said before anything is begun."""

import os
from pathlib import Path

import pytest

from drover.errors import ConfigurationError
from drover.local import LocalCluster
from drover.local.files import check_directory
from drover.local.layout import Layout


def test_a_directory_below_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigurationError, match="file is a file, so "):
        check_directory(Layout(tmp_path / "file" / "below" / "cluster"))
    with pytest.raises(ConfigurationError, match="is a file; choose another"):
        check_directory(Layout(tmp_path / "file"))


def test_a_directory_that_cannot_be_made_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The tests may run as a user who may write everywhere."""
    monkeypatch.setattr("os.access", lambda path, mode: Path(path).exists() and mode == os.F_OK)
    with pytest.raises(ConfigurationError, match=r" is not writable; choose another --dir"):
        check_directory(Layout(tmp_path / "new" / "cluster"))


async def test_a_cache_that_cannot_be_made_is_named_with_the_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("DROVER_CACHE_DIR", str(tmp_path / "file" / "below"))
    with pytest.raises(ConfigurationError, match=r"nothing can be kept in .*file.*DROVER_CACHE_DIR"):
        await LocalCluster(tmp_path / "cluster").down()


async def test_what_no_cluster_made_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`drover local down --dir` removed a folder `nodes` of the user's, and said that nothing runs there."""
    monkeypatch.setenv("DROVER_CACHE_DIR", str(tmp_path / "cache"))
    mine = tmp_path / "project" / "nodes" / "mine.txt"
    mine.parent.mkdir(parents=True)
    mine.write_text("precious")
    assert not await LocalCluster(tmp_path / "project").down()
    with pytest.raises(ConfigurationError, match="nodes was not created by `drover local up` and is left alone"):
        check_directory(Layout(tmp_path / "project"))
    assert mine.read_text() == "precious"


def test_a_disk_may_be_prepared_for_a_node(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    layout = Layout(tmp_path / "cluster")
    data = layout.data_directory("4")
    data.parent.mkdir(parents=True)
    data.symlink_to(tmp_path / "disk")
    check_directory(layout)


def test_a_directory_that_can_be_made_is_not_made_yet(tmp_path: Path) -> None:
    check_directory(Layout(tmp_path / "new" / "cluster"))
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("name", ["a,b", "a\nb", "a\udcfc", "a\x1b[31m"])
def test_a_directory_that_kafka_would_take_for_another_one_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigurationError, match="choose another --dir"):
        check_directory(Layout(tmp_path / name / "cluster"))
    check_directory(Layout(tmp_path / "Jürgens Dateien" / "cluster"))
