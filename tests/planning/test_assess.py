"""Judging plans from other tools: the rules that they break are named."""

from drover.planner.assess import assess
from drover.planner.goals import Drain, Limits
from drover.planner.loads import Load
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


def loaded(replicas: int | None = None) -> ClusterModel:
    """Make a cluster of three brokers that can bear 100 each, with four partitions to which 30 are written."""
    able = {"network_in_bytes_per_s": 100.0, "network_out_bytes_per_s": 100.0, "cores": 1.0, "max_replicas": replicas}
    brokers = [Broker(number, **able) for number in (1, 2, 3)]  # type: ignore[arg-type]
    lists = ((1,), (1,), (1,), (2,))
    partitions = [
        Partition("t", number, each, each[0], each, GIB, 30.0, read_bytes_per_s=0.0, cpu_cores=0.3)
        for number, each in enumerate(lists)
    ]
    return ClusterModel.of(brokers, partitions)


def test_every_capacity_is_judged_in_the_end_and_the_network_while_copies_arrive() -> None:
    moved = {("t", 0): (2,), ("t", 1): (2,)}
    problems = assess(loaded(), moved).unmet
    assert [(each.code, each.broker) for each in problems] == [
        (UnmetCode.OVERLOADED, 2),
        (UnmetCode.OVERLOADED, 2),
        (UnmetCode.NO_ROOM, 2),
    ]
    texts = [each.text for each in problems]
    assert texts[0] == "broker 2 would bear 90% of what it can bear of network-in, and the limit is 80%"
    assert (
        texts[2] == "broker 2 would bear 90% of what its network can receive while copies arrive, and the limit is 80%"
    )
    assert assess(loaded(), moved, Limits(limits={Load.NETWORK_IN: 0.95, Load.PROCESSOR: 0.95})).complete


def test_a_broker_that_bore_as_much_before_is_not_the_plans_fault() -> None:
    # Broker 1 bears 90 of 100, and still does after another partition has moved.
    assert assess(loaded(), {("t", 3): (3,)}).complete


def test_a_network_is_full_while_copies_arrive_although_as_much_leaves() -> None:
    problems = assess(loaded(), {("t", 0): (2,), ("t", 1): (2,), ("t", 3): (3,)}).unmet
    assert [(each.code, each.broker) for each in problems] == [(UnmetCode.NO_ROOM, 2)]


def test_more_replicas_than_a_broker_may_have_are_named_also_while_copies_arrive() -> None:
    assert assess(loaded(replicas=3), {("t", 3): (3,)}).complete
    problem = assess(loaded(replicas=3), {("t", 0): (2,), ("t", 3): (1,)}).unmet[0]
    assert problem.text == "broker 1 would have 4 replicas while copies arrive, and may have 3"
    assert problem.code is UnmetCode.NO_ROOM
