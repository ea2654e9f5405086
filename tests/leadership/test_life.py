"""The life of a list of brokers that should not lead, on a model cluster in virtual time."""

from collections.abc import Collection, Mapping

import pytest

from drover.cluster.port import AlterRequest
from drover.events.brokers import BlacklistSet
from drover.events.commands import BlacklistEntry, Restore
from drover.events.leadership import (
    ElectionOutcome,
    LeaderElectionEnded,
    LeaderElectionsEnded,
    LeaderOrderLeft,
    LeaderOrdersAnswered,
    LeaderOrdersIntended,
    LeadersCounted,
    LeaderWaiting,
)
from drover.events.partitions import TopicPartition
from drover.facts import CallResult
from drover.reconcile.observations import METADATA_LAG_MS
from drover.testing.simulated import Loss
from tests.leadership.support import (
    FIRST,
    KEYS,
    LISTS,
    WITHOUT_3,
    blacklist,
    demote,
    leader,
    leaders,
    lists,
    own_calls,
    restore,
    world,
)
from tests.shard.world import CLUSTER, Death, World, alter, cancel, rollback


async def test_a_listed_broker_leads_nothing_soon_and_everything_again_afterwards() -> None:
    made = world()
    await made.send(demote(3))
    await made.run(2000)
    assert lists(made) == WITHOUT_3
    assert leaders(made) == [1, 1, 1, 4]
    assert {key.partition: kept.canonical for key, kept in made.state.orders.items()} == {
        0: (3, 1, 2),
        1: (1, 3, 2),
        3: (3, 4, 1),
    }
    await made.send(restore(3))
    await made.run(2000)
    assert lists(made) == LISTS
    assert leaders(made) == [3, 1, 1, 3]
    assert not made.state.orders
    await made.finish()


async def test_who_is_restored_leads_again_while_another_one_is_still_listed() -> None:
    made = world()
    await made.send(blacklist(1, 3))
    await made.run(3000)
    assert leaders(made) == [2, 2, 2, 4]
    await made.send(restore(3))
    await made.run(3000)
    assert (made.replicas(FIRST), leader(made)) == ((3, 2, 1), 3)
    assert made.replicas(KEYS[3]) == (3, 4, 1)
    assert leaders(made) == [3, 3, 2, 3]


async def test_only_listed_topics_are_touched() -> None:
    made = world()
    made.model.create_topic("other", {0: (3, 1, 2)})
    await made.send(demote(3, topics=("other",)))
    await made.run(2000)
    assert lists(made) == LISTS
    assert made.replicas(TopicPartition("other", 0)) == (1, 2, 3)
    await made.send(demote(3, topics=("t",)))
    await made.run(2000)
    assert lists(made) == WITHOUT_3
    assert made.state.listings[3].topics == ("other", "t")


async def test_when_every_replica_is_listed_the_original_order_stays() -> None:
    made = world()
    await made.send(blacklist(1, 2, 3, 4))
    await made.run(2000)
    assert lists(made) == LISTS
    assert leaders(made) == [3, 1, 1, 3]
    assert own_calls(made) == 0


async def test_a_new_partition_with_a_listed_broker_first_is_found_by_a_survey() -> None:
    made = world()
    await made.send(demote(3))
    await made.run(2000)
    made.model.grow_topic("t", [(3, 2, 1)])
    await made.run(25_000)
    grown = TopicPartition("t", 4)
    assert made.replicas(grown) == (2, 1, 3)
    assert leader(made, grown) == 2


async def test_a_listing_ends_by_itself_in_log_time_also_while_nobody_is_at_work() -> None:
    made = world()
    await made.send(demote(3, for_ms=10_000))
    await made.run(2000)
    assert lists(made) == WITHOUT_3
    made.model.advance(60_000)
    assert lists(made) == WITHOUT_3
    made.crash()
    await made.run(9000)
    assert lists(made) == LISTS
    (expired,) = [event for event in made.events() if isinstance(event, BlacklistSet) and event.by == "drover"]
    assert (expired.brokers, expired.previous_brokers) == ((), (3,))


async def test_the_complete_list_may_say_until_when_and_for_what() -> None:
    made = world()
    until_ms = made.now.wall_ms + 5000
    await made.send(blacklist(1, entries=(BlacklistEntry(broker=3, until_ms=until_ms, reason="hot"),)))
    assert made.state.listings[3].reason == "hot"
    await made.run(4000)
    assert made.replicas(FIRST) == (2, 3, 1)
    await made.run(6000)
    assert list(made.state.listings) == [1]
    assert made.replicas(FIRST) == (3, 2, 1)


@pytest.mark.parametrize("death", list(Death))
@pytest.mark.parametrize("turns", range(6))
async def test_a_successor_finishes_what_its_predecessor_began(death: Death, turns: int) -> None:
    made = world()
    made.put(demote(3))
    for turn in range(7):
        made.model.advance(100)
        await made.look()
        await made.turn(death if turn == turns else None)
    await made.run(12_000)
    assert lists(made) == WITHOUT_3
    assert leaders(made) == [1, 1, 1, 4]
    made.crash()
    await made.send(restore(3))
    await made.run(12_000)
    assert (lists(made), leaders(made)) == (LISTS, [3, 1, 1, 3])
    assert not made.state.orders
    assert not made.state.elections


async def test_nobody_in_sync_is_shown_as_waiting_and_tried_again() -> None:
    made = world(joins_by_itself=False)
    for broker in (1, 2):
        made.model.stop_broker(broker)
    await made.send(demote(3))
    await made.run(3000)
    assert leader(made) == 3
    waiting = made.state.waiting[FIRST]
    assert "none of 1, 2 is in sync" in waiting.detail
    assert sum(isinstance(event, LeaderWaiting) and event.key == FIRST for event in made.events()) == 1
    made.model.joins_by_itself = True
    made.model.start_broker(2)
    await made.run(8000)
    assert leader(made) == 2
    assert FIRST not in made.state.waiting
    assert made.replicas(FIRST) == (1, 2, 3), "the canonical order of the others comes back once a listed one is gone"


async def test_an_order_that_somebody_else_changed_is_left_and_shown() -> None:
    made = world()
    await made.send(demote(3))
    await made.run(2000)
    await made.driver.alter([AlterRequest(FIRST, (3, 2, 1))])
    await made.run(20_000)
    assert made.replicas(FIRST) == (3, 2, 1)
    (left,) = [event for event in made.events() if isinstance(event, LeaderOrderLeft)]
    assert (left.replicas, left.expected) == ((3, 2, 1), (1, 2, 3))
    await made.send(restore(3))
    await made.run(3000)
    assert made.replicas(FIRST) == (3, 2, 1), "nobody restores over what somebody else has set"
    assert lists(made) == {**LISTS, 0: (3, 2, 1)}
    await made.send(demote(3))
    await made.run(3000)
    assert made.replicas(FIRST) == (2, 1, 3), "a new command is a new policy"


async def test_a_moved_partition_has_its_targets_order_as_canonical_one() -> None:
    made = world()
    await made.send(demote(3))
    await made.run(2000)
    await made.send(alter({FIRST: (3, 4, 1)}))
    await made.run(3000)
    assert made.replicas(FIRST) == (4, 1, 3), "no step makes a listed broker the first (X8)"
    assert made.state.orders[FIRST].canonical == (3, 4, 1)
    await made.send(restore(3))
    await made.run(3000)
    assert made.replicas(FIRST) == (3, 4, 1)


async def test_a_rollback_restores_the_canonical_original_in_todays_order() -> None:
    made = world(copy_bytes_per_second=1, partition_bytes=1_000_000)
    await made.send(demote(3))
    await made.run(2000)
    await made.send(alter({FIRST: (4, 2, 1)}))
    await made.run(1000)
    moving = made.state.reassignments[FIRST]
    assert (moving.original, moving.current) == ((3, 1, 2), (1, 2, 3))
    await made.send(blacklist(1))
    await made.send(rollback(FIRST))
    await made.run(5000)
    assert made.replicas(FIRST) == (3, 2, 1)
    await made.send(blacklist())
    await made.run(3000)
    assert lists(made) == LISTS
    assert not made.state.orders


async def test_an_undo_of_a_move_gives_the_canonical_order() -> None:
    made = world()
    await made.send(demote(3))
    await made.run(2000)
    await made.send(alter({FIRST: (3, 4, 1)}))
    await made.run(3000)
    outcome = await made.send(alter({FIRST: (3, 1, 2)}))
    assert outcome.verdict == "accepted"
    await made.run(3000)
    assert made.replicas(FIRST) == (1, 2, 3)
    assert made.state.orders[FIRST].canonical == (3, 1, 2)


async def test_asking_for_the_canonical_order_changes_nothing_while_a_broker_is_listed() -> None:
    made = world()
    await made.send(demote(3))
    await made.run(2000)
    outcome = await made.send(alter({FIRST: (3, 1, 2)}))
    assert [TopicPartition(one.topic, one.partition) for one in outcome.unchanged] == [FIRST]


async def test_a_topic_that_is_created_anew_has_no_canonical_order() -> None:
    made = world()
    await made.send(demote(3))
    await made.run(2000)
    made.model.delete_topic("t")
    made.model.create_topic("t", {0: (2, 3, 1), 1: (3, 2, 1)})
    await made.run(25_000)
    assert made.replicas(FIRST) == (2, 1, 3)
    assert leader(made, KEYS[1]) == 2
    await made.send(restore(3))
    await made.run(12_000)
    assert made.replicas(FIRST) == (2, 3, 1)
    assert made.replicas(KEYS[1]) == (3, 2, 1)
    assert not made.state.orders


async def test_a_frozen_cluster_keeps_its_leaders_until_it_is_unfrozen() -> None:
    made = world()
    await made.freeze()
    await made.send(demote(3))
    await made.run(5000)
    assert own_calls(made) == 0
    await made.unfreeze()
    await made.run(5000)
    assert lists(made) == WITHOUT_3
    assert leaders(made) == [1, 1, 1, 4]


async def test_brokers_whose_metadata_lags_bring_no_second_election() -> None:
    made = world()
    made.driver.lag_metadata(1500)
    await made.run(2000)
    for command in (demote(3), restore(3)):
        await made.send(command)
        await made.run(15_000)
        assert lists(made) == (LISTS if isinstance(command, Restore) else WITHOUT_3)
    ended = [event for event in made.events() if isinstance(event, LeaderElectionsEnded)]
    assert {event.outcome for event in ended} == {ElectionOutcome.ELECTED}


async def test_the_merged_list_of_a_move_that_nobody_saw_is_not_put_into_order() -> None:
    made, moved = world(), KEYS[1]
    made.model.alter([AlterRequest(moved, (1, 3, 4))])
    made.driver.freeze_metadata()
    made.model.join_isr(moved, 4)
    assert lists(made)[1] == (1, 3, 4)
    await made.send(demote(3))
    await made.run(METADATA_LAG_MS)
    assert lists(made)[1] == (1, 3, 4)
    made.driver.thaw_metadata()
    await made.run(10_000)
    assert lists(made)[1] == (1, 4, 3)
    changes = [change for event in made.events() if isinstance(event, LeaderOrdersIntended) for change in event.changes]
    assert {len(change.replicas) for change in changes} == {3}


async def test_hardly_a_partition_is_looked_at_twice_because_its_turn_comes_while_that_is_fresh() -> None:
    made = World()
    keys = [TopicPartition("many", number) for number in range(1500)]
    made.model.create_topic("many", {key.partition: (3, 1, 2) for key in keys})
    await made.send(demote(3))
    looked = 0
    while any(leader(made, key) == 3 for key in keys):
        made.model.advance(100)
        looked += len(made.core.cluster(CLUSTER).attention(made.now, {}).partitions)
        await made.look()
        await made.turn()
    assert looked < 1.5 * len(keys)


async def test_a_lost_answer_is_looked_for_and_an_election_is_never_unclean() -> None:
    made = world()
    await made.send(demote(3))
    await made.look()
    await made.settle()
    made.driver.lose_next(Loss.ANSWER)
    await made.run(15_000)
    assert (lists(made), leaders(made)) == (WITHOUT_3, [1, 1, 1, 4])


async def test_an_election_that_kafka_refuses_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    made = world()
    refusals = [CallResult(80, "not now"), CallResult(31, "not you")]
    elect = made.driver.elect_leaders

    async def refusing(partitions: Collection[TopicPartition]) -> Mapping[TopicPartition, CallResult]:
        if refusals:
            return dict.fromkeys(partitions, refusals.pop(0))
        return await elect(partitions)

    monkeypatch.setattr(made.driver, "elect_leaders", refusing)
    await made.send(demote(3))
    await made.run(20_000)
    assert leaders(made) == [1, 1, 1, 4]
    refused = [event for event in made.events() if isinstance(event, LeaderElectionEnded) and event.code]
    assert {event.outcome for event in refused} == {ElectionOutcome.REFUSED}
    assert {event.code for event in refused} == {80, 31}
    assert not made.state.waiting


async def test_cancelling_everything_delays_a_reorder_and_does_not_prevent_it() -> None:
    made = world(joins_by_itself=False)
    made.model.stop_broker(2)
    made.put(demote(3))
    for _ in range(10):
        if made.state.reassignments:
            break
        made.model.advance(100)
        await made.look()
        await made.turn()
    assert made.state.reassignments
    await made.send(cancel(mode="rollback", all=True))
    made.model.joins_by_itself = True
    made.model.start_broker(2)
    await made.run(20_000)
    assert (lists(made), leaders(made)) == (WITHOUT_3, [1, 1, 1, 4])


async def test_a_client_cannot_add_to_drovers_own_plan() -> None:
    made = world()
    outcome = await made.send(alter({FIRST: (1, 2, 3)}, plan="drover-leaders-1"))
    assert outcome.verdict == "refused"
    assert "choose another name" in outcome.refusals[0].detail


async def test_leaders_are_counted_when_that_has_changed() -> None:
    made = world()
    await made.send(demote(3))
    await made.run(12_000)
    counted = [event for event in made.events() if isinstance(event, LeadersCounted)]
    assert len(counted) <= 4
    assert {broker: tally.leaders for broker, tally in made.state.leader_counts.items()} == {1: 3, 2: 0, 3: 0, 4: 1}


async def test_the_end_of_an_order_says_why() -> None:
    made = world()
    await made.send(demote(3))
    await made.run(2000)
    await made.send(restore(3))
    await made.run(2000)
    restored = {
        TopicPartition(event.topic, number)
        for event in made.events()
        if isinstance(event, LeaderOrdersAnswered | LeaderElectionsEnded)
        for number in event.restored
    }
    assert restored == {KEYS[0], KEYS[1], KEYS[3]}
