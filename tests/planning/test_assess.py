"""Judging plans from other tools: the rules that they break are named."""

from drover.planner.assess import assess
from drover.planner.goals import Drain, Limits
from drover.planner.model import Broker, ClusterModel, LogDir, Partition
from drover.planner.proposal import UnmetCode
from drover.planner.propose import propose

GIB = 1 << 30


def cluster(disks: int) -> ClusterModel:
    """Make a cluster of two brokers, the second with so many disks of 100 GiB, about half of them free."""
    directories = tuple(LogDir(f"/data{number}", 100 * GIB, (50 - number) * GIB) for number in range(disks))
    brokers = [Broker(1), Broker(2, log_dirs=directories)]
    return ClusterModel.of(brokers, [Partition("orders", 0, (1,), 1, (1,), 60 * GIB)])


def test_a_replica_that_fits_on_no_single_disk_is_named_as_it_would_not_be_proposed() -> None:
    model = cluster(4)
    assert propose(model, Drain((1,))).empty
    (problem,) = assess(model, {("orders", 0): (2,)}).unmet
    assert (problem.code, problem.broker, problem.partition) == (UnmetCode.NO_ROOM, 2, 0)
    assert problem.text == "orders:0: no disk of broker 2 has room for 64,424,509,440 bytes below the disk limit"


def test_one_disk_is_judged_by_the_sum_of_what_arrives_alone() -> None:
    (problem,) = assess(cluster(1), {("orders", 0): (2,)}).unmet
    assert (problem.code, problem.partition) == (UnmetCode.NO_ROOM, None)


def test_a_replica_that_fits_is_no_problem() -> None:
    directories = (LogDir("/data0", 100 * GIB, 10 * GIB), LogDir("/data1", 200 * GIB, 120 * GIB))
    partitions = [Partition("orders", 0, (1,), 1, (1,), 60 * GIB)]
    assert assess(
        ClusterModel.of([Broker(1), Broker(2, log_dirs=directories)], partitions), {("orders", 0): (2,)}
    ).complete
    whole = Limits(disk_limit=1.0)
    assert [one.broker for one in assess(cluster(2), {("orders", 0): (2,)}, whole).unmet] == [2], "50 GiB are free"
