"""Model and reality side by side: random scripts whose every answer and every rest must be the same on both."""

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
import pytest_asyncio

from drover.local import LocalCluster, local_cluster
from drover.testing import controller_model
from tests.reality.operations import Alter, Create, Operation, Place, Replicas
from tests.reality.real import RealCluster
from tests.reality.recorder import Disagreement, run_batch
from tests.reality.scripts import Batch, Kill, Script, Start, make_batch
from tests.reality.shrink import report

SEED = 3
SCRIPTS = 32
MOST_UNSTEADY = 1

pytestmark = [pytest.mark.cluster, pytest.mark.story]


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def four(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[LocalCluster]:
    """Four brokers, each of which a script may kill."""
    async with local_cluster(tmp_path_factory.mktemp("four"), brokers=4) as cluster:
        yield cluster


async def play(local: LocalCluster, batch: Batch) -> None:
    """Play a batch; what disagrees is played once more, beside less.

    A broker that was too slow may spoil any number of scripts. Without one, a script that agrees the second time was
    at the mercy of an order in time that neither the script nor the model knows: one in a batch is let pass.
    """
    async with RealCluster(local) as real:
        found = await run_batch(real, batch)
        if not found:
            return
        again = await run_batch(real, replace(batch, scripts=tuple(one.script for one in found)))
        assert not again, await told(real, again)
        steady = [one for one in found if not one.disturbed]
        assert len(steady) <= MOST_UNSTEADY, await told(real, steady)


async def told(real: RealCluster, found: list[Disagreement]) -> str:
    """Tell of the first disagreement at length."""
    return f"{len(found)} scripts disagree, the first: {await report(real, found[0])}"


async def test_scripts_under_which_two_brokers_die_and_return_agree(four: LocalCluster) -> None:
    batch = make_batch(SEED, SCRIPTS)
    assert sum(isinstance(event, Kill) for event in batch.weather) == 2
    assert sum(isinstance(event, Start) for event in batch.weather) == 2
    assert sum(len(script.operations) for script in batch.scripts) > SCRIPTS * 10
    await play(four, batch)


async def test_a_wrong_model_is_found_and_the_script_made_as_small_as_it_can_be(
    four: LocalCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = controller_model.delta

    def wrong(current: Replicas, target: Replicas) -> tuple[Replicas, Replicas, Replicas]:
        return right(current, tuple(sorted(target)))

    operations: tuple[Operation, ...] = (
        Create("a", ((3, 2, 1), (1, 2, 3))),
        Create("b", ((1, 2),)),
        Alter(((Place("a", 1), (1, 2)),)),
        Alter(((Place("a", 0), (2, 3, 1)),)),
        Alter(((Place("b", 0), None),)),
    )
    batch = Batch(0, (None,) * len(operations), (Script(7, operations),))
    monkeypatch.setattr(controller_model, "delta", wrong)
    async with RealCluster(four) as real:
        found = await run_batch(real, batch, agree_within_s=1)
        assert [(one.round_number, one.disturbed) for one in found] == [(3, False)]
        said = await report(real, found[0], agree_within_s=1)
    assert "model R[1, 2, 3]" in said
    assert "Kafka R[2, 3, 1]" in said
    assert "python -m tests.reality 0 7 --rounds 0,3" in said
