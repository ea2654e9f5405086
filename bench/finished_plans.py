"""A log of very many plans that finished long ago, folded as it is made: nobody has to hold it."""

from bench.results import check
from drover.decide.verdict import event_name
from drover.events.clusters import ClusterIdentified
from drover.events.codec import encode_record
from drover.events.partitions import TopicPartition
from drover.events.plans import PlanFinished, PlanOpened, PlansForgotten
from drover.events.reassignments import ReassignmentCompleted, ReassignmentQueued
from drover.events.records import SCHEMA_VERSION, Acquire, AnyEvent, Batch, Cursor, Genesis
from drover.fold.log import RecordVerdict, ShardFold
from drover.reconcile.plans.reconciler import RETENTION_MS

CLUSTER = "prod"
PLANS_PER_RECORD = 100
HISTORY_END_MS = 1_760_000_000_000
BETWEEN_RECORDS_MS = 30 * 60 * 1000


def aged_fold(plans: int) -> ShardFold:
    """Fold a log of so many plans of one partition, 100 in a record and half an hour between records.

    As in every log that an owner writes, plans are forgotten a day after they have ended.
    """
    fold = ShardFold(0, 1)
    token = b"token-of-long-ago"
    _append(fold, encode_record(Genesis(schema=SCHEMA_VERSION, shards=1, shard=0)))
    acquire = Acquire(schema=SCHEMA_VERSION, epoch=1, token=token, owner="w", group="drover", generation=1)
    _append(fold, encode_record(acquire))
    records = -(-plans // PLANS_PER_RECORD)
    at_ms = HISTORY_END_MS - records * BETWEEN_RECORDS_MS
    first: tuple[AnyEvent, ...] = (ClusterIdentified(cluster=CLUSTER, kafka_cluster_id="simulated-cluster"),)
    _append(fold, _batch(fold, first, at_ms))
    for record in range(records):
        numbers = range(record * PLANS_PER_RECORD, min(plans, (record + 1) * PLANS_PER_RECORD))
        events = (*_forgotten(record), *(event for number in numbers for event in _story(number)))
        _append(fold, _batch(fold, events, at_ms + record * BETWEEN_RECORDS_MS))
    return fold


def _forgotten(record: int) -> tuple[AnyEvent, ...]:
    """Forget the plans of the record a day before, whose age is over now."""
    first = (record - RETENTION_MS // BETWEEN_RECORDS_MS) * PLANS_PER_RECORD
    if first < 0:
        return ()
    return (PlansForgotten(cluster=CLUSTER, plans=tuple(map(_name, range(first, first + PLANS_PER_RECORD)))),)


def _name(number: int) -> str:
    return f"plan-of-long-ago-{number}"


def _story(number: int) -> tuple[AnyEvent, ...]:
    plan = _name(number)
    name = event_name(CLUSTER, TopicPartition("old-orders", number % 1000))
    return (
        PlanOpened(cluster=CLUSTER, plan=plan, by="ana@example", reason="capacity"),
        ReassignmentQueued(**name, topic_id="old", plan=plan, original=(1, 2, 3), target=(2, 3, 4)),
        ReassignmentCompleted(**name, replicas=(2, 3, 4)),
        PlanFinished(cluster=CLUSTER, plan=plan, completed=1, rolled_back=0, failed=0),
    )


def _batch(fold: ShardFold, events: tuple[AnyEvent, ...], at_ms: int) -> bytes:
    return encode_record(
        Batch(
            schema=SCHEMA_VERSION,
            token=fold.token,
            epoch=fold.epoch,
            sequence=fold.sequence + 1,
            at_ms=at_ms,
            cursors=tuple(Cursor(f"id-{kind}", 0) for kind in ("alter", "cancel", "blacklist", "broker-failed")),
            previous_hash=fold.chain,
            events=events,
        )
    )


def _append(fold: ShardFold, payload: bytes) -> None:
    folded = fold.fold(fold.position, payload)
    check(folded is not None and folded.verdict is not RecordVerdict.FENCED, "a record did not count")
