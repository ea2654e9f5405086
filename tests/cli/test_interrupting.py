"""Ctrl-C before a command has begun."""

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.architecture.repository import ROOT

# In place of a library: Ctrl-C comes while it is imported, in a text, since data classes make their methods of texts.
INTERRUPTED = """
import os, signal
exec("os.kill(os.getpid(), signal.SIGINT); import time; time.sleep(5)")
"""


@pytest.mark.parametrize("library", ["click", "asyncio"])
@pytest.mark.parametrize("installed", [False, True])
def test_ctrl_c_while_a_command_is_imported_is_an_interruption(
    library: str, tmp_path: Path, *, installed: bool
) -> None:
    libraries, script = tmp_path / "libraries", tmp_path / "drover"
    libraries.mkdir()
    (libraries / f"{library}.py").write_text(INTERRUPTED)
    entry = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]["drover"]
    module, _, function = entry.partition(":")
    script.write_text(f"import sys\nfrom {module} import {function}\nsys.exit({function}())\n")
    command = (str(script),) if installed else ("-m", "drover")
    done = subprocess.run(
        (sys.executable, *command, "status"), capture_output=True, text=True, check=False, cwd=ROOT,
        env={**os.environ, "PYTHONPATH": f"{libraries}:{ROOT}"},
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (130, "Interrupted.\n")
