"""Whatever the workers of a group go through, each command is decided once and done, and no throttle is left."""

import pytest

from tests.runtime.random_story import play
from tests.runtime.virtual_time import run_in_virtual_time


@pytest.mark.parametrize("seed", range(5))
def test_each_command_is_decided_once_and_done(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    run_in_virtual_time(monkeypatch, play(seed))
