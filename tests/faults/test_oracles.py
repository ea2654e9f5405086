"""The oracles see what they are there for: each fault that one must find is made by hand."""

import asyncio
import subprocess
import sys
from collections import Counter
from pathlib import Path
from random import Random

import pytest

from drover.agents import clock
from drover.client.answers import Sent
from drover.events.commands import AnyCommand, Freeze, Unfreeze
from drover.events.partitions import TopicPartition
from drover.events.reassignments import Blocker
from drover.journal.connection import LogConnection
from drover.state import scheduling
from drover.state.cluster import ClusterState
from drover.state.phase import Phase
from drover.state.plans import Plan, PlanStatus
from drover.state.reassignment import Block, Reassignment
from tests.faults.disks import Disk
from tests.faults.oracles import Processes, judge_configs, judge_decided, judge_state
from tests.faults.planning import Planning
from tests.faults.records import Ledger, content, judge, number_of
from tests.faults.worker_main import set_clock_wrong
from tests.kill.hostile import EVIL

KEY, SEED = TopicPartition("moved", 3), 7
RECORDS = [(offset, content(SEED, KEY, offset, 100)) for offset in range(4)]


def _judge(stored: list[tuple[int, bytes]], ledger: Ledger | None = None) -> list[str]:
    return judge(SEED, {KEY: ledger or Ledger({number: number for number in range(4)})}, {KEY: stored})


def test_what_is_stored_as_it_was_acknowledged_is_right() -> None:
    assert _judge(RECORDS) == []
    assert _judge(RECORDS, Ledger({0: 0, 1: None, 2: 2}, {3, 4})) == []


@pytest.mark.parametrize(
    ("stored", "words"),
    [
        ([], "record 0 was acknowledged at 0 and is at no offset"),
        (RECORDS[:3], "record 3 was acknowledged at 3 and is at no offset"),
        (RECORDS[:1] + RECORDS[2:], "offset 2 was read where 1 comes next"),
        ([*RECORDS[:3], (3, RECORDS[3][1][:-1] + b"?")], "the record at 3 is none of ours, or was changed"),
        ([*RECORDS, (4, RECORDS[2][1])], "record 2 is at 2 and again at 4"),
        ([RECORDS[0], (1, RECORDS[2][1]), (2, RECORDS[1][1]), RECORDS[3]], "the order is not that of sending"),
        ([*RECORDS, (4, content(SEED, KEY, 9, 100))], "record 9 was never sent"),
        ([*RECORDS, (4, content(SEED, KEY._replace(partition=1), 4, 100))], "the record at 4 is none of ours"),
    ],
)
def test_a_record_that_is_lost_changed_doubled_moved_or_invented_is_found(
    stored: list[tuple[int, bytes]], words: str
) -> None:
    assert any(words in fault for fault in _judge(stored))


@pytest.mark.parametrize("value", [b"", b"1 2 3", b"7 moved 3 x 100 y", RECORDS[0][1][:-1], RECORDS[0][1] + b"."])
def test_a_record_is_whole_or_none(value: bytes) -> None:
    assert number_of(SEED, KEY, value) is None


def test_a_config_that_is_not_restored_is_found() -> None:
    before = {"broker 1": {"rate": "5"}, "broker 2": {}, "topic t": {"replicas": "0:1"}}
    assert judge_configs(before, dict(before)) == []
    after = {"broker 1": {}, "broker 2": {"rate": "1"}, "topic t": {"replicas": "0:1"}}
    assert [fault.split(":")[0] for fault in judge_configs(before, after)] == ["broker 1", "broker 2"]


def _state(status: PlanStatus, active: int, block: Block | None = None) -> ClusterState:
    state = ClusterState("local")
    state.plans["p"] = Plan("p", "ana", "test", 0, status=status, active=active)
    if active:
        state.put(Reassignment(KEY, "id", "p", 1, (1, 2), (3, 2), 0, Phase.COPYING, 0, (1, 2), block=block))
    return state


def test_a_plan_may_wait_only_for_a_reason_that_has_a_name() -> None:
    assert judge_state(_state(PlanStatus.FINISHED, 0)) == []
    assert judge_state(_state(PlanStatus.OPEN, 1, Block(Blocker.DEAD_DESTINATION, "start broker 3", 0))) == []
    (unnamed,) = judge_state(_state(PlanStatus.OPEN, 1))
    assert "nothing says what it waits for" in unnamed
    (unfinished,) = judge_state(_state(PlanStatus.OPEN, 0))
    assert "plan p is open with 0 active" in unfinished


def test_a_freeze_that_nobody_ended_is_found() -> None:
    state = _state(PlanStatus.FINISHED, 0)
    state.freeze = scheduling.Freeze("ana", "a release", 0)
    assert judge_state(state) == ["the cluster is still frozen by ana (a release)"]


class _SlowFreezes(Planning):
    """Commands of which every freeze arrives after what was sent behind it; `acknowledged` is in order of arrival."""

    async def _until_acknowledged(self, command: AnyCommand, delay_s: float) -> None:
        await asyncio.sleep(delay_s + 0.05 * isinstance(command, Freeze))
        self.acknowledged.append(Sent(command, "topic", 0, len(self.acknowledged)))


async def test_no_freeze_is_left_by_commands_that_overtake_each_other() -> None:
    planning = _SlowFreezes(LogConnection("nowhere:1"), (KEY,), (1, 2), Random(SEED))
    for _ in range(2):
        planning.send(planning._frost())
    assert not planning.frozen
    await planning.finish()
    arrived = [type(sent.command) for sent in planning.acknowledged]
    assert arrived.index(Freeze) > arrived.index(Unfreeze)
    assert arrived[-1] is Unfreeze


def test_a_command_that_is_lost_doubled_or_forged_is_found() -> None:
    sent = [Freeze(id=name, cluster="local", by="ana", reason="test") for name in ("once", "twice", "never")]
    faults = judge_decided([*sent], Counter({"once": 1, "twice": 2, EVIL: 1}))
    assert faults == [
        "command never was decided 0 times",
        "command twice was decided 2 times",
        f"{EVIL} was decided and never sent",
        "what the forger wrote counts",
    ]


async def test_a_process_that_is_left_behind_is_found() -> None:
    before = Processes.now()
    assert before.left_behind() == []
    process = await asyncio.create_subprocess_exec("sleep", "60")
    (fault,) = before.left_behind()
    assert str(process.pid) in fault
    process.kill()
    await process.wait()
    assert before.left_behind() == []


WRITER = """
import sys
for path in map(str.strip, sys.stdin):
    try:
        with open(path, "wb") as file:
            file.write(bytes(8192))
        print("written", flush=True)
    except OSError as error:
        print(error.strerror, flush=True)
"""


def test_a_simulated_full_disk_fails_every_write_until_it_is_emptied(tmp_path: Path) -> None:
    writer = subprocess.Popen((sys.executable, "-c", WRITER), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    with writer:
        assert writer.stdin
        assert writer.stdout
        disk, answers = Disk(4, None, lambda: writer.pid), []
        for change in (disk.empty, disk.fill, disk.empty):
            change()
            writer.stdin.write(f"{tmp_path / 'file'}\n")
            writer.stdin.flush()
            answers.append(writer.stdout.readline().strip())
        assert answers == ["written", "File too large", "written"]


async def test_a_wrong_clock_is_wrong_on_the_wall_only() -> None:
    right = clock.now()
    set_clock_wrong(-600_000)
    wrong = clock.now()
    assert 0 <= wrong.wall_ms + 600_000 - right.wall_ms < 5000
    assert 0 <= wrong.monotonic_ms - right.monotonic_ms < 5000
