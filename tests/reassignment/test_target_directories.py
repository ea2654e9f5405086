"""An alter to a broker that is cordoned or has a failed log directory is taken, with a remark."""

from collections.abc import Mapping

from drover.decide.alter import decide_alter
from drover.facts import KAFKA_STORAGE_ERROR
from drover.inventory import LogDirectory
from tests.reassignment.support import KEY, OTHER, alter, copying, facts, state_after
from tests.shard.world import World
from tests.shard.world import alter as alter_of_world

CORDONED = (LogDirectory("/d1", 10, 5, is_cordoned=True), LogDirectory("/d2", 10, 4, is_cordoned=True))
PARTLY = (CORDONED[0], LogDirectory("/d2", 10, 4))
FAILED = (LogDirectory("/d1", 10, 5), LogDirectory("/d2", None, None, code=KAFKA_STORAGE_ERROR))
SAID = (
    "broker 4 is cordoned, with all of its log directories (cordoned.log.dirs): Kafka 4.3 copies there all the same, "
    "and 4.4 refuses it; cancel it if that is not meant"
)


def remarks(
    target: tuple[int, ...], directories: Mapping[int, tuple[LogDirectory, ...]], **fields: bool
) -> tuple[str, ...]:
    decision = decide_alter(alter({KEY: target}, **fields), state_after(), facts(directories=directories))
    assert decision.accepted == (KEY,)
    return decision.remarks


def test_a_new_replica_on_a_cordoned_broker_is_remarked_on() -> None:
    assert remarks((4, 2, 3), {4: CORDONED}) == (SAID,)
    assert remarks((4, 2, 3), {4: CORDONED}, queue=True) == (SAID,)
    assert remarks((4, 2, 3), {4: (CORDONED[0], FAILED[1])})[1] == SAID


def test_a_replica_that_is_there_already_and_directories_that_are_open_are_not_remarked_on() -> None:
    assert remarks((3, 2, 1), {3: CORDONED}) == ()
    assert remarks((4, 2, 3), {4: PARTLY, 5: CORDONED}) == ()
    assert remarks((4, 2, 3), {}) == ()


def test_a_new_replica_on_a_broker_with_a_failed_directory_is_remarked_on_with_the_path() -> None:
    (remark,) = remarks((4, 2, 3), {4: FAILED})
    assert remark == (
        "log directory /d2 of broker 4 has failed (Kafka error 56): a copy that Kafka puts there waits until it is "
        "repaired and the broker restarted"
    )


def test_what_is_refused_or_on_its_way_there_from_its_original_list_is_told_apart() -> None:
    decision = decide_alter(alter({KEY: (4, 2, 1)}), copying(), facts(directories={4: CORDONED}))
    assert (decision.unchanged, decision.remarks) == ((KEY,), ())
    refused = decide_alter(alter({OTHER: (4, 4)}), state_after(), facts(directories={4: CORDONED}))
    assert (refused.accepted, refused.remarks) == ((), ())


def test_many_brokers_are_counted() -> None:
    lists = {KEY: tuple(range(10, 25))}
    live = frozenset(range(30))
    decision = decide_alter(
        alter(lists), state_after(), facts(directories=dict.fromkeys(range(10, 25), CORDONED), live_brokers=live)
    )
    assert len(decision.remarks) == 11
    assert decision.remarks[-1] == "5 more like these: `drover describe` names them"


async def test_an_owner_remarks_on_what_the_brokers_last_described() -> None:
    made = World()
    made.model.create_topic("orders", {0: [1, 2, 3]})
    made.model.directories.cordon(4)
    await made.measure()
    assert (await made.send(alter_of_world({KEY: [4, 2, 3]}))).remarks == (SAID,)
    await made.finish()
    assert made.replicas(KEY) == (4, 2, 3)
    made.model.directories.cordon(4, cordoned=False)
    await made.measure()
    await made.send(alter_of_world({KEY: [1, 2, 3]}))
    await made.finish()
    assert (await made.send(alter_of_world({KEY: [4, 2, 3]}))).remarks == ()
