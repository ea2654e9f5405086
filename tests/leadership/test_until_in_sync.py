"""A demotion until the broker is in sync: it ends by itself once every replica of the broker has caught up."""

from drover.events.brokers import BlacklistSet
from drover.events.commands import BlacklistEntry
from drover.events.partitions import TopicPartition
from drover.events.refusals import RefusalCode
from drover.reconcile.leaders.listing_ends import IN_SYNC_MS
from tests.leadership.support import KEYS, LISTS, WITHOUT_3, blacklist, demote, leaders, lists, restore, world
from tests.shard.world import World, alter

ON_3 = tuple(key for key in KEYS if 3 in LISTS[key.partition])
# Two surveys, five seconds apart, and the time for which they must agree.
ENDS_WITHIN_MS = IN_SYNC_MS + 15_000


async def returned(*, stale: tuple[TopicPartition, ...] = ON_3, **fields: object) -> World:
    """Broker 3 was away and is back, these replicas of it are stale, and it is demoted until they are in sync."""
    made = world(joins_by_itself=False)
    await made.run(1000)
    made.model.stop_broker(3)
    await made.run(1000)
    made.model.start_broker(3)
    for key in ON_3:
        if key not in stale:
            made.model.join_isr(key, 3)
    await made.send(demote(3, until_in_sync=True, **fields))
    await made.run(3000)
    return made


def ended(made: World) -> list[BlacklistSet]:
    return [event for event in made.events() if isinstance(event, BlacklistSet) and event.by == "drover"]


def ends_in_sync(made: World) -> list[int]:
    return [broker for broker, listing in made.state.listings.items() if listing.until_in_sync]


async def test_it_lasts_as_long_as_one_replica_is_out_of_sync() -> None:
    made = await returned(stale=(KEYS[3],))
    await made.run(3 * ENDS_WITHIN_MS)
    assert made.state.blacklist == (3,)
    assert lists(made) == WITHOUT_3


async def test_it_ends_by_itself_once_all_replicas_are_in_sync_and_the_broker_leads_again() -> None:
    made = await returned()
    for key in ON_3:
        made.model.join_isr(key, 3)
    await made.run(ENDS_WITHIN_MS)
    (event,) = ended(made)
    assert (event.brokers, event.previous_brokers) == ((), (3,))
    assert event.reason == "the replicas of broker 3 are in sync"
    await made.run(3000)
    assert lists(made) == LISTS
    assert leaders(made) == [3, 1, 1, 3]


async def test_one_survey_that_shows_it_in_sync_is_not_enough() -> None:
    """A broker that has died a moment ago is shown alive and in sync until its session ends."""
    made = await returned()
    for key in ON_3:
        made.model.join_isr(key, 3)
    await made.run(IN_SYNC_MS - 4000)
    assert made.state.blacklist == (3,)
    made.model.stop_broker(3)
    await made.run(2 * ENDS_WITHIN_MS)
    assert made.state.blacklist == (3,)


async def test_while_the_broker_is_away_it_does_not_end_though_it_has_no_replica() -> None:
    made = world()
    made.model.delete_topic("t")
    made.model.create_topic("t", {0: (1, 2)})
    made.model.stop_broker(4)
    await made.send(demote(4, until_in_sync=True))
    await made.run(2 * ENDS_WITHIN_MS)
    assert made.state.blacklist == (4,)
    made.model.start_broker(4)
    await made.run(ENDS_WITHIN_MS)
    assert not made.state.blacklist


async def test_only_the_topics_that_it_names_need_be_in_sync() -> None:
    made = await returned(topics=("other",))
    await made.run(ENDS_WITHIN_MS)
    assert not made.state.blacklist


async def test_a_replica_that_a_move_is_adding_does_not_keep_it() -> None:
    made = await returned(stale=())
    coming = KEYS[2]
    await made.send(alter({coming: (1, 2, 3)}, stepping="single"))
    await made.run(ENDS_WITHIN_MS)
    assert 3 not in made.model.facts(coming).isr  # type: ignore[union-attr]
    assert not made.state.blacklist


async def test_a_successor_ends_it_as_well() -> None:
    made = await returned()
    for key in ON_3:
        made.model.join_isr(key, 3)
    await made.run(IN_SYNC_MS // 2)
    made.crash()
    await made.run(ENDS_WITHIN_MS)
    assert len(ended(made)) == 1


async def test_with_a_time_as_well_whichever_comes_first_ends_it() -> None:
    made = await returned(for_ms=10_000)
    await made.run(12_000)
    assert ended(made)[0].reason == "the time of broker 3 on the list is over"
    made = await returned(stale=(), for_ms=10 * ENDS_WITHIN_MS)
    await made.run(ENDS_WITHIN_MS)
    assert ended(made)[0].reason == "the replicas of broker 3 are in sync"


async def test_the_complete_list_may_say_it_too_and_a_restore_of_a_topic_keeps_it() -> None:
    made = await returned(topics=("t", "other"))
    await made.send(restore(3, topics=("other",)))
    assert (made.state.listings[3].topics, made.state.listings[3].until_in_sync) == (("t",), True)
    entry = BlacklistEntry(broker=3, until_in_sync=True)
    await made.send(blacklist(4, entries=(entry,)))
    assert [made.state.listings[broker].until_in_sync for broker in (4, 3)] == [False, True]
    for key in ON_3:
        made.model.join_isr(key, 3)
    await made.run(ENDS_WITHIN_MS)
    assert made.state.blacklist == (4,)


async def test_a_lasting_demotion_may_be_given_this_end_for_the_same_topics_only() -> None:
    made = world(joins_by_itself=False)
    await made.send(demote(3))
    outcome = await made.send(demote(3, topics=("t",), until_in_sync=True, by="bob"))
    assert "for all topics by ana until a command ends that already: that stays as it is" in outcome.remarks[0]
    outcome = await made.send(demote(3, until_in_sync=True))
    assert "until a command ends that: it ends earlier now" in outcome.remarks[0]
    assert ends_in_sync(made) == [3]
    await made.send(restore(3))
    await made.send(demote(3, topics=("t",), until_in_sync=True))
    outcome = await made.send(demote(3, topics=("other",)))
    assert (
        "until its replicas are in sync, and has one end for all of its topics: that is later now"
        in (outcome.remarks[0])
    )
    assert ends_in_sync(made) == []
    outcome = await made.send(demote(3, topics=("third",), until_in_sync=True))
    assert outcome.refusals[0].code is RefusalCode.UNSUPPORTED
