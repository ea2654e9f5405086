"""The trial of a command costs what there is to tell, since every viewer waits while it is made."""

from typing import Any

import pytest

from drover.events.clusters import BrokerHeld, HoldRole
from drover.events.commands import AnyCommand, Freeze, HoldBroker, ReleaseBroker
from drover.state.cluster import ClusterState
from drover.web.trials import trial
from tests.client.log import CLUSTER
from tests.growth import processor_seconds
from tests.web.scene import Scene, keys

MOVES = 12_000
BROKER = 4


def asked(id_: str) -> dict[str, Any]:
    return {"id": id_, "cluster": CLUSTER, "by": "ann", "reason": "a busy hour"}


def seconds_for(command: AnyCommand, state: ClusterState) -> float:
    """Return the processor time of a trial."""
    assert len(trial(command, state, 0, 1).keys) > MOVES / 2
    return processor_seconds(lambda: trial(command, state, 0, 1))


@pytest.mark.parametrize(
    "command",
    [HoldBroker(**asked("h"), broker=BROKER), ReleaseBroker(**asked("r"), broker=BROKER)],
    ids=lambda one: one.id,
)
def test_a_hold_of_a_broker_costs_what_moves_and_not_the_square_of_it(command: AnyCommand) -> None:
    """With 40,000 moves into a broker that was half a minute, in which the page answered nobody."""
    scene = Scene()
    scene.open_plan("p", "ann", "why", None, keys("orders", MOVES))
    if isinstance(command, ReleaseBroker):
        scene.say(BrokerHeld(cluster=CLUSTER, broker=BROKER, by="ann", reason="a busy hour", role=HoldRole.BOTH))
    state = scene.view.log.cluster(CLUSTER)
    assert seconds_for(command, state) < 15 * seconds_for(Freeze(**asked("f")), state)
