"""Whatever the workers of a group go through, each command is decided once and done, and no throttle is left."""

import pytest

from drover.testing.virtual_time import run_in_virtual_time
from tests.runtime.random_story import play


@pytest.mark.parametrize("seed", range(5))
def test_each_command_is_decided_once_and_done(seed: int) -> None:
    run_in_virtual_time(play(seed))
