"""Spark's own settings may be secrets: they are no arguments of a process."""

import os
import stat
from pathlib import Path
from types import SimpleNamespace

import pytest

from drover.spark import session
from drover.spark.session import _class_path, _handed_over, _property, open_session

JARS = (Path("/jars/one.jar"), Path("/jars/two.jar"))


def test_they_are_handed_over_in_a_file_of_this_users_alone(tmp_path: Path) -> None:
    settings = {"spark.hadoop.fs.s3a.secret.key": "hush = \\ größe"}
    with _handed_over(tmp_path, settings):
        (file,) = tmp_path.iterdir()
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert str(file) in os.environ["PYSPARK_SUBMIT_ARGS"]
        assert "hush" not in os.environ["PYSPARK_SUBMIT_ARGS"]
        assert "hush" in file.read_text()
    assert list(tmp_path.iterdir()) == []
    assert "PYSPARK_SUBMIT_ARGS" not in os.environ


def test_two_audits_at_a_time_have_each_its_own_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They share a directory; the second one begins, and is over, while the Java of the first one starts."""
    handed_over: list[str] = []

    def start(_options: object, _output: Path) -> None:
        *_, name, _ = os.environ["PYSPARK_SUBMIT_ARGS"].split()
        mine = Path(name)
        if not handed_over:
            handed_over.append(mine.read_text())
            with monkeypatch.context() as another:
                another.setattr(os, "getpid", os.getppid)
                another.delenv("PYSPARK_SUBMIT_ARGS")
                open_session("second", directory=tmp_path, settings={"spark.which": "second"})
        handed_over.append(mine.read_text())

    monkeypatch.setattr(session, "ensure", lambda _: ())
    monkeypatch.setattr(session, "_prepare_environment", lambda _: None)
    monkeypatch.setattr(session, "start_java", start)
    monkeypatch.setattr(session, "_session_of", lambda *_: SimpleNamespace(sparkContext=None))
    monkeypatch.setattr(session, "keep_accumulators_quiet", lambda _: None)
    open_session("first", directory=tmp_path, settings={"spark.which": "first"})
    first, second, still_first = handed_over
    assert ("first" in first, "second" in second, still_first) == (True, True, first)
    assert sorted(tmp_path.rglob("*.part")) == sorted(tmp_path.rglob("options.properties")) == []


@pytest.mark.parametrize("master", ["local", "local[2]", "local[*]"])
def test_a_driver_that_is_its_own_executor_has_the_jars_on_its_class_path(master: str) -> None:
    own = {"spark.driver.extraClassPath": "/mine.jar", "spark.app.name": "x"}
    found = _class_path(JARS, master, own)
    assert found == {"spark.driver.extraClassPath": "/jars/one.jar:/jars/two.jar:/mine.jar"}
    assert own == {"spark.app.name": "x"}, "it would win over what was joined"
    assert _class_path(JARS, master, {}) == {"spark.driver.extraClassPath": "/jars/one.jar:/jars/two.jar"}


@pytest.mark.parametrize("master", [None, "local-cluster[2,1,1024]", "spark://host:7077", "yarn"])
def test_other_executors_are_sent_the_jars(master: str | None) -> None:
    assert _class_path(JARS, master, {}) == {"spark.jars": "/jars/one.jar,/jars/two.jar"}


def test_every_character_survives_javas_form() -> None:
    for text in ("a=b:c d#e!\\\n", "größe", "\U0001f469"):
        escaped = _property(text)
        assert escaped.isascii()
        assert escaped.encode().decode("unicode_escape").encode("utf-16", "surrogatepass").decode("utf-16") == text
