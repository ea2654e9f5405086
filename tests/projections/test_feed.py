"""Groups of events: what is recomputed is what changed, and every group ends at the documents of a prefix."""

from collections import Counter

import pytest
from msgspec.structs import replace

from drover.events.healing import HealAssignment, HealChunkPlanned, HealEnd, HealEnded, HealPlanned
from drover.events.records import AnyEvent
from drover.projections.changes import absorb, changes, flat, left_by, transactions
from drover.projections.documents import documents
from drover.projections.feed import Feed, Group, weigh
from drover.projections.listings import listing_of, step_of
from drover.projections.position import Place
from drover.projections.store import MOST_BYTES, MOST_OPERATIONS, Operation, Znode, size_of
from drover.projections.view import ClusterView, Scope, chunk_of
from tests.projections.logs import feed_of, opened, prefixes, queued, recorded, rendered, sent, walked_log
from tests.shard.world import CLUSTER


def check_indexes(view: ClusterView) -> None:
    """Hold what the view keeps beside the state against the state alone."""
    state = view.state
    under_way = state.reassignments
    assert list(view.accepted.by_key) == list(under_way)
    assert view.accepted.size == sum(len(entry) + 1 for entry in view.accepted.by_key.values())
    assert list(view.queue.by_key) == list(state.queue)
    assert view.cancelled == sum(found.is_cancelled for found in under_way.values())
    assert view.under_way == dict(Counter(key.topic for key in under_way))
    chunks = {(chunk, key) for chunk, entries in view.chunks.items() for key in entries.by_key}
    assert chunks == {(chunk_of(found), key) for key, found in under_way.items()}
    listed = {(topic, number): one for topic, some in view.topics.items() for number, one in some.by_partition.items()}
    shown = {*under_way, *state.unmanaged}
    assert listed == {key: listing_of(under_way.get(key), state.unmanaged.get(key)) for key in shown}
    batch = {(topic, number): one for topic, some in view.batch.items() for number, one in some.by_partition.items()}
    assert batch == {key: step for key, found in under_way.items() if (step := step_of(found)) is not None}


@pytest.mark.parametrize("seed", range(8))
async def test_recomputing_what_events_touch_equals_recomputing_all(seed: int) -> None:
    feed = feed_of(await walked_log(seed))
    kept: dict[str, bytes] = {}
    while feed.waiting:
        first, scope = feed.waiting.popleft(), Scope()
        feed.view.apply(first.event, first.at_ms, scope)
        for path, data in documents(feed.view, scope):
            if data is None:
                kept.pop(path, None)
            else:
                kept[path] = data
        check_indexes(feed.view)
        assert kept == rendered(feed), f"after {first.event}"
    assert len(kept) < 20, "at the end of a walk little is left"


@pytest.mark.parametrize("seed", range(3))
async def test_every_group_leads_from_a_prefix_to_a_prefix_within_the_limits(seed: int) -> None:
    log = await walked_log(seed)
    wanted = prefixes(log)
    feed, known = feed_of(log), dict[str, Znode]()
    events = len(feed.waiting)
    count, place = 0, feed.place
    before: list[Operation] = []
    for group in groups_of(feed):
        assert group.start == place
        ahead = flat(changes(known, group.documents, left_by(before)))
        absorb(known, before)
        operations = before = flat(changes(known, group.documents))
        assert ahead == operations, "it is the same before what is under way is done"
        assert len(operations) < MOST_OPERATIONS
        assert sum(map(size_of, operations)) < MOST_BYTES
        after = dict(known)
        absorb(after, operations)
        assert {path: node.data for path, node in after.items()} == wanted[group.end]
        count, place = count + group.events, group.end
    assert count == events
    assert place == max(wanted)


def groups_of(feed: Feed) -> list[Group]:
    groups = []
    while (group := feed.next_group()) is not None:
        groups.append(group)
    return groups


async def test_a_tree_that_has_a_part_of_the_log_goes_on_behind_it() -> None:
    log = await walked_log(0)
    wanted = prefixes(log)
    places = sorted(wanted)
    feed = feed_of(log)
    feed.advance(places[len(places) // 2])
    assert feed.place == places[len(places) // 2]
    assert rendered(feed) == wanted[feed.place]
    feed.advance(Place(0, 0))
    assert feed.place == places[len(places) // 2], "a feed never goes back"
    feed.advance_all()
    assert feed.place == places[-1]


async def test_the_events_of_other_clusters_do_not_count() -> None:
    log = await walked_log(0)
    assert not feed_of(log, "another").waiting
    assert feed_of(log, CLUSTER).waiting


def test_a_record_with_more_than_fits_a_transaction_is_cut_between_events() -> None:
    feed = Feed("prod")

    events: tuple[AnyEvent, ...] = (opened(), *(queued(number, topic=f"topic-{number % 50}") for number in range(500)))
    assert feed.offer(7, recorded(events)) == 501
    groups = groups_of(feed)
    assert len(groups) > 3
    assert groups[0].end == Place(7, groups[0].events)
    assert groups[-1].end == Place(8, 0)


def test_large_documents_make_small_groups() -> None:
    feed = Feed("prod")

    wide = tuple(range(100, 130))
    events: tuple[AnyEvent, ...] = (
        opened(),
        *(queued(number, topic="t" * 249, original=wide) for number in range(1500)),
    )
    feed.offer(0, recorded(events))
    for group in groups_of(feed):
        size = sum(len(path) + len(data or b"") for path, data in group.documents.items())
        assert size <= MOST_BYTES


def test_long_lists_in_many_topics_make_small_groups() -> None:
    """A topic's documents weigh what they are: with a guess for each partition, these groups had up to 860 kB."""
    feed = Feed("prod")
    before, after = tuple(range(10_000, 10_010)), tuple(range(20_000, 20_010))
    moves = [
        event
        for number in range(60)
        for topic in (f"topic-{count}" for count in range(40))
        for event in (
            replace(queued(number, topic), original=before, target=after),
            replace(sent(number, topic), expected=before, replicas=after),
        )
    ]
    feed.offer(0, recorded((opened(), *moves)))
    for group in groups_of(feed):
        size = sum(len(path) + len(data or b"") for path, data in group.documents.items())
        assert size <= MOST_BYTES


def a_heal(*chunks: tuple[HealAssignment, ...]) -> tuple[AnyEvent, ...]:
    """The plan of a heal with these chunks."""
    partitions = sum(map(len, chunks))
    return (
        HealPlanned(cluster="prod", heal="heal-1", number=1, brokers=(3,), chunks=len(chunks), partitions=partitions),
        *(
            HealChunkPlanned(cluster="prod", heal="heal-1", chunk=number, assignments=assignments)
            for number, assignments in enumerate(chunks, start=1)
        ),
    )


def assignments_of(topic: str, count: int) -> tuple[HealAssignment, ...]:
    return tuple(HealAssignment(topic, number, "id", (3, 1, 2), (4, 1, 2)) for number in range(count))


def test_a_heal_of_many_large_chunks_makes_small_groups() -> None:
    """Each chunk is a node: 100 of these would be 2 MB, and ZooKeeper would never take them."""
    feed = Feed("prod")
    feed.offer(0, recorded(a_heal(*[assignments_of("t" * 150, 100)] * 100)))
    groups = groups_of(feed)
    assert sum(len(path.split("/")) == 4 for group in groups for path in group.documents) == 100
    for group in groups:
        assert sum(len(path) + len(data or b"") for path, data in group.documents.items()) <= MOST_BYTES


def test_the_end_of_a_heal_with_many_chunks_has_a_group_of_its_own() -> None:
    """All its nodes go at once: beside a full group, 4,000 of them would be too much for one transaction."""
    feed = Feed("prod")
    ended = HealEnded(cluster="prod", heal="heal-1", why=HealEnd.RETURNED, dropped=4_000)
    heal = a_heal(*((one,) for one in assignments_of("orders", 4_000)))
    feed.offer(0, recorded((*heal, opened(), queued(0), ended, queued(1))))
    ending = [group for group in groups_of(feed) if len(group.documents) >= 4_000]
    assert [group.events for group in ending] == [1]


def test_changes_are_done_from_the_leaves_up_and_from_the_top_down() -> None:
    known = {"/a": Znode(b"", 3), "/a/b": Znode(b"1", 0), "/c": Znode(b"2", 5)}
    parts = changes(known, {"/a": None, "/a/b": None, "/c": b"3", "/d/e": b"", "/d": b"", "/f": None})
    paths = [part[0].path for part in parts]
    assert paths == ["/a/b", "/a", "/c", "/d", "/d/e"]
    (operations,) = transactions(parts)
    absorb(known, operations)
    assert known == {"/c": Znode(b"3", 6), "/d": Znode(b"", 0), "/d/e": Znode(b"", 0)}
    assert changes(known, {"/c": b"3", "/d": b"", "/d/e": b""}) == []


def test_changes_are_cut_where_a_transaction_is_full() -> None:
    wanted: dict[str, bytes | None] = {f"/{number}": b"x" * 10_000 for number in range(300)}
    cut = list(transactions(changes({}, wanted)))
    assert [len(some) for some in cut][:-1] == [50] * (len(cut) - 1)
    assert sum(map(len, cut)) == 300
    assert weigh(ClusterView("prod"), Scope()) == 0
