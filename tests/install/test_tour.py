"""The five minutes of the README, run line by line as a newcomer would, from the installed wheel."""

import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.docker.packages import environment_of_wheel

pytestmark = [pytest.mark.cluster, pytest.mark.story]

REPOSITORY = Path(__file__).parents[2]
# It takes three minutes beside all other tests, and took five on a machine that was busy with others' work.
AT_MOST_S = 540
FIRST_LINE = "make install && source .venv/bin/activate\n"


def tour() -> str:
    """The shell blocks of the README's tour, without the installation and on free ports."""
    text = (REPOSITORY / "README.md").read_text(encoding="utf-8")
    section = text.split("## Five minutes on the real thing")[1].split("\n## ")[0]
    script = "".join(re.findall(r"```sh\n(.*?)```", section, flags=re.DOTALL))
    assert script.startswith(FIRST_LINE), "the tour begins with the installation, which this test stands in for"
    return re.sub(r"--listen 127\.0\.0\.1:\d+", "--listen 127.0.0.1:0", script.replace(FIRST_LINE, ""))


@pytest.mark.timeout(AT_MOST_S + 60)
def test_the_readmes_five_minutes_work_as_they_are_written(tmp_path: Path) -> None:
    commands = environment_of_wheel(tmp_path, "spark", "local", "plots") / "bin"
    environment = {**os.environ, "PATH": f"{commands}:{os.environ['PATH']}"}
    environment.pop("DROVER_CONFIG", None)
    environment.pop("PYTHONPATH", None)
    script = f"set -eu\ntrap 'kill $(jobs -p) 2>/dev/null; drover local down' EXIT\n{tour()}"
    done = subprocess.run(
        ["bash", "-m", "-c", script],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=AT_MOST_S,
        check=False,
    )
    said = f"{done.stdout}\n{done.stderr}"
    assert done.returncode == 0, said
    assert "accepted, plan friday" in done.stdout, said
    assert "rolled back, replicas " in done.stdout, said
    assert "done, replicas " in done.stdout, said
    assert "Verified" in done.stdout, said
    assert "What was done" in done.stdout, said
    # An audit in a process of its own; what Spark says by itself goes to a file.
    assert done.stderr.count("Starting Spark; its own log is ") == 1, said
    assert "WARN" not in done.stderr, said
    assert not (tmp_path / ".local" / "cluster").exists(), said
