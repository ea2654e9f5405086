"""L6 in the whole of Drover: producers write more than a plan's throttle lets through."""

from typing import Any

import pytest

from drover.decide.copy_pace import CopyPace
from drover.events.codec import decode_record
from drover.events.reassignments import Blocker, ReassignmentBlocked, ReassignmentCompleted
from drover.events.records import Batch
from drover.reconcile.moves import reconcile
from tests.simulation.actions import perform
from tests.simulation.liveness import check_the_end, heal
from tests.simulation.run import Script, run_script
from tests.simulation.settings import Settings
from tests.simulation.world import World

INGEST = 200_000


def altered(throttle_bytes_per_second: int) -> list[object]:
    fields: dict[str, Any] = {
        "id": "move", "cluster": "east", "by": "ana", "reason": "because",
        "throttle_bytes_per_second": throttle_bytes_per_second,
    }  # fmt: skip
    return ["alter", [["orders", 0, [5, 2, 3]]], fields, False, None]


def starving() -> Script:
    return Script(Settings(ingest_bytes_per_second=INGEST), (altered(150_000), ["run", 5000]))


def events(throttle_bytes_per_second: int) -> list[object]:
    world = World(Settings(ingest_bytes_per_second=INGEST))
    with world.inside():
        perform(world, tuple(altered(throttle_bytes_per_second)))
        perform(world, ("run", 5000))
        heal(world)
        check_the_end(world)
        records = [decode_record(payload) for payload in world.log.shards[0]]
    return [event for record in records if isinstance(record, Batch) for event in record.events]


def test_a_throttle_below_what_producers_write_is_named_once() -> None:
    blocks = [event for event in events(150_000) if isinstance(event, ReassignmentBlocked)]
    assert [block.why for block in blocks] == [Blocker.THROTTLE_TOO_LOW]


def test_a_throttle_above_it_is_not_and_the_copy_ends() -> None:
    found = events(220_000)
    assert not [event for event in found if isinstance(event, ReassignmentBlocked)]
    assert [event for event in found if isinstance(event, ReassignmentCompleted)]


def test_the_simulation_notices_a_drover_that_does_not() -> None:
    """What the check is worth: with the verdict taken out it fails."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reconcile, "pace", lambda *_: CopyPace(5, 0, 0, falls_behind=False, catches_up=False))
        failure = run_script(starving()).failure
    assert failure is not None
    assert failure.startswith("AssertionError: L6")
    assert run_script(starving()).failure is None
