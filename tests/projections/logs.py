"""Logs to project: random walks of the real shard core beside a model cluster, and single events by hand."""

import functools
from collections.abc import Sequence

from drover.events.plans import PlanOpened
from drover.events.reassignments import Call, CallAccepted, CallIntended, ReassignmentCompleted, ReassignmentCreated
from drover.events.records import SCHEMA_VERSION, AnyEvent, Batch
from drover.fold.log import RecordVerdict, ShardFold
from drover.projections.feed import Feed
from drover.projections.position import Place
from drover.projections.view import ClusterView, Scope
from tests.projections.walk import Walk
from tests.shard.world import CLUSTER

AT_MS = 1_700_000_000_000


@functools.cache
def _walks() -> dict[tuple[int, int], tuple[bytes, ...]]:
    return {}


async def walked_log(seed: int, steps: int = 60) -> tuple[bytes, ...]:
    """Return the payloads of a shard's log in which nearly everything happens."""
    known = _walks()
    if (seed, steps) not in known:
        walk = Walk(seed)
        for _ in range(steps):
            await walk.step()
        await walk.heal()
        known[seed, steps] = tuple(walk.world.log)
    return known[seed, steps]


def valid_batches(log: Sequence[bytes]) -> list[tuple[int, Batch]]:
    """Return the batches that count, with their offsets."""
    fold = ShardFold(0, 1)
    found = [fold.fold(offset, payload) for offset, payload in enumerate(log)]
    return [
        (folded.offset, folded.record)
        for folded in found
        if folded is not None and folded.verdict is RecordVerdict.VALID and isinstance(folded.record, Batch)
    ]


def feed_of(log: Sequence[bytes], cluster: str = CLUSTER) -> Feed:
    """Return a feed in which the whole log waits."""
    feed = Feed(cluster)
    for offset, batch in valid_batches(log):
        feed.offer(offset, batch)
    return feed


def prefixes(log: Sequence[bytes], cluster: str = CLUSTER) -> dict[Place, dict[str, bytes]]:
    """Return the documents of every prefix of the events, made from nothing but the state at its end."""
    feed = feed_of(log, cluster)
    found = {feed.place: rendered(feed)}
    while feed.waiting:
        feed.advance(feed.waiting[0].place)
        found[feed.place] = rendered(feed)
    return found


def rendered(feed: Feed) -> dict[str, bytes]:
    """Return every document at the feed's place."""
    return {path: data for path, data in feed.everything().items() if data is not None}


def recorded(events: Sequence[AnyEvent]) -> Batch:
    """Return a record with these events."""
    return Batch(
        schema=SCHEMA_VERSION,
        token=b"token",
        epoch=1,
        sequence=1,
        at_ms=AT_MS,
        cursors=(),
        previous_hash=b"",
        events=tuple(events),
    )


def viewed(*events: AnyEvent, cluster: str = "prod") -> ClusterView:
    """Return the view after these events."""
    view = ClusterView(cluster)
    for event in events:
        view.apply(event, AT_MS, Scope())
    return view


def opened(plan: str = "friday", cluster: str = "prod") -> PlanOpened:
    return PlanOpened(cluster=cluster, plan=plan, by="ana", reason="drain broker 1")


def queued(
    number: int, topic: str = "orders", plan: str = "friday", original: Sequence[int] = (1, 2, 3), cluster: str = "prod"
) -> ReassignmentCreated:
    return ReassignmentCreated(
        cluster=cluster,
        topic=topic,
        partition=number,
        topic_id="topic-id",
        plan=plan,
        original=tuple(original),
        target=(4, 2, 3),
    )


def sent(number: int, topic: str = "orders", cluster: str = "prod") -> CallIntended:
    return CallIntended(
        cluster=cluster,
        topic=topic,
        partition=number,
        call=Call.STEP,
        expected=(1, 2, 3),
        replicas=(4, 2, 3),
        step=1,
        final=True,
        leader=1,
    )


def accepted(number: int, topic: str = "orders", cluster: str = "prod") -> CallAccepted:
    return CallAccepted(cluster=cluster, topic=topic, partition=number, call=Call.STEP)


def completed(number: int, topic: str = "orders", cluster: str = "prod") -> ReassignmentCompleted:
    return ReassignmentCompleted(cluster=cluster, topic=topic, partition=number, replicas=(4, 2, 3))
