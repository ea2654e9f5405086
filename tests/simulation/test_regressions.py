"""What a seed once found, as the script it was shrunk to: each was seen to fail before the fault was mended."""

from pathlib import Path

import pytest
from msgspec import json

from tests.simulation.run import Script, run_script

SCRIPTS = sorted((Path(__file__).parent / "regressions").glob("*.json"))


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_what_a_seed_found_stays_mended(path: Path) -> None:
    assert run_script(json.decode(path.read_bytes(), type=Script)).failure is None


def test_there_are_scripts() -> None:
    assert SCRIPTS
