"""The import contracts of pyproject.toml hold; `make lint` checks the same."""

import subprocess
import sys
from pathlib import Path

from tests.architecture.repository import ROOT


def test_every_import_contract_is_kept() -> None:
    program = Path(sys.executable).parent / "lint-imports"
    done = subprocess.run([program, "--no-cache"], cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 broken" in done.stdout
