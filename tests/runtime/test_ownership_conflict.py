"""A shard that changes hands again and again is left to the other for longer each time."""

import structlog

from drover.agents.ownership_conflict import LONGEST_PAUSE_S, LULL_S, OwnershipConflict
from drover.events.codec import encode_record
from drover.events.records import SCHEMA_VERSION, Acquire
from drover.testing.memory_journal import StoredRecord
from tests.runtime.world import GROUP, World


def test_the_first_loss_is_answered_at_once_and_the_next_ones_ever_later_up_to_a_bound() -> None:
    contest = OwnershipConflict()
    pauses = [contest.pause_s(number * 0.1) for number in range(30)]
    assert pauses[0] == 0
    assert 0 < pauses[1] < 0.05
    assert all(0.5 * LONGEST_PAUSE_S <= pause <= LONGEST_PAUSE_S for pause in pauses[10:])


def test_after_a_lull_a_loss_is_answered_at_once_again() -> None:
    contest = OwnershipConflict()
    assert [contest.pause_s(now_s) > 0 for now_s in (0.0, 1.0, 2.0, 2.1 + LULL_S, 2.2 + LULL_S)] == [
        False,
        True,
        True,
        False,
        True,
    ]


async def hints_after_theft_by(group: str) -> list[str | None]:
    """Return the hints of the log lines of a worker that takes a shard back from one of this group."""
    world = World()
    with structlog.testing.capture_logs() as said:
        host, _, _ = await world.serving_host()
        thief = Acquire(schema=SCHEMA_VERSION, epoch=2, token=b"thief", owner="thief", group=group, generation=0)
        world.broker.put(world.broker.topics.events, 0, StoredRecord(encode_record(thief)))
        await world.until(lambda: host.shards[0].fold.epoch == 3, "the shard to be acquired again")
        await world.close()
    return [line.get("hint") for line in said if line["event"] == "a shard is acquired again"]


async def test_a_worker_that_loses_a_shard_to_another_group_says_what_to_do_about_it() -> None:
    (hint,) = await hints_after_theft_by("zebra")
    assert hint == (
        f"two groups of workers ({GROUP}, zebra) take this shard from each other: "
        "give all of them the same worker.group"
    )


async def test_a_theft_within_the_group_or_by_nobody_of_a_group_has_no_such_hint() -> None:
    assert await hints_after_theft_by(GROUP) == [None]
    assert await hints_after_theft_by("") == [None]
