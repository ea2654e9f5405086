"""Log directories: one volume counts once, a cordoned directory has no room, and the remarks that name both."""

from drover.planner.assess import assess
from drover.planner.disks import DiskCode, disk_remarks
from drover.planner.figures import largest_room_of, room_of
from drover.planner.goals import Drain
from drover.planner.model import Broker, ClusterModel, LogDir, Partition, Volume, volumes_of
from drover.planner.proposal import UnmetCode
from drover.planner.propose import propose

GB = 1_000_000_000
SHARED = (LogDir("/d1", 1000 * GB, 300 * GB), LogDir("/d2", 1000 * GB, 300 * GB))
APART = (LogDir("/d1", 1000 * GB, 300 * GB), LogDir("/d2", 1000 * GB, 290 * GB))
OPEN_AND_CORDONED = (LogDir("/d1", 1000 * GB, 300 * GB), LogDir("/d2", 1000 * GB, 700 * GB, cordoned=True))
CORDONED = (LogDir("/d1", 1000 * GB, 300 * GB, cordoned=True), LogDir("/d2", 1000 * GB, 400 * GB, cordoned=True))
FAILED = (LogDir("/d1", 1000 * GB, 300 * GB), LogDir("/d2", code=56))


def cluster(directories: tuple[LogDir, ...], *, failing: bool = False) -> ClusterModel:
    """Make three brokers; 1 holds six partitions of 50 GB, and only 3, with these directories, has room for any."""
    full = (LogDir("/data", 1000 * GB, 0),)
    partitions = [Partition("t", number, (1,), 1, (1,), 50 * GB) for number in range(6)]
    brokers = (Broker(1, log_dirs=full), Broker(2, log_dirs=full), Broker(3, log_dirs=directories, failing=failing))
    return ClusterModel.of(brokers, partitions)


def test_directories_with_the_same_size_and_the_same_free_bytes_are_one_volume() -> None:
    assert volumes_of(SHARED) == (Volume(("/d1", "/d2"), 1000 * GB, 300 * GB),)
    assert len(volumes_of(APART)) == 2
    assert len(volumes_of((LogDir("/d1", 1000, 300), LogDir("/d2", 2000, 300)))) == 2
    assert len(volumes_of((LogDir("/d1"), LogDir("/d2")))) == 2


def test_what_is_written_between_the_readings_of_two_directories_does_not_make_them_two_volumes() -> None:
    written = (LogDir("/d1", 1000 * GB, 300 * GB + 50_000_000), LogDir("/d2", 1000 * GB, 300 * GB))
    assert volumes_of(written) == (Volume(("/d2", "/d1"), 1000 * GB, 300 * GB),)


def test_the_room_of_a_shared_volume_counts_once() -> None:
    broker = Broker(3, log_dirs=SHARED)
    assert (room_of(broker, 0.85), largest_room_of(broker, 0.85)) == (150 * GB, 150 * GB)
    assert (broker.total_bytes, broker.free_bytes) == (1000 * GB, 300 * GB)
    assert room_of(Broker(3, log_dirs=APART), 0.85) == 290 * GB


def test_a_drain_plans_no_more_onto_a_shared_volume_than_fits_below_the_limit() -> None:
    proposal = propose(cluster(SHARED), Drain((1,)))
    assert sum(move.copied_bytes for move in proposal.moves) == 150 * GB
    assert {one.code for one in proposal.unmet} == {UnmetCode.NO_ROOM}


def test_only_the_room_of_directories_that_are_not_cordoned_counts() -> None:
    broker = Broker(3, log_dirs=OPEN_AND_CORDONED)
    assert broker.may_receive
    assert (room_of(broker, 0.85), largest_room_of(broker, 0.85)) == (150 * GB, 150 * GB)
    assert sum(move.copied_bytes for move in propose(cluster(OPEN_AND_CORDONED), Drain((1,))).moves) == 150 * GB


def test_a_cordoned_directory_beside_an_open_one_takes_no_room_from_their_volume() -> None:
    broker = Broker(3, log_dirs=(SHARED[0], LogDir("/d2", 1000 * GB, 300 * GB, cordoned=True)))
    assert room_of(broker, 0.85) == 150 * GB


def test_a_broker_whose_directories_are_all_cordoned_receives_nothing() -> None:
    assert not Broker(3, log_dirs=CORDONED).may_receive
    proposal = propose(cluster(CORDONED), Drain((1,)))
    assert proposal.moves == ()
    assert proposal.unmet
    assert not Broker(3, log_dirs=(CORDONED[0], FAILED[1])).may_receive


def test_a_plan_of_others_that_copies_to_a_cordoned_broker_is_told_so() -> None:
    (unmet,) = assess(cluster(CORDONED), {("t", 0): (3,)}).unmet
    assert (unmet.code, unmet.broker) == (UnmetCode.EXCLUDED, 3)
    assert unmet.text == "t:0: broker 3 is cordoned: cordoned.log.dirs names all of its log directories"


def test_remarks_name_what_keeps_brokers_from_receiving_and_what_counts_once() -> None:
    def told(directories: tuple[LogDir, ...]) -> list[tuple[DiskCode, int, tuple[str, ...]]]:
        return [(one.code, one.broker, one.paths) for one in disk_remarks(cluster(directories))]

    assert told(CORDONED) == [(DiskCode.CORDONED, 3, ("/d1", "/d2"))]
    assert told(OPEN_AND_CORDONED) == [(DiskCode.PARTLY_CORDONED, 3, ("/d2",))]
    assert told(FAILED) == [(DiskCode.FAILED, 3, ("/d2",))]
    assert told(SHARED) == [(DiskCode.SHARED_VOLUME, 3, ("/d1", "/d2"))]
    assert told(APART) == []


def test_the_room_of_brokers_that_receive_nothing_is_not_remarked_on() -> None:
    assert disk_remarks(cluster(SHARED), receiving=(2,)) == ()
    assert [one.code for one in disk_remarks(cluster(CORDONED), receiving=(2,))] == [DiskCode.CORDONED]
