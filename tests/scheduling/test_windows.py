"""Maintenance windows: outside of them no step begins, and what runs goes on."""

from typing import Any

import pytest
from msgspec.structs import replace

from drover.client.views.status_rows import cluster_document, notices
from drover.client.views.waiting_reason import waiting_reason
from drover.events.clusters import PlanWindowsSet, WindowClosed, WindowOpened
from drover.events.commands import Cancel, ChangeLimits
from drover.events.partitions import TopicPartition
from drover.events.records import Outcome
from drover.events.refusals import RefusalCode
from drover.state.phase import Phase
from drover.state.scheduling import Limits
from drover.windows import in_words, is_open, opens_ms
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


async def set_windows(made: World, windows: str | None, plan: str | None = None) -> Outcome:
    command = ChangeLimits(
        id=f"w{len(made.log)}", cluster=CLUSTER, by="ann", reason="nights", values={"windows": windows}, plan=plan
    )
    return await made.send(command)


def waits(made: World, key: TopicPartition) -> str:
    return str(waiting_reason(made.state, key))


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
    assert "" in made.state.closed_windows
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


async def test_a_plan_waits_for_its_own_windows_while_others_go_on() -> None:
    made = world()
    await made.send(alter({KEYS[0]: [4, 2, 3]}, plan="nightly"))
    await made.run(500)
    assert (await set_windows(made, LATER, "nightly")).verdict == "accepted"
    await made.send(alter({KEYS[1]: [4, 2, 3]}, plan="nightly"))
    await made.send(alter({KEYS[2]: [4, 2, 3]}, plan="b"))
    await made.run(2000)
    phases = [made.reassignment(key).phase for key in KEYS]
    assert phases == [Phase.COPYING, Phase.PENDING, Phase.COPYING]
    opens_at_ms = opens_ms(LATER, made.now.wall_ms)
    closed = [event for event in made.events() if isinstance(event, WindowClosed)]
    assert [(event.plan, event.windows, event.opens_at_ms) for event in closed] == [("nightly", LATER, opens_at_ms)]
    line = f"no maintenance window of plan nightly is open ({LATER}): the next one opens at {in_words(opens_at_ms)}"
    assert waits(made, KEYS[1]) == f"withheld, {line}"
    assert any(line in notice for notice in notices(made.state))
    assert cluster_document(made.state, "w", 1)["plan_windows"] == {"nightly": LATER}
    made.crash()
    await made.run(opens_at_ms - made.now.wall_ms - 1000)
    assert made.reassignment(KEYS[1]).phase is Phase.PENDING
    await made.run(3000)
    assert made.reassignment(KEYS[1]).phase is Phase.COPYING
    assert [event.plan for event in made.events() if isinstance(event, WindowOpened)] == ["nightly"]


async def test_a_plan_begins_no_step_while_the_windows_of_the_cluster_are_closed() -> None:
    made = world(Limits(windows=LATER))
    await made.send(replace(alter({KEYS[0]: [4, 2, 3]}, plan="a"), windows=NOW))
    await made.run(2000)
    assert made.reassignment(KEYS[0]).phase is Phase.PENDING
    assert waits(made, KEYS[0]).startswith("withheld, no maintenance window is open")


async def test_an_alter_gives_its_plan_windows_before_the_first_step() -> None:
    made = world()
    await made.send(replace(alter({KEYS[0]: [4, 2, 3]}, plan="nightly"), windows=LATER))
    await made.run(2000)
    assert made.reassignment(KEYS[0]).phase is Phase.PENDING
    assert [event.windows for event in made.events() if isinstance(event, PlanWindowsSet)] == [LATER]
    await made.send(alter({KEYS[1]: [4, 2, 3]}, plan="nightly"))
    assert made.state.plan_windows == {"nightly": LATER}
    await made.send(replace(alter({KEYS[2]: [4, 2, 3]}, plan="nightly"), windows=""))
    await made.run(2000)
    assert [made.reassignment(key).phase for key in KEYS] == [Phase.COPYING] * 3
    assert not made.state.plan_windows
    assert not made.state.closed_windows


async def test_an_alter_with_windows_that_cannot_be_read_is_refused_as_a_whole() -> None:
    made = world()
    outcome = await made.send(replace(alter({KEYS[0]: [4, 2, 3]}, plan="nightly"), windows="at night"))
    assert [refusal.code for refusal in outcome.refusals] == [RefusalCode.INVALID_LIMIT]
    assert not made.state.plans


@pytest.mark.parametrize("windows", [None, ""])
async def test_a_plan_whose_windows_are_taken_away_begins_at_once(windows: str | None) -> None:
    made = world()
    await made.send(replace(alter({KEYS[0]: [4, 2, 3]}, plan="nightly"), windows=LATER))
    await set_windows(made, windows, "nightly")
    await made.run(2000)
    assert made.reassignment(KEYS[0]).phase is Phase.COPYING


async def test_a_move_of_a_plan_whose_windows_are_closed_is_rolled_back() -> None:
    made = world()
    await made.send(alter({KEYS[0]: [4, 2, 3], KEYS[1]: [4, 2, 3]}, plan="nightly"))
    await made.run(500)
    await set_windows(made, LATER, "nightly")
    await made.send(rollback(KEYS[0]))
    await made.run(8000)
    assert KEYS[0] not in made.state.reassignments
    assert "nightly" in made.state.closed_windows


async def test_a_plan_that_ends_forgets_its_windows() -> None:
    made = world()
    for name, key in (("finished", KEYS[0]), ("cancelled", KEYS[1])):
        await made.send(alter({key: [4, 2, 3]}, plan=name))
        await made.run(500)
        await set_windows(made, LATER, name)
    made.model.join_isr(KEYS[0], 4)
    await made.send(Cancel(id="c", cluster=CLUSTER, by="ann", reason="over", mode="rollback", plan="cancelled"))
    await made.run(8000)
    assert not made.state.reassignments
    assert not made.state.plan_windows
    assert not made.state.closed_windows


async def test_an_entry_of_the_queue_whose_plan_waits_for_its_window_lets_others_pass() -> None:
    made = world(Limits(max_partitions_in_flight=1))
    await made.send(alter({KEYS[0]: [4, 2, 3]}, plan="first"))
    await made.run(500)
    await made.send(replace(alter({KEYS[1]: [4, 2, 3]}, plan="nightly"), windows=LATER, queue=True))
    await made.send(replace(alter({KEYS[2]: [4, 2, 3]}, plan="b"), queue=True))
    made.model.join_isr(KEYS[0], 4)
    await made.run(2000)
    assert KEYS[1] in made.state.queue
    assert made.reassignment(KEYS[2]).phase is Phase.COPYING
    await set_windows(made, None, "nightly")
    made.model.join_isr(KEYS[2], 4)
    await made.run(2000)
    assert made.reassignment(KEYS[1]).phase is Phase.COPYING


@pytest.mark.parametrize(
    ("plan", "values", "code"),
    [
        ("b", {"windows": LATER}, RefusalCode.UNKNOWN_PLAN),
        ("a", {"windows": "at night"}, RefusalCode.INVALID_LIMIT),
        ("a", {"max_moves_per_broker": 1}, RefusalCode.INVALID_LIMIT),
        ("a", {"windows": LATER, "max_moves_per_broker": 1}, RefusalCode.INVALID_LIMIT),
    ],
)
async def test_a_plan_takes_only_windows_that_can_be_read(plan: str, values: Any, code: RefusalCode) -> None:
    made = world()
    await made.send(alter({KEYS[0]: [4, 2, 3]}, plan="a"))
    outcome = await made.send(ChangeLimits(id="w", cluster=CLUSTER, by="ann", reason="r", values=values, plan=plan))
    assert [refusal.code for refusal in outcome.refusals] == [code]
    assert not made.state.plan_windows


async def test_a_plan_that_has_ended_takes_no_windows() -> None:
    made = world()
    await made.send(alter({KEYS[0]: [4, 2, 3]}, plan="a"))
    await made.send(Cancel(id="c", cluster=CLUSTER, by="ann", reason="over", mode="rollback", plan="a"))
    assert (await set_windows(made, LATER, "a")).refusals[0].code is RefusalCode.PLAN_CLOSED


async def test_windows_that_a_plan_has_already_are_set_without_an_event() -> None:
    made = world()
    await made.send(replace(alter({KEYS[0]: [4, 2, 3]}, plan="a"), windows=LATER))
    await set_windows(made, LATER, "a")
    assert sum(isinstance(event, PlanWindowsSet) for event in made.events()) == 1
