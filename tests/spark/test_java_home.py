"""The script in front of Java: it drops one argument, and a process that inherits it uses it as it is."""

import subprocess
from pathlib import Path

import pytest

from drover.spark.java_home import DROPPED, java_home


def test_the_script_drops_the_argument_and_is_not_made_to_call_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DROVER_CACHE_DIR", str(tmp_path))
    home = java_home()
    made = (home / "bin" / "java").read_text()
    monkeypatch.setenv("JAVA_HOME", str(home))
    assert java_home() == home
    assert (home / "bin" / "java").read_text() == made
    done = subprocess.run([home / "bin" / "java", DROPPED, "-version"], capture_output=True, timeout=60, check=True)
    assert b"version" in done.stderr
