"""A planner's model of a live cluster, read from the simulated one."""

from dataclasses import replace

from drover.cluster.port import AlterRequest
from drover.cluster_model import Knowledge, Look, MeasuredRates, hidden_topics, model_of, rates_between
from drover.events.partitions import TopicPartition
from drover.facts import PartitionFacts
from drover.inventory import Inventory, LogDirectory, Positions, RegisteredBroker
from drover.planner.model import Broker, LogDir
from drover.testing.model import ClusterModel
from drover.testing.model_directories import DISK_BYTES
from drover.testing.simulated import SimulatedDriver

ORDERS = TopicPartition("orders", 0)
NOTHING_MORE = Knowledge()


def cluster() -> ClusterModel:
    model = ClusterModel({1: "a", 2: "b", 3: "c", 4: None}, copy_bytes_per_second=10)
    model.create_topic("orders", {0: (1, 2), 1: (2, 3)}, partition_bytes=1000)
    return model


async def test_a_live_cluster_becomes_brokers_with_disks_and_partitions_with_sizes() -> None:
    made = model_of(await SimulatedDriver(cluster()).inventory(), NOTHING_MORE)
    assert made.broker_by_id[2] == Broker(2, "b", log_dirs=(LogDir("/simulated", DISK_BYTES, DISK_BYTES - 2000),))
    first = made.partition_by_name["orders", 0]
    assert (first.replicas, first.leader, first.isr, first.size_bytes) == ((1, 2), 1, (1, 2), 1000)
    assert (first.moving, first.internal, first.write_bytes_per_s) == (False, False, None)


async def test_the_dead_the_moving_and_what_the_log_knows_are_marked() -> None:
    simulated = cluster()
    driver = SimulatedDriver(simulated)
    simulated.stop_broker(3)
    await driver.alter([AlterRequest(ORDERS, (1, 4))])
    made = model_of(
        await driver.inventory(),
        Knowledge(
            excluded={1},
            held={2},
            own_topics={"orders"},
            moving={TopicPartition("orders", 1)},
            rates=MeasuredRates({ORDERS: 2.5}, {ORDERS: 4.0}),
        ),
    )
    assert [broker.id for broker in made.brokers if not broker.alive] == [3]
    assert made.broker_by_id[3].rack == "c"
    assert [broker.id for broker in made.brokers if broker.may_receive] == [4]
    assert [one.moving for one in made.partitions] == [True, True]
    assert [one.internal for one in made.partitions] == [True, True]
    assert [(one.write_bytes_per_s, one.read_bytes_per_s) for one in made.partitions] == [(2.5, 4.0), (None, None)]


async def test_brokers_that_should_not_lead_are_marked_with_their_topics() -> None:
    inventory = await SimulatedDriver(cluster()).inventory()
    made = model_of(inventory, Knowledge(demoted={"b": {1, 2}, "a": {1}}, demoted_everywhere={3}))
    demoted = [(broker.id, broker.demoted, broker.demoted_topics) for broker in made.brokers]
    assert demoted == [(1, False, ("a", "b")), (2, False, ("b",)), (3, True, ()), (4, False, ())]


def seen(at_ms: int, sizes: dict[TopicPartition, dict[int, int]], leader: int | None = 1) -> Inventory:
    facts = {key: PartitionFacts("id", leader, (1, 2), (1, 2)) for key in sizes}
    return Inventory("cluster", at_ms, {}, facts, sizes)


def look(at_ms: int, sizes: dict[TopicPartition, dict[int, int]], leader: int | None = 1) -> Look:
    return Look(seen(at_ms, sizes, leader), Positions(at_ms, {}, {}, {}))


def test_rates_follow_from_what_the_leaders_gained() -> None:
    gone, new = TopicPartition("gone", 0), TopicPartition("new", 0)
    shrunk = TopicPartition("shrunk", 0)
    before = look(1000, {ORDERS: {1: 100, 2: 0}, shrunk: {1: 50}, gone: {1: 1}})
    after = look(3000, {ORDERS: {1: 500, 2: 9999}, shrunk: {1: 10}, new: {1: 7}})
    assert rates_between(before, after).written == {ORDERS: 200.0, shrunk: 0.0}
    leaderless = look(3000, {ORDERS: {1: 500}}, leader=None)
    assert rates_between(before, leaderless).written == {}


def at(at_ms: int, size: int, begin: int, end: int, **committed: int) -> Look:
    """A look at one partition and the offsets that groups have committed in it."""
    groups = {group: {ORDERS: offset} for group, offset in committed.items()}
    return Look(seen(at_ms, {ORDERS: {1: size}}), Positions(at_ms, {ORDERS: begin}, {ORDERS: end}, groups))


def test_where_segments_were_deleted_the_new_offsets_say_what_was_written() -> None:
    # 30 offsets in two seconds, at ten bytes each.
    rates = rates_between(at(1000, 1000, 0, 100), at(3000, 500, 80, 130))
    assert rates.written == {ORDERS: 150.0}


def test_what_groups_have_committed_meanwhile_was_read() -> None:
    # A new offset has 20 bytes, the mean one 12.
    before, after = at(1000, 1000, 0, 100, a=10, b=100, gone=5), at(3000, 1600, 0, 130, a=40, b=130, new=7)
    assert rates_between(before, after).read == {ORDERS: (30 + 30) * 20 / 2}
    idle = rates_between(at(1000, 1000, 0, 100, a=10), at(3000, 1000, 0, 100, a=40))
    assert (idle.written, idle.read) == ({ORDERS: 0.0}, {ORDERS: 30 * 10 / 2})
    back = rates_between(at(1000, 1000, 0, 100, a=40), at(3000, 1000, 0, 100, a=10))
    assert back.read == {ORDERS: 0.0}


def test_nobody_knows_what_is_read_where_a_group_cannot_be() -> None:
    before, after = at(1000, 1000, 0, 100, a=10), at(3000, 1600, 0, 130, a=40)
    denied = replace(after, positions=replace(after.positions, unread=("group b cannot be read",)))
    rates = rates_between(before, denied)
    assert (rates.written, rates.read, rates.unread) == ({ORDERS: 300.0}, {}, ("group b cannot be read",))


def test_a_copy_is_as_large_as_the_leaders_or_as_the_largest_that_is_known() -> None:
    def size(sizes: dict[int, int], leader: int | None) -> int | None:
        made = model_of(seen(0, {ORDERS: sizes}, leader), NOTHING_MORE)
        return made.partition_by_name[ORDERS].size_bytes

    assert size({1: 5, 2: 9}, 1) == 5
    assert size({2: 9, 3: 4}, 1) == 9
    assert size({1: 5, 2: 9}, None) == 9
    assert size({}, 1) is None


def test_a_broker_with_a_failed_directory_is_failing_and_the_directory_holds_nothing() -> None:
    directories = (LogDirectory("/a", 100, 60), LogDirectory("/b", None, None, code=56))
    inventory = Inventory("cluster", 0, {1: RegisteredBroker(1, "a", is_alive=True, directories=directories)}, {}, {})
    (broker,) = model_of(inventory, NOTHING_MORE).brokers
    assert broker.failing
    assert broker.log_dirs == (LogDir("/a", 100, 60), LogDir("/b", None, None, code=56))
    assert (broker.total_bytes, broker.free_bytes) == (100, 60)
    silent = Inventory("cluster", 0, {1: RegisteredBroker(1, "a", is_alive=True)}, {}, {})
    assert model_of(silent, NOTHING_MORE).brokers == (Broker(1, "a"),)


async def test_a_broker_without_the_listener_lives_in_the_model_and_what_it_leads_is_led() -> None:
    model = ClusterModel(dict.fromkeys((1, 2, 3)))
    model.create_topic("t", {0: (1, 2), 1: (2, 1)})
    model.hide_listener(1)
    made = model_of(await SimulatedDriver(model).inventory(), NOTHING_MORE)
    hidden = made.broker_by_id[1]
    assert (hidden.alive, hidden.unreachable, hidden.may_receive) == (True, True, False)
    assert [(one.leader, one.leader_unreachable) for one in made.partitions] == [(None, True), (2, False)]


def test_a_cordoned_directory_is_cordoned_in_the_model() -> None:
    directories = (LogDirectory("/a", 100, 60, is_cordoned=True), LogDirectory("/b", 100, 50))
    inventory = Inventory("cluster", 0, {1: RegisteredBroker(1, "a", is_alive=True, directories=directories)}, {}, {})
    (broker,) = model_of(inventory, NOTHING_MORE).brokers
    assert broker.log_dirs == (LogDir("/a", 100, 60, cordoned=True), LogDir("/b", 100, 50))
    assert broker.may_receive
    assert not broker.failing


def test_topics_that_only_disks_show_are_hidden() -> None:
    inventory = Inventory(
        "c", 0, {}, seen(0, {ORDERS: {1: 5}}).partitions, {ORDERS: {1: 5}, TopicPartition("x", 3): {}}
    )
    assert hidden_topics(inventory) == ("x",)


async def test_what_moves_have_still_to_copy_takes_room_although_it_is_not_there_yet() -> None:
    simulated = cluster()
    driver = SimulatedDriver(simulated)
    await driver.alter([AlterRequest(ORDERS, (1, 4))])
    simulated.advance(20_000)
    # The copy of orders:0 has begun on 4; that of orders:1 waits in the log, for 1 and 4.
    waits = {TopicPartition("orders", 1): (1, 4)}
    seen = await driver.inventory()
    copied = seen.replica_bytes[ORDERS][4]
    assert 0 < copied < 1000
    made = model_of(seen, Knowledge(moving=waits.keys(), destinations=waits))
    assert {broker.id: broker.arriving_bytes for broker in made.brokers} == {1: 1000, 2: 0, 3: 0, 4: 2000 - copied}
