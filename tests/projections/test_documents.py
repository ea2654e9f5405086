"""One document kind after the other: what stands in the tree for what the log says."""

import json
from typing import Any

import pytest

from drover.events.brokers import BlacklistSet, BrokerFailureRecorded, BrokerReturnRecorded
from drover.events.clusters import ClusterFrozen, ClusterUnfrozen
from drover.events.healing import (
    BrokerOutageEnded,
    BrokerOutageNoted,
    HealAssignment,
    HealChunkBegun,
    HealChunkPlanned,
    HealEnd,
    HealEnded,
    HealPlanned,
    OutageEnd,
)
from drover.events.leadership import LeaderBalanceBegun, LeaderBalanceEnded, ListedBroker
from drover.events.plans import PlanFinished
from drover.events.queue_entries import QueueEntryAdded, QueueEntryRemoved, QueueExit
from drover.events.reassignments import (
    Blocker,
    Call,
    CallIntended,
    ReassignmentBlocked,
    ReassignmentRolledBack,
    RollbackRequested,
    StepConfirmed,
)
from drover.events.records import AnyEvent
from drover.events.unmanaged import UnmanagedMoveEnded, UnmanagedMoveSeen
from drover.projections import documents
from drover.projections.documents import CHUNK_LIMIT_BYTES, PLAN_LIMIT_BYTES, SMALL_LIMIT_BYTES, TOPIC_LIMIT_BYTES
from drover.projections.reassignment_document import is_another
from drover.projections.store import MOST_BYTES
from drover.projections.view import Scope
from tests.projections.logs import AT_MS, accepted, completed, opened, queued, sent, viewed


def tree(*events: AnyEvent) -> dict[str, bytes]:
    """Return what stands in the tree after these events."""
    view = viewed(*events)
    found = documents.documents(view, view.everything())
    return {path: data for path, data in found if data is not None}


def read(data: bytes) -> Any:
    """Read a document; it must be canonical JSON."""
    value = json.loads(data)
    assert json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode() == data
    return value


def test_before_the_first_event_there_is_no_document() -> None:
    assert tree() == {}


def test_the_plan_has_every_partition_under_way_with_its_originals() -> None:
    found = tree(opened(), queued(0), queued(1, original=(1, 3, 2)))
    assert read(found["/admin/reassign_partitions"]) == {
        "version": 1,
        "partitions": [
            {"topic": "orders", "partition": 0, "replicas": [4, 2, 3], "original_replicas": [1, 2, 3]},
            {"topic": "orders", "partition": 1, "replicas": [4, 2, 3], "original_replicas": [1, 3, 2]},
        ],
    }


def test_an_entry_leaves_the_plan_with_its_end_and_the_last_one_takes_the_node_along() -> None:
    begun = (opened(), queued(0), queued(1), sent(0), accepted(0), sent(1), accepted(1), completed(0))
    (left,) = read(tree(*begun)["/admin/reassign_partitions"])["partitions"]
    assert left["partition"] == 1
    assert "/admin/reassign_partitions" not in tree(*begun, completed(1))


def test_a_plan_that_would_be_too_large_is_refused_by_name_and_comes_back_when_it_fits() -> None:
    events: list[AnyEvent] = [opened(), *(queued(number, topic="t" * 200) for number in range(1200))]
    refused = read(tree(*events)["/admin/reassign_partitions"])
    assert refused == {
        "version": 1,
        "refused": "too-large",
        "limit_bytes": PLAN_LIMIT_BYTES,
        "see": "/admin/reassignments",
    }
    ended: list[AnyEvent] = []
    for number in range(300):
        ended += [sent(number, "t" * 200), completed(number, "t" * 200)]
    data = tree(*events, *ended)["/admin/reassign_partitions"]
    assert len(read(data)["partitions"]) == 900
    assert PLAN_LIMIT_BYTES * 0.8 < len(data) <= PLAN_LIMIT_BYTES


def test_the_documents_of_one_event_always_fit_one_transaction() -> None:
    small = 5 * SMALL_LIMIT_BYTES
    assert PLAN_LIMIT_BYTES + TOPIC_LIMIT_BYTES + CHUNK_LIMIT_BYTES + small + 14 * 400 < MOST_BYTES


def test_the_queue_has_what_waits_in_its_order_without_originals() -> None:
    def added(topic: str) -> QueueEntryAdded:
        return QueueEntryAdded(cluster="prod", topic=topic, partition=3, id="move-2", plan="friday", target=(5, 6))

    def removed(topic: str) -> QueueEntryRemoved:
        return QueueEntryRemoved(cluster="prod", topic=topic, partition=3, why=QueueExit.WITHDRAWN)

    found = tree(opened(), added("z"), added("a"))
    assert read(found["/admin/reassign_partitions_queue"]) == {
        "version": 1,
        "partitions": [
            {"topic": "z", "partition": 3, "replicas": [5, 6]},
            {"topic": "a", "partition": 3, "replicas": [5, 6]},
        ],
    }
    assert read(found["/drover/plans/friday"])["waiting"] == 2
    assert "/admin/reassign_partitions_queue" not in tree(opened(), added("z"), removed("z"))


def test_the_cancel_node_stands_while_anything_is_on_its_way_back() -> None:
    asked = RollbackRequested(cluster="prod", topic="orders", partition=0, by="bob", reason="alarm")
    back = ReassignmentRolledBack(cluster="prod", topic="orders", partition=0, replicas=(1, 2, 3))
    begun = (opened(), queued(0), queued(1))
    assert "/admin/cancel_reassignment_in_progress" not in tree(*begun)
    assert read(tree(*begun, asked)["/admin/cancel_reassignment_in_progress"]) == {"version": 1}
    ended = tree(*begun, asked, back)
    assert "/admin/cancel_reassignment_in_progress" not in ended
    assert "/admin/reassign_partitions" in ended


def test_the_freeze_node_stands_while_nothing_may_start() -> None:
    frozen = ClusterFrozen(cluster="prod", by="ana", reason="incident 7")
    assert read(tree(frozen)["/admin/reassign_cancel"]) == {
        "version": 1,
        "by": "ana",
        "reason": "incident 7",
        "since_ms": AT_MS,
    }
    assert tree(frozen, ClusterUnfrozen(cluster="prod", by="ana", reason="over")) == {}


def test_the_current_batch_has_the_step_that_runs_of_each_partition() -> None:
    batch = "/drover/current_batch/orders"
    assert batch not in tree(opened(), queued(0), queued(1))
    found = tree(opened(), queued(0), queued(1), sent(1), sent(0), accepted(0))
    step = {"current_replicas": [1, 2, 3], "target_replicas": [4, 2, 3]}
    assert read(found[batch]) == {
        "version": 1,
        "name": "orders",
        "partitions": [{"partition_index": 0, **step}, {"partition_index": 1, **step}],
    }
    between = StepConfirmed(cluster="prod", topic="orders", partition=0, step=1, replicas=(1, 2, 3, 4))
    (left,) = read(tree(opened(), queued(0), queued(1), sent(1), sent(0), accepted(0), between)[batch])["partitions"]
    assert left["partition_index"] == 1
    assert batch not in tree(opened(), queued(0), sent(0), accepted(0), completed(0))


def test_each_reassignment_has_a_node_that_says_how_far_it_is() -> None:
    blocked = ReassignmentBlocked(
        cluster="prod", topic="orders", partition=0, why=Blocker.DEAD_DESTINATION, detail="broker 4 is dead"
    )
    found = tree(opened(), queued(0), sent(0), accepted(0), blocked)
    assert found["/admin/reassignments/orders"] == b""
    assert read(found["/admin/reassignments/orders/0"]) == {
        "version": 1,
        "number": 1,
        "plan": "friday",
        "state": "copying",
        "original_replicas": [1, 2, 3],
        "replicas": [4, 2, 3],
        "current_replicas": [1, 2, 3],
        "step": 1,
        "step_replicas": [4, 2, 3],
        "created_ms": AT_MS,
        "since_ms": AT_MS,
        "blocked": {"why": "dead-destination", "detail": "broker 4 is dead", "since_ms": AT_MS},
    }


def test_a_topics_node_has_what_is_added_and_removed_in_both_spellings() -> None:
    found = tree(opened(), queued(0), queued(1), sent(0), accepted(0))
    assert read(found["/brokers/topics/orders"]) == {
        "version": 3,
        "topic_id": "topic-id",
        "partitions": {"0": [4, 2, 3, 1], "1": [1, 2, 3]},
        "adding_replicas": {"0": [4]},
        "removing_replicas": {"0": [1]},
        "addingReplicas": {"0": [4]},
        "retiringReplicas": {"0": [1]},
    }


def test_what_a_confirmed_step_brought_in_sync_has_left_adding() -> None:
    """X16: the draft's list shrinks as replicas join; the log knows of it step by step."""
    grow = CallIntended(
        cluster="prod", topic="orders", partition=0, call=Call.STEP, expected=(1, 2, 3), replicas=(1, 2, 3, 4), step=1
    )
    joined = StepConfirmed(cluster="prod", topic="orders", partition=0, step=1, replicas=(1, 2, 3, 4))
    growing = read(tree(opened(), queued(0), grow, accepted(0))["/brokers/topics/orders"])
    assert (growing["addingReplicas"], growing["retiringReplicas"]) == ({"0": [4]}, {})
    grown = read(tree(opened(), queued(0), grow, accepted(0), joined)["/brokers/topics/orders"])
    assert (grown["partitions"], grown["addingReplicas"]) == ({"0": [1, 2, 3, 4]}, {})


def test_a_move_of_others_is_in_its_topics_node_and_nowhere_else() -> None:
    seen = UnmanagedMoveSeen(
        cluster="prod", topic="orders", partition=7, replicas=(5, 1, 2), adding=(5,), removing=(2,)
    )
    found = tree(seen)
    assert set(found) == {"/brokers/topics/orders"}
    assert read(found["/brokers/topics/orders"])["removing_replicas"] == {"7": [2]}
    assert tree(seen, UnmanagedMoveEnded(cluster="prod", topic="orders", partition=7)) == {}


def test_a_failed_broker_has_a_node_with_the_first_time_it_was_seen() -> None:
    failed = BrokerFailureRecorded(cluster="prod", broker=3, failed_at_ms=1234, by="watch", reason="no ping")
    assert tree(failed) == {"/admin/failed_brokers/3": b'{"failure_timestamp":1234}'}
    back = BrokerReturnRecorded(
        cluster="prod", broker=3, failed_at_ms=1234, returned_at_ms=2000, by="watch", reason="it is back"
    )
    assert tree(failed, back) == {}


def outage_ended(why: OutageEnd) -> BrokerOutageEnded:
    return BrokerOutageEnded(cluster="prod", broker=3, why=why)


def test_an_outage_that_drover_notes_has_a_node_until_the_broker_is_back() -> None:
    """R46-1, R46-2: nobody has reported the broker."""
    noted = BrokerOutageNoted(cluster="prod", broker=3)
    found = tree(noted, BrokerOutageNoted(cluster="prod", broker=3))
    assert found == {"/admin/failed_brokers/3": b'{"failure_timestamp":%d}' % AT_MS}
    assert tree(noted, outage_ended(OutageEnd.RETURNED)) == {}
    for event in (noted, outage_ended(OutageEnd.RETURNED)):
        scope = Scope()
        viewed(noted).apply(event, AT_MS, scope)
        assert scope.brokers == {3}
    assert tree(noted, outage_ended(OutageEnd.NOT_WATCHED)) == {}


def test_the_node_of_a_broker_that_is_reported_and_missed_has_the_earlier_time() -> None:
    reported = BrokerFailureRecorded(cluster="prod", broker=3, failed_at_ms=AT_MS + 5, by="watch", reason="no ping")
    noted = BrokerOutageNoted(cluster="prod", broker=3)
    assert read(tree(noted, reported)["/admin/failed_brokers/3"]) == {"failure_timestamp": AT_MS}
    assert read(tree(reported, noted)["/admin/failed_brokers/3"]) == {"failure_timestamp": AT_MS}
    returned = outage_ended(OutageEnd.RETURNED)
    assert read(tree(noted, reported, returned)["/admin/failed_brokers/3"]) == {"failure_timestamp": AT_MS + 5}


def test_a_broker_whose_replicas_were_all_replaced_has_no_node_even_if_it_was_reported() -> None:
    """R46-6."""
    reported = BrokerFailureRecorded(cluster="prod", broker=3, failed_at_ms=1234, by="watch", reason="no ping")
    noted, healed = BrokerOutageNoted(cluster="prod", broker=3), outage_ended(OutageEnd.NOT_ASSIGNED)
    assert tree(noted, healed) == {}
    assert tree(reported, noted, healed) == {}
    assert read(tree(reported, noted, healed, noted)["/admin/failed_brokers/3"]) == {"failure_timestamp": 1234}


def test_a_chunk_of_a_heal_has_a_node_until_it_begins() -> None:
    planned = HealPlanned(cluster="prod", heal="drover-heal-7", number=7, brokers=(3,), chunks=2, partitions=2)
    chunks = tuple(
        HealChunkPlanned(
            cluster="prod",
            heal="drover-heal-7",
            chunk=number,
            assignments=(HealAssignment("orders", number, "id", (1, 2, 3), (1, 2, 4)),),
        )
        for number in (1, 2)
    )
    found = tree(planned, *chunks)
    assert sorted(found) == ["/drover/heal/seq_0000000001", "/drover/heal/seq_0000000002"]
    assert read(found["/drover/heal/seq_0000000002"]) == {
        "version": 1,
        "heal": "drover-heal-7",
        "isAutoGenerated": True,
        "partitions": [{"topic": "orders", "partition": 2, "replicas": [1, 2, 4]}],
    }
    begun = HealChunkBegun(cluster="prod", heal="drover-heal-7", chunk=1)
    ended = HealEnded(cluster="prod", heal="drover-heal-7", why=HealEnd.RETURNED, dropped=1)
    assert list(tree(planned, *chunks, begun)) == ["/drover/heal/seq_0000000002"]
    assert tree(planned, *chunks, begun, ended) == {}
    view, scope = viewed(planned, *chunks), Scope()
    view.apply(ended, AT_MS, scope)
    assert dict(documents.heal_chunks(view, scope)) == dict.fromkeys(sorted(found))


def test_the_brokers_that_should_not_lead_are_a_dynamic_config_of_the_whole_cluster() -> None:
    def blacklisted(*brokers: int) -> BlacklistSet:
        return BlacklistSet(cluster="prod", brokers=brokers, previous_brokers=(), by="ana", reason="slow disks")

    assert read(tree(blacklisted(1, 65))["/config/brokers/<default>"]) == {
        "version": 1,
        "config": {"preferred_leader_blacklist": "1,65"},
    }
    assert tree(blacklisted(1), blacklisted()) == {}


def test_what_the_list_says_of_each_broker_and_a_balance_stand_beside_it() -> None:
    entry = ListedBroker(broker=3, topics=("orders",), for_ms=7000, reason="slow disk")
    returned = ListedBroker(broker=4, until_in_sync=True)
    listed = BlacklistSet(
        cluster="prod", brokers=(3, 4), previous_brokers=(), by="ana", reason="both are slow", entries=(entry, returned)
    )
    begun = LeaderBalanceBegun(cluster="prod", by="ben", reason="after the upgrade")
    found = read(tree(listed, begun)["/drover/leaders"])
    assert found == {
        "version": 1,
        "listed": [
            {"broker": 3, "by": "ana", "reason": "slow disk", "since_ms": AT_MS, "topics": ["orders"]}
            | {"until_ms": AT_MS + 7000},
            {"broker": 4, "by": "ana", "reason": "both are slow", "since_ms": AT_MS, "until_in_sync": True},
        ],
        "balance": {"by": "ben", "reason": "after the upgrade", "since_ms": AT_MS, "elected": 0},
    }
    over = LeaderBalanceEnded(cluster="prod", elected=0, left=0)
    unlisted = BlacklistSet(cluster="prod", brokers=(), previous_brokers=(3, 4), by="ana", reason="new disks")
    assert list(tree(begun)) == ["/drover/leaders"]
    assert tree(listed, begun, over, unlisted) == {}


def test_a_plan_has_a_head_and_its_partitions_in_pieces_that_are_plans_themselves() -> None:
    found = tree(opened(), *(queued(number) for number in range(300)))
    head = read(found["/drover/plans/friday"])
    assert (head["by"], head["reason"], head["active"], head["status"]) == ("ana", "drain broker 1", 300, "open")
    pieces = [read(found[f"/drover/plans/friday/000000000{number}"])["partitions"] for number in (0, 1)]
    # Reassignments are numbered from 1.
    assert [len(piece) for piece in pieces] == [255, 45]
    assert pieces[1][0] == {
        "topic": "orders",
        "partition": 255,
        "replicas": [4, 2, 3],
        "original_replicas": [1, 2, 3],
    }


def test_a_plan_that_is_done_is_gone() -> None:
    ended = (opened(), queued(0), sent(0), completed(0))
    assert "/drover/plans/friday" in tree(*ended)
    finished = PlanFinished(cluster="prod", plan="friday", completed=1, rolled_back=0, failed=0)
    assert tree(*ended, finished) == {}


@pytest.mark.parametrize("path", ["/admin/reassign_cancel", "/drover/plans/friday"])
def test_words_without_end_are_refused_and_do_not_block_the_tree(path: str) -> None:
    words = "x" * 100_000
    frozen = ClusterFrozen(cluster="prod", by="ana", reason=words)
    plan = opened()
    found = tree(frozen, type(plan)(cluster="prod", plan="friday", by="ana", reason=words))
    assert read(found[path])["refused"] == "too-large"


def test_a_topic_with_too_many_partitions_is_refused() -> None:
    found = tree(opened(), *(queued(number) for number in range(9000)))
    assert read(found["/brokers/topics/orders"])["see"] == "/admin/reassignments/orders"


def test_another_reassignment_of_a_partition_is_another_node() -> None:
    first, again = (tree(opened(), *events)["/admin/reassignments/orders/0"] for events in _twice())
    assert is_another("/admin/reassignments/orders/0", first, again)
    assert not is_another("/admin/reassignments/orders/0", first, first)
    assert is_another("/admin/reassignments/orders/0", b"by hand", again)
    assert not is_another("/admin/reassign_partitions", first, again)


def _twice() -> tuple[tuple[AnyEvent, ...], tuple[AnyEvent, ...]]:
    once: tuple[AnyEvent, ...] = (queued(0),)
    return once, (*once, sent(0), completed(0), queued(0))
