"""Maintenance windows: outside of them no step begins, and what runs goes on."""

import pytest

from drover.client.views.status_rows import notices
from drover.client.views.waiting_reason import waiting_reason
from drover.events.clusters import WindowClosed, WindowOpened
from drover.events.commands import ChangeLimits
from drover.events.partitions import TopicPartition
from drover.events.records import Outcome
from drover.events.refusals import RefusalCode
from drover.state.phase import Phase
from drover.state.scheduling import Limits
from drover.windows import is_open, opens_ms
from tests.shard.world import CLUSTER, WALL_START_MS, World, alter, rollback

KEYS = tuple(TopicPartition("orders", number) for number in range(3))
MINUTE_MS = 60_000


def clock(at_ms: int) -> str:
    minutes = at_ms // MINUTE_MS % (24 * 60)
    return f"{minutes // 60:02}:{minutes % 60:02}"


# One that is open for the first minutes of the test and opens again the next day, and one that opens in five minutes.
NOW = f"{clock(WALL_START_MS)}-{clock(WALL_START_MS + 3 * MINUTE_MS)}"
LATER = f"{clock(WALL_START_MS + 5 * MINUTE_MS)}-{clock(WALL_START_MS + 60 * MINUTE_MS)}"


def world(limits: Limits | None = None) -> World:
    made = World(brokers=6, limits=limits, joins_by_itself=False)
    made.model.create_topic("orders", {key.partition: (1, 2, 3) for key in KEYS})
    return made


async def set_windows(made: World, windows: str | None) -> Outcome:
    command = ChangeLimits(
        id=f"w{len(made.log)}", cluster=CLUSTER, by="ann", reason="nights", values={"windows": windows}
    )
    return await made.send(command)


async def test_outside_the_windows_no_step_begins_and_what_runs_goes_on() -> None:
    made = world()
    await made.send(alter({KEYS[0]: [4, 2, 3]}, plan="a"))
    await made.run(500)
    assert (await set_windows(made, LATER)).verdict == "accepted"
    await made.send(alter({KEYS[1]: [4, 2, 3]}, plan="b"))
    await made.run(2000)
    assert [made.reassignment(key).phase for key in KEYS[:2]] == [Phase.COPYING, Phase.PENDING]
    opens_at_ms = opens_ms(LATER, made.now.wall_ms)
    (closed,) = [event for event in made.events() if isinstance(event, WindowClosed)]
    assert (closed.windows, closed.opens_at_ms) == (LATER, opens_at_ms)
    waiting = waiting_reason(made.state, KEYS[1])
    assert waiting is not None
    assert waiting.code == "window-closed"
    assert f"no maintenance window is open ({LATER}): the next one opens at" in str(waiting)
    assert any("no maintenance window is open" in line for line in notices(made.state))
    made.model.join_isr(KEYS[0], 4)
    await made.run(2000)
    assert KEYS[0] not in made.state.reassignments
    made.crash()
    await made.run(opens_at_ms - made.now.wall_ms - 1000)
    assert made.reassignment(KEYS[1]).phase is Phase.PENDING
    await made.run(3000)
    assert made.reassignment(KEYS[1]).phase is Phase.COPYING
    assert [event for event in made.events() if isinstance(event, WindowOpened)]


async def test_a_window_closes_on_its_minute_and_rollbacks_go_on() -> None:
    made = world(Limits(windows=NOW))
    await made.send(alter({KEYS[0]: [4, 2, 3]}, plan="a"))
    await made.run(500)
    assert made.reassignment(KEYS[0]).phase is Phase.COPYING
    await made.run(3 * MINUTE_MS)
    assert not is_open(NOW, made.now.wall_ms)
    assert made.state.closed_window is not None
    await made.send(alter({KEYS[1]: [4, 2, 3]}, plan="b"))
    await made.send(rollback(KEYS[0]))
    await made.run(8000)
    assert KEYS[0] not in made.state.reassignments
    assert made.reassignment(KEYS[1]).phase is Phase.PENDING


async def test_without_windows_steps_begin_again_at_once() -> None:
    made = world(Limits(windows=LATER))
    await made.send(alter({KEYS[0]: [4, 2, 3]}, plan="a"))
    await made.run(2000)
    assert made.reassignment(KEYS[0]).phase is Phase.PENDING
    await set_windows(made, None)
    await made.run(2000)
    assert made.reassignment(KEYS[0]).phase is Phase.COPYING


@pytest.mark.parametrize(("windows", "words"), [("at night", "is no window"), ("22:00-05:00 Mars/Base", "time zone")])
async def test_a_text_that_names_no_window_is_refused(windows: str, words: str) -> None:
    made = world()
    outcome = await set_windows(made, windows)
    assert outcome.refusals[0].code is RefusalCode.INVALID_LIMIT
    assert words in outcome.refusals[0].detail
