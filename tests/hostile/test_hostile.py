"""Some seeds of hostile and large honest input; `make soak-hostile` plays more of them."""

import contextlib
from collections.abc import Iterator

import pytest

from drover.agents import dead_letters
from drover.shard import inbox, pipeline, proposals
from tests.hostile.checks import check
from tests.hostile.play import Play

pytestmark = pytest.mark.story

SEEDS = range(12)
ROUNDS = 25


@contextlib.contextmanager
def narrowed(seed: int) -> Iterator[None]:
    """With odd seeds let little be enough for several records."""
    with pytest.MonkeyPatch.context() as patch:
        # A busy machine is no reason to give letters up here.
        patch.setattr(dead_letters, "WRITE_TIMEOUT_S", 60.0)
        if seed % 2:
            patch.setattr(pipeline, "MAX_DECISION_BYTES", 64 * 1024)
            patch.setattr(proposals, "RECORD_BYTES", 256 * 1024)
            # Reading pauses soon.
            patch.setattr(inbox, "HIGH_COUNT", 60)
            patch.setattr(inbox, "LOW_COUNT", 30)
        yield


@pytest.mark.parametrize("seed", SEEDS)
async def test_nothing_that_is_sent_stops_a_worker_and_every_command_has_an_outcome(seed: int) -> None:
    with narrowed(seed):
        play = Play(seed, ROUNDS)
        try:
            await play.run()
            check(play)
        finally:
            await play.close()
