"""Commands to outcomes: identity, place and size come before the domain, and every command is answered."""

from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from drover.events.codec import command_digest, decode_command, encode_command, encode_record
from drover.events.commands import Alter, Blacklist, Command, Freeze, PartitionTarget, Unfreeze
from drover.events.partitions import TopicPartition
from drover.events.records import SCHEMA_VERSION, Acquire
from drover.events.refusals import RefusalCode
from drover.events.topics import TopicNames, shard_of
from drover.fold.decided_commands import IDENTITY_RETENTION_MS
from drover.fold.log import ShardFold
from drover.reconcile.messages import Timestamp
from drover.shard import pipeline
from drover.shard.core import ShardCore
from drover.shard.messages import Arrival, ProposedBatch
from drover.state.scheduling import Limits
from tests.shard.world import TOPIC_IDS, World, alter, rollback

ORDERS = TopicPartition("orders", 0)
SHARDS = 6
HERE = shard_of("local", SHARDS)
ELSEWHERE = next(name for name in ("a", "b", "c", "d") if shard_of(name, SHARDS) != HERE)
NEIGHBOUR = next(name for name in (f"n{number}" for number in range(99)) if shard_of(name, SHARDS) == HERE)
NOTHING_MISSING: Mapping[str, str] = {}


class Desk:
    """The owner of the shard in which the cluster `local` lives, one of six."""

    def __init__(self) -> None:
        self.fold = ShardFold(HERE, SHARDS)
        self.core = ShardCore(self.fold, topic_ids=TOPIC_IDS, clusters={"local": Limits()}, topics=TopicNames())
        self.offsets = [0, 0, 0, 0]
        self.position = 0
        self.wall_ms = 1_700_000_000_000
        acquire = Acquire(schema=SCHEMA_VERSION, epoch=1, token=b"t", owner="w", group="g", generation=1)
        self.append(encode_record(acquire))
        self.core.own(b"t", self.now)

    @property
    def now(self) -> Timestamp:
        return Timestamp(self.wall_ms, self.wall_ms - 1_600_000_000_000)

    def append(self, payload: bytes) -> None:
        self.fold.fold(self.position, payload)
        self.position += 1

    def arrival(self, topic: int, payload: bytes, *, forwarded: bool = False) -> Arrival:
        offset = self.offsets[topic]
        self.offsets[topic] += 1
        return Arrival(topic, offset, self.wall_ms, payload, decode_command(payload), forwarded)

    def decide(self, *arrivals: Arrival) -> ProposedBatch:
        proposed = self.core.propose(self.now, arrivals, NOTHING_MISSING)
        assert proposed is not None
        self.append(proposed.payload)
        self.core.commit(proposed)
        return proposed


ANA: dict[str, Any] = {"cluster": "local", "by": "ana", "reason": "r"}


def freeze(number: object = 1, cluster: str = "local", reason: str = "r", by: str = "ana") -> Freeze:
    return Freeze(id=f"f{number}", cluster=cluster, by=by, reason=reason)


def encoded(command: Command) -> bytes:
    return encode_command(command)


def only(proposed: ProposedBatch) -> RefusalCode:
    (outcome,) = proposed.record.outcomes
    assert outcome.verdict == "refused"
    (refusal,) = outcome.refusals
    return refusal.code


# -- malformed


@pytest.mark.parametrize("payload", [b"", b"\xc1", b"{", b"[]", b"{}", b"7", b'{"type":"freeze","id":"a"}'])
def test_what_names_neither_id_nor_cluster_is_a_dead_letter_alone(payload: bytes) -> None:
    desk = Desk()
    proposed = desk.decide(desk.arrival(1, payload))
    assert len(proposed.dead_letters) == 1
    assert proposed.record.outcomes == ()
    assert proposed.record.cursors[1].next_offset == 1


def test_a_malformed_command_that_names_id_and_cluster_is_refused_as_well() -> None:
    desk = Desk()
    payload = b'{"type":"freeze","id":"a","cluster":"local","by":"ana","reason":"r","nonsense":1}'
    proposed = desk.decide(desk.arrival(1, payload))
    assert len(proposed.dead_letters) == 1
    assert only(proposed) is RefusalCode.MALFORMED
    (outcome,) = proposed.record.outcomes
    assert (outcome.id, outcome.type, outcome.by, outcome.offset) == ("a", "freeze", "ana", 0)
    assert outcome.digest == b""


def test_a_mended_command_may_use_the_id_of_its_malformed_self() -> None:
    desk = Desk()
    desk.decide(desk.arrival(1, b'{"type":"freeze","id":"f1","cluster":"local","nonsense":1}'))
    (outcome,) = desk.decide(desk.arrival(1, encoded(freeze()))).record.outcomes
    assert outcome.verdict == "accepted"


@pytest.mark.parametrize(
    "payload",
    [
        b'{"type":"freeze","id":"a b","cluster":"local"}',
        b'{"type":"freeze","id":"a","cluster":"Local!"}',
        b'{"type":"freeze","id":7,"cluster":"local"}',
    ],
)
def test_names_outside_the_contract_are_not_recorded(payload: bytes) -> None:
    desk = Desk()
    proposed = desk.decide(desk.arrival(1, payload))
    assert proposed.record.outcomes == ()
    assert len(proposed.dead_letters) == 1


def test_a_malformed_command_for_another_shard_is_not_recorded_here() -> None:
    desk = Desk()
    payload = f'{{"type":"freeze","id":"a","cluster":"{ELSEWHERE}","nonsense":1}}'.encode()
    proposed = desk.decide(desk.arrival(1, payload))
    assert proposed.record.outcomes == ()
    assert len(proposed.dead_letters) == 1


@pytest.mark.parametrize("topic", [0, 2, 3])
def test_a_command_on_the_wrong_topic_is_malformed(topic: int) -> None:
    desk = Desk()
    proposed = desk.decide(desk.arrival(topic, encoded(freeze())))
    assert only(proposed) is RefusalCode.MALFORMED
    assert "does not belong on this topic" in proposed.dead_letters[0][1]
    assert len(desk.fold.decided_commands) == 0


def test_a_bad_command_stops_none_behind_it() -> None:
    desk = Desk()
    arrivals = [desk.arrival(1, encoded(freeze(1))), desk.arrival(1, b"\xc1"), desk.arrival(1, encoded(freeze(2)))]
    proposed = desk.decide(*arrivals)
    assert [outcome.id for outcome in proposed.record.outcomes] == ["f1", "f2"]
    assert proposed.taken == tuple(arrivals)
    assert proposed.record.cursors[1].next_offset == 3


# -- place


def test_a_command_for_another_shard_is_sent_on_and_not_decided() -> None:
    desk = Desk()
    arrival = desk.arrival(1, encoded(freeze(1, ELSEWHERE)))
    proposed = desk.decide(arrival)
    assert proposed.forward == ((arrival, shard_of(ELSEWHERE, SHARDS)),)
    assert proposed.record.outcomes == ()
    assert proposed.record.cursors[1].next_offset == 1


def test_a_forwarded_command_in_the_wrong_place_is_a_dead_letter() -> None:
    desk = Desk()
    proposed = desk.decide(desk.arrival(1, encoded(freeze(1, ELSEWHERE)), forwarded=True))
    assert proposed.forward == ()
    assert "forwarded" in proposed.dead_letters[0][1]


def test_a_forwarded_command_in_its_place_is_decided() -> None:
    desk = Desk()
    (outcome,) = desk.decide(desk.arrival(1, encoded(freeze()), forwarded=True)).record.outcomes
    assert outcome.verdict == "accepted"


def test_a_cluster_that_is_not_configured_is_refused() -> None:
    desk = Desk()
    assert only(desk.decide(desk.arrival(1, encoded(freeze(1, NEIGHBOUR))))) is RefusalCode.UNKNOWN_CLUSTER
    assert NEIGHBOUR not in desk.fold.state.clusters


# -- identity, rule R5


def test_the_same_command_again_has_no_effect_and_names_the_first_outcome() -> None:
    desk = Desk()
    desk.decide(desk.arrival(1, encoded(freeze())))
    desk.decide(desk.arrival(1, encoded(Unfreeze(id="u", cluster="local", by="ana", reason="r"))))
    proposed = desk.decide(desk.arrival(1, encode_command(freeze(), as_json=True)))
    (outcome,) = proposed.record.outcomes
    assert (outcome.verdict, outcome.first_offset) == ("duplicate", 1)
    assert proposed.record.events == ()
    assert desk.fold.state.cluster("local").freeze is None


def test_the_same_command_twice_in_one_record_counts_once() -> None:
    desk = Desk()
    proposed = desk.decide(*(desk.arrival(1, encoded(freeze())) for _ in range(2)))
    assert [(o.verdict, o.first_offset) for o in proposed.record.outcomes] == [("accepted", None), ("duplicate", None)]


def test_an_id_that_was_used_for_something_else_is_refused_across_topics() -> None:
    desk = Desk()
    desk.decide(desk.arrival(1, encoded(freeze())))
    other = Blacklist(id="f1", cluster="local", by="ana", reason="r", brokers=())
    assert only(desk.decide(desk.arrival(2, encoded(other)))) is RefusalCode.ID_REUSED
    assert only(desk.decide(desk.arrival(1, encoded(freeze(reason="else"))))) is RefusalCode.ID_REUSED
    known = desk.fold.decided_commands.get(("local", "f1"))
    assert known is not None
    assert known.digest == command_digest(freeze())


@pytest.mark.parametrize(
    ("id_", "by", "said"),
    [("znode-1-2-3", "ana", "those of requests in ZooKeeper"), ("f1", "zookeeper", "write your own name as by")],
)
def test_the_ids_and_the_name_of_the_zookeeper_intake_are_its_own(id_: str, by: str, said: str) -> None:
    desk = Desk()
    foreign = Freeze(id=id_, cluster="local", by=by, reason="r")
    (outcome,) = desk.decide(desk.arrival(1, encoded(foreign))).record.outcomes
    assert (outcome.verdict, outcome.refusals[0].code) == ("refused", RefusalCode.MALFORMED)
    assert said in outcome.refusals[0].detail
    assert desk.fold.decided_commands.get(("local", id_)) is None
    own = Freeze(id="znode-1-2-3", cluster="local", by="zookeeper", reason="r")
    (outcome,) = desk.decide(desk.arrival(1, encoded(own))).record.outcomes
    assert outcome.verdict == "accepted"


def test_who_comes_second_with_an_id_is_told_whose_it_is() -> None:
    desk = Desk()
    mine, theirs = encoded(freeze(by="ana")), encoded(freeze(by="eve"))
    first, second = desk.decide(desk.arrival(1, mine), desk.arrival(1, theirs)).record.outcomes
    assert first.verdict == "accepted"
    (refusal,) = second.refusals
    assert (refusal.code, "of ana, decided in this record" in refusal.detail) == (RefusalCode.ID_REUSED, True)
    (later,) = desk.decide(desk.arrival(1, theirs)).record.outcomes
    assert "of ana, decided at offset" in later.refusals[0].detail


def test_a_refused_command_is_remembered_like_any_other() -> None:
    desk = Desk()
    payload = encoded(rollback(plan="nothing", id="c"))
    assert only(desk.decide(desk.arrival(1, payload))) is RefusalCode.UNKNOWN_PLAN
    (outcome,) = desk.decide(desk.arrival(1, payload)).record.outcomes
    assert outcome.verdict == "duplicate"


def test_after_seven_days_an_id_is_new_even_if_nothing_happened_in_between() -> None:
    desk = Desk()
    desk.decide(desk.arrival(1, encoded(freeze())))
    desk.wall_ms += IDENTITY_RETENTION_MS
    (outcome,) = desk.decide(desk.arrival(1, encoded(freeze()))).record.outcomes
    assert outcome.verdict == "accepted"
    (again,) = desk.decide(desk.arrival(1, encoded(freeze()))).record.outcomes
    assert again.verdict == "duplicate"


# -- size


def test_a_record_is_closed_at_a_mebibyte_and_the_rest_waits() -> None:
    desk = Desk()
    commands = [Blacklist(**ANA, id=f"b{number}", brokers=tuple(range(200 + number, 10_000))) for number in range(20)]
    arrivals = [desk.arrival(2, encoded(command)) for command in commands]
    first = desk.decide(*arrivals)
    # Each event names the brokers before and those from now on: some 59 kB.
    assert len(first.taken) == 19
    assert first.record.cursors[2].next_offset == 19
    assert len(desk.decide(*arrivals[19:]).taken) == 1


@pytest.mark.parametrize(
    "changed",
    [
        {"by": "b" * 257},
        {"by": "ana\x1b[2J"},
        {"by": " "},
        {"reason": "ü" * 513},
        {"reason": "two\nlines"},
        {"reason": "\u202edesrever"},
        {"reason": " \u200b"},
        {"by": "ro\u200bot"},
        {"by": "ro\u00adot"},
        {"by": "ro\u180eot"},
        {"by": "ro\u200dot"},
        {"by": "ro\ufe0fot"},
        {"by": "root\u2800"},
        {"by": "root "},
        {"by": " root"},
        {"by": "root\u00a0"},
        {"by": "the  root"},
        {"by": "the\u2003root"},
        {"by": "ro\u034fot"},
        {"by": "root\U000e0041"},
        {"reason": "incident\U000e0041 7"},
        {"reason": "incident\u3164 7"},
    ],
)
def test_a_text_or_a_list_out_of_bounds_is_malformed_and_recorded_as_such(changed: dict[str, object]) -> None:
    desk = Desk()
    payload = msgspec.msgpack.encode({**msgspec.to_builtins(freeze()), "type": "freeze", **changed})
    proposed = desk.decide(desk.arrival(1, payload))
    assert only(proposed) is RefusalCode.MALFORMED
    (outcome,) = proposed.record.outcomes
    assert len(outcome.by.encode()) <= 256
    assert outcome.by.isprintable()


def test_a_blank_that_is_no_space_is_blank_as_well() -> None:
    desk = Desk()
    proposed = desk.decide(desk.arrival(1, encoded(freeze(reason="\u3000\u200c"))))
    assert proposed.record.outcomes[0].refusals[0].detail == "reason is blank"


def test_whatever_a_command_is_called_becomes_a_known_type_or_none() -> None:
    desk = Desk()
    payload = msgspec.msgpack.encode({**msgspec.to_builtins(freeze()), "type": "x" * 1_000_000})
    proposed = desk.decide(desk.arrival(1, payload))
    (outcome,) = proposed.record.outcomes
    assert outcome.type == "unknown"
    assert len(outcome.refusals[0].detail.encode()) <= 500
    assert len(proposed.dead_letters[0][1].encode()) <= 500


def test_a_refusal_keeps_no_more_of_the_command_than_a_person_reads() -> None:
    desk = Desk()
    brokers = tuple(range(256))
    command = Alter(
        **ANA,
        id="a",
        partitions=(PartitionTarget(topic="orders", partition=0, replicas=brokers, original_replicas=brokers),),
        allow_drover_topics=True,
    )
    proposed = desk.decide(desk.arrival(0, encoded(command)))
    (refusal,) = proposed.record.outcomes[0].refusals
    assert len(refusal.detail.encode()) <= 500


def test_records_that_are_no_commands_are_taken_a_thousand_at_a_time() -> None:
    desk = Desk()
    arrivals = [desk.arrival(1, b"\xc1") for _ in range(1001)]
    assert len(desk.decide(*arrivals).taken) == 1000


def test_a_decision_that_is_too_large_and_cannot_be_divided_is_refused_before_anything_is_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pipeline, "MAX_DECISION_BYTES", 2000)
    desk = Desk()
    many = Blacklist(**ANA, id="b1", brokers=tuple(range(9000)))
    assert only(desk.decide(desk.arrival(2, encoded(many)))) is RefusalCode.TOO_LARGE
    assert desk.fold.state.clusters == {}
    few = Blacklist(**ANA, id="b2", brokers=(1,))
    assert desk.decide(desk.arrival(2, encoded(few))).record.outcomes[0].verdict == "accepted"


# -- facts


async def test_a_cancel_and_a_new_alter_of_the_same_partition_may_come_together() -> None:
    """What ended in this very record must be seen again before it is decided about, not be refused."""
    world = World(limits=Limits(max_partitions_in_flight=1), joins_by_itself=False)
    world.model.create_topic("orders", {0: [1, 2, 3], 1: [2, 3, 1]})
    other = TopicPartition("orders", 1)
    await world.send(alter({ORDERS: [4, 2, 1], other: [4, 3, 1]}))
    await world.run(300)
    world.put(rollback(other, id="away"))
    world.model.advance(1)
    world.put(alter({other: [3, 2, 1]}, id="anew"))
    await world.settle()
    verdicts = {outcome.id: outcome.verdict for outcome in world.outcomes()}
    assert (verdicts["away"], verdicts["anew"]) == ("accepted", "accepted")
    assert world.reassignment(other).target == (3, 2, 1)


async def test_a_cluster_out_of_reach_refuses_alters_and_takes_cancels() -> None:
    world = World()
    world.model.create_topic("orders", {0: [1, 2, 3]})
    await world.send(alter({ORDERS: [4, 2, 1]}))
    world.driver.unreachable = True
    world.model.create_topic("payments", {0: [1, 2, 3]})
    refused = await world.send(alter({TopicPartition("payments", 0): [4, 2, 1]}))
    assert [refusal.code for refusal in refused.refusals] == [RefusalCode.CLUSTER_UNAVAILABLE]
    assert (await world.send(rollback(ORDERS))).verdict == "accepted"
