"""On clusters of some size, the planner moves what must move, and leaves them as even as that allows."""

import json
from pathlib import Path

import pytest

from bench.planner import main
from bench.planner_clusters import Description, Judgement, Sizes, describe, judge, model_of
from drover.planner.goals import DEFAULT_LIMITS, Add, Balance, Drain, Goal, Limits
from drover.planner.propose import propose

TOLERANCE = 1e-6


def planned(description: Description, goal: Goal, limits: Limits = DEFAULT_LIMITS) -> Judgement:
    proposal = propose(model_of(description), goal, limits)
    partitions = [{"topic": topic, "partition": number, "replicas": after} for topic, number, after in proposal.targets]
    leaving = goal.brokers if isinstance(goal, Drain) else ()
    found = judge(description, {"partitions": partitions}, leaving)
    assert found.copies == proposal.copies
    assert found.rack_violations == proposal.rack_violations_after == 0
    assert found.count == pytest.approx(proposal.after.count.highest)
    assert found.disk == pytest.approx(proposal.after.disk.highest, abs=1e-4)
    assert found.leaders == pytest.approx(proposal.after.leaders.highest)
    return found


@pytest.mark.parametrize("seed", [1, 11, 12])
def test_a_drain_copies_only_what_was_there_and_leaves_the_rack_even(seed: int) -> None:
    description = describe(Sizes(30, 3000, 3, 3, seed))
    there = [each for each in description["partitions"] if 1 in each["replicas"]]
    found = planned(description, Drain((1,)))
    assert (found.copies, found.left) == (len(there), 0)
    # Every partition has a replica in each of the three racks, so nine brokers share what ten had.
    rack = [each["id"] for each in description["brokers"] if each["rack"] == "r0" and each["id"] != 1]
    before = judge(description, {"partitions": []}, (1,))
    share = 3000 / len(rack) / (9000 / 29)
    assert found.count <= max(before.count, share * 1.01) + TOLERANCE
    assert found.leaders <= 1.15


@pytest.mark.parametrize("seed", [1, 11, 12])
def test_added_brokers_are_filled_and_no_byte_more(seed: int) -> None:
    description = describe(Sizes(30, 3000, 3, 3, seed, 3))
    found = planned(description, Add((31, 32, 33)))
    total = sum(each["sizeMB"] * 3 for each in description["partitions"]) / 1024
    share = 3 / 33 * (1 - DEFAULT_LIMITS.below)
    assert total * share <= found.copied_gib + 0.1
    # Nearly the least: the bytes that three brokers need in order not to be underloaded, or the replicas.
    assert found.copied_gib <= total * share * 1.02 or found.copies <= 9000 * share + 3
    assert found.count <= 1.05
    assert found.leaders <= 1.05


@pytest.mark.parametrize("seed", [1, 11, 12])
def test_a_balanced_cluster_is_inside_the_tolerances(seed: int) -> None:
    description = describe(Sizes(30, 3000, 3, 3, seed))
    found = planned(description, Balance())
    assert max(found.count, found.disk) <= 1 + DEFAULT_LIMITS.above + TOLERANCE
    assert found.leaders <= 1 + DEFAULT_LIMITS.leaders_above
    # What is above the tolerances has to go, whoever plans.
    copies, gib = excess(description)
    assert copies <= found.copies
    assert gib <= found.copied_gib <= gib * 1.1


def excess(description: Description) -> tuple[int, float]:
    """Sum up the replicas and the GiB that brokers hold above the tolerance."""
    count: dict[int, int] = {}
    disk: dict[int, float] = {}
    for each in description["partitions"]:
        for broker in each["replicas"]:
            count[broker] = count.get(broker, 0) + 1
            disk[broker] = disk.get(broker, 0.0) + each["sizeMB"] / 1024
    most = (1 + DEFAULT_LIMITS.above) / len(count)
    most_count, most_disk = int(sum(count.values()) * most), sum(disk.values()) * most
    return (
        sum(max(0, number - most_count) for number in count.values()),
        sum(max(0.0, size - most_disk) for size in disk.values()),
    )


def test_less_work_makes_a_valid_plan_that_says_so() -> None:
    description = describe(Sizes(30, 3000, 3, 3, 1))
    model = model_of(description)
    whole = propose(model, Drain((1,)))
    assert not whole.interrupted
    hasty = propose(model, Drain((1,)), Limits(work=283 * 30))
    assert hasty.interrupted
    assert (hasty.copies, hasty.unmet) == (283, ())
    assert hasty.rack_violations_after == 0
    cut = propose(model, Drain((1,)), Limits(work=1000))
    assert cut.interrupted
    assert 0 < cut.copies < 283
    assert len(cut.unmet) == 283 - cut.copies


def test_a_caller_with_a_clock_can_stop_it() -> None:
    model = model_of(describe(Sizes(30, 3000, 3, 3, 1)))
    asked = 0

    def stop() -> bool:
        nonlocal asked
        asked += 1
        return asked > 3

    proposal = propose(model, Balance(), stop=stop)
    assert proposal.interrupted
    assert asked == 4, "nobody asks again after a yes"


def test_the_bench_plans_a_described_cluster(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "cluster.json"
    assert main([str(path), "describe", "12", "60", "3", "3", "5", "1"]) == 0
    description = json.loads(path.read_text())
    assert [each["state"] for each in description["brokers"]] == ["ALIVE"] * 12 + ["NEW"]
    assert main([str(path), "drain", "2"]) == 0
    output = capsys.readouterr()
    assert set(json.loads(output.err.splitlines()[-1])) == {"read_s", "planned_s", "process_s", "peak_mib"}
    assert judge(description, json.loads(output.out), (2,)).left == 0
    assert main([str(path), "drain", "99"]) == 2
    assert "there is no broker 99" in capsys.readouterr().err
