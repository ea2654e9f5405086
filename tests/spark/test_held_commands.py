"""Commands that wait for others: an audit counts each of them once, as what became of it at the end of its part."""

import pytest
from msgspec.structs import replace

from drover.events.records import Outcome
from tests.spark.kafka_rows import BEGAN_MS, acquire, batch, shard
from tests.spark.test_names_used_again import audit

TOKEN = b"o" * 16
HELD = Outcome(
    id="after-friday",
    cluster="local",
    type="alter",
    by="ann",
    reason="drain",
    topic="drover.alter",
    offset=1,
    verdict="held",
)


@pytest.mark.parametrize("verdict", ["accepted", "refused"])
def test_a_command_that_was_held_and_then_decided_is_one_command(verdict: str) -> None:
    waiting = batch(1, token=TOKEN, outcomes=(HELD,))
    decided = batch(2, token=TOKEN, outcomes=(replace(HELD, verdict=verdict),), at_ms=BEGAN_MS + 1000, after=waiting)
    again = batch(3, token=TOKEN, outcomes=(replace(HELD, verdict="duplicate"),), at_ms=BEGAN_MS + 2000, after=decided)
    found = audit(shard(acquire(1, TOKEN), waiting, decided, again))
    told = [(row["verdict"], row["at_ms"]) for row in found.sections["commands"]]
    assert told == [(verdict, BEGAN_MS + 1000), ("duplicate", BEGAN_MS + 2000)]
    counts = ("accepted_commands", "refused_commands", "repeated_commands")
    assert found.totals["commands"] == sum(found.totals[name] or 0 for name in counts) == 2
    (requester,) = found.sections["requesters"]
    assert requester["commands"] == 2


def test_a_command_that_still_waits_is_one_too() -> None:
    found = audit(shard(acquire(1, TOKEN), batch(1, token=TOKEN, outcomes=(HELD,))))
    assert [row["verdict"] for row in found.sections["commands"]] == ["held"]
    assert found.totals["commands"] == 1
