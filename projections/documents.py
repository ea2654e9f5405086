"""PURE: the documents in the tree of a cluster, one function per kind.

A function yields a `Document` for every path of its kind in a scope: its bytes (canonical JSON, below the cluster's own
chroot), or None for no node. `DOCUMENTS` lists the functions; a new kind needs a function there, a test, and a row in
projections/README.md. `drover.projections.ownership` says who may write which node.
"""

from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from drover.projections.entries import Entries, Members
from drover.projections.ownership import REASSIGNMENTS
from drover.projections.reassignment_document import encode_reassignment
from drover.projections.view import ClusterView, Scope
from drover.state.plans import PlanStatus

# ZooKeeper takes requests of at most 1 MiB. One event touches at most one document of KIP-236, one topic's, one piece
# of a plan and four small ones: within these limits they always fit one transaction of 512 kB.
PLAN_LIMIT_BYTES = 280_000
TOPIC_LIMIT_BYTES = 80_000
CHUNK_LIMIT_BYTES = 60_000
SMALL_LIMIT_BYTES = 16_000
# The version of Kafka's topic znode with adding and removing replicas and the topic's id.
TOPIC_VERSION = 3
_encoder = msgspec.json.Encoder(order="sorted")


# A path and the bytes of its node; None for no node.
Document = tuple[str, bytes | None]


def documents(view: ClusterView, scope: Scope) -> Iterator[Document]:
    """Yield every document in the scope, in its current form."""
    for kind in DOCUMENTS:
        yield from kind(view, scope)


def reassign_partitions(view: ClusterView, scope: Scope) -> Iterator[Document]:
    """Yield the plan of all reassignments under way, with the original replicas, if any (R236-3, R455-12)."""
    if scope.accepted:
        yield ("/admin/reassign_partitions", _plan(view.accepted, PLAN_LIMIT_BYTES, "/admin/reassignments"))


def reassign_partitions_queue(view: ClusterView, scope: Scope) -> Iterator[Document]:
    """Yield the queue behind all accepted reassignments, in queue order, if it is not empty (R236-12)."""
    if scope.queue:
        data = _plan(view.queue, PLAN_LIMIT_BYTES, "drover status")
        yield ("/admin/reassign_partitions_queue", data)


def cancel_in_progress(view: ClusterView, scope: Scope) -> Iterator[Document]:
    """Yield the cancel node while any reassignment is being rolled back or stopped (R236-5)."""
    if scope.cancelled:
        yield ("/admin/cancel_reassignment_in_progress", _encode({"version": 1}) if view.cancelled else None)


def freeze(view: ClusterView, scope: Scope) -> Iterator[Document]:
    """Yield the freeze node while the cluster is frozen (R236-9)."""
    if scope.freeze:
        frozen = view.state.freeze
        content = None if frozen is None else {"version": 1, **msgspec.structs.asdict(frozen)}
        yield ("/admin/reassign_cancel", None if content is None else _encode(content))


def reassignments(view: ClusterView, scope: Scope) -> Iterator[Document]:
    """Yield one node per reassignment that has not ended, below its topic's; its czxid names it (R236-21, R236-22)."""
    for topic in scope.topics:
        yield (f"{REASSIGNMENTS}/{topic}", b"" if topic in view.under_way else None)
    for key in scope.partitions:
        reassignment = view.state.reassignments.get(key)
        path = f"{REASSIGNMENTS}/{key.topic}/{key.partition}"
        yield (path, None if reassignment is None else _fitting(encode_reassignment(reassignment)))


def topics(view: ClusterView, scope: Scope) -> Iterator[Document]:
    """Yield one node per topic of which a partition moves or waits, in Kafka's form and the draft's (R455-5, X15)."""
    for topic in scope.topics:
        path = f"/brokers/topics/{topic}"
        listed = view.topics.get(topic)
        if listed is None:
            yield (path, None)
        elif listed.size > TOPIC_LIMIT_BYTES:
            yield (path, _refused(TOPIC_LIMIT_BYTES, f"{REASSIGNMENTS}/{topic}"))
        else:
            # X16: replicas that are in sync by the log have left `adding` with their step; within a step both names
            # agree.
            adding, removing = _object(listed.adding), _object(listed.removing)
            content: dict[str, Any] = {
                "version": TOPIC_VERSION,
                "partitions": _object(listed.partitions),
                "adding_replicas": adding,
                "removing_replicas": removing,
                "addingReplicas": adding,
                "retiringReplicas": removing,
            }
            topic_id = next((entry.topic_id for entry in listed.by_partition.values() if entry.topic_id), None)
            if topic_id is not None:
                content["topic_id"] = topic_id
            yield (path, _encode(content, TOPIC_LIMIT_BYTES, f"{REASSIGNMENTS}/{topic}"))


def current_batch(view: ClusterView, scope: Scope) -> Iterator[Document]:
    """Yield one node per topic of which a step runs: KIP-435's current batch, in the names of KIP-455 (R435-2)."""
    for topic in scope.topics:
        path, see = f"/drover/current_batch/{topic}", f"{REASSIGNMENTS}/{topic}"
        running = view.batch.get(topic)
        if running is None:
            yield (path, None)
        elif running.members.size > SMALL_LIMIT_BYTES:
            yield (path, _refused(SMALL_LIMIT_BYTES, see))
        else:
            partitions = msgspec.Raw(b"[%b]" % running.members.joined())
            yield (path, _encode({"version": 1, "name": topic, "partitions": partitions}, see=see))


def failed_brokers(view: ClusterView, scope: Scope) -> Iterator[Document]:
    """Yield one node per broker that was reported as failed or missed, with the first time of either (R46-1, R46-6)."""
    for broker in scope.brokers:
        at_ms = view.state.failed_since_ms(broker)
        data = None if at_ms is None else _encode({"failure_timestamp": at_ms})
        yield (f"/admin/failed_brokers/{broker}", data)


def heal_chunks(view: ClusterView, scope: Scope) -> Iterator[Document]:
    """Yield one node per chunk of a heal that has not begun, as KIP-46 has them (R46-3, X3)."""
    for number in scope.heal_chunks:
        chunk = view.state.heal_chunks.get(number)
        content = None
        if chunk is not None:
            partitions = [
                {"topic": assignment.topic, "partition": assignment.partition, "replicas": assignment.target}
                for assignment in chunk.assignments
            ]
            content = {"version": 1, "heal": chunk.heal, "isAutoGenerated": True, "partitions": partitions}
        data = None if content is None else _encode(content, CHUNK_LIMIT_BYTES, "drover heal status")
        yield (f"/drover/heal/seq_{number:010d}", data)


def blacklist(view: ClusterView, scope: Scope) -> Iterator[Document]:
    """Yield the brokers that should not lead as the cluster-wide dynamic config that KIP-491 makes them (R491-1)."""
    if scope.blacklist:
        brokers = ",".join(map(str, view.state.blacklist))
        content = {"version": 1, "config": {"preferred_leader_blacklist": brokers}}
        yield ("/config/brokers/<default>", _encode(content) if brokers else None)


def leaders(view: ClusterView, scope: Scope) -> Iterator[Document]:
    """Yield the entries of the list beyond KIP-491, with scope, end, author and reason, and a balance under way."""
    if scope.blacklist:
        state = view.state
        listed = [{"broker": broker, **_without_empty(state.listings[broker])} for broker in state.blacklist]
        balance = {} if state.balance is None else {"balance": _without_empty(state.balance)}
        data = _encode({"version": 1, "listed": listed, **balance}, SMALL_LIMIT_BYTES, "drover leaders show")
        yield ("/drover/leaders", data if listed or balance else None)


def _without_empty(struct: msgspec.Struct) -> dict[str, Any]:
    fields = msgspec.structs.asdict(struct)
    return {name: value for name, value in fields.items() if value is not None and value is not False}


def plans(view: ClusterView, scope: Scope) -> Iterator[Document]:
    """Yield each plan that is not done, and its partitions in pieces of 256, by order of acceptance (R236-13)."""
    for name in scope.plans:
        plan = view.state.plans.get(name)
        shown = plan is not None and (plan.status is PlanStatus.OPEN or not plan.is_idle)
        data = None if plan is None or not shown else _encode({"version": 1, **msgspec.structs.asdict(plan)})
        yield (f"{PLANS}/{name}", data)
    for name, number in scope.chunks:
        entries = view.chunks.get((name, number), Entries())
        data = _plan(entries, CHUNK_LIMIT_BYTES, "/admin/reassignments")
        yield (f"{PLANS}/{name}/{number:010d}", data)


PLANS = "/drover/plans"
DOCUMENTS: tuple[Callable[[ClusterView, Scope], Iterator[Document]], ...] = (
    reassign_partitions,
    reassign_partitions_queue,
    cancel_in_progress,
    freeze,
    reassignments,
    topics,
    current_batch,
    failed_brokers,
    heal_chunks,
    blacklist,
    leaders,
    plans,
)


def standing(view: ClusterView) -> tuple[str, ...]:
    """Return the shared nodes that exist according to the fold (`drover.projections.ownership`)."""
    there = {
        "/admin/reassign_partitions": bool(view.accepted.by_key),
        "/admin/reassign_partitions_queue": bool(view.queue.by_key),
        "/admin/cancel_reassignment_in_progress": bool(view.cancelled),
        "/admin/reassign_cancel": view.state.freeze is not None,
        "/config/brokers/<default>": bool(view.state.blacklist),
    }
    return tuple(path for path, stands in there.items() if stands)


def _object(members: Members[str]) -> msgspec.Raw:
    return msgspec.Raw(b"{%b}" % members.joined())


def _plan(entries: Entries, limit_bytes: int, see: str) -> bytes | None:
    if not entries.by_key:
        return None
    data_bytes = entries.size + len(_HEAD) + len(_TAIL) - 1
    if data_bytes > limit_bytes:
        return _refused(limit_bytes, see)
    return _HEAD + b",".join(entries.by_key.values()) + _TAIL


_HEAD, _TAIL = b'{"partitions":[', b'],"version":1}'


def _refused(limit_bytes: int, see: str) -> bytes:
    """Return the document in place of one that is too large, without `partitions` that could mislead (R236-13)."""
    return _encoder.encode({"version": 1, "refused": "too-large", "limit_bytes": limit_bytes, "see": see})


def _encode(content: object, limit_bytes: int = SMALL_LIMIT_BYTES, see: str = "drover history") -> bytes:
    return _fitting(_encoder.encode(content), limit_bytes, see)


def _fitting(data: bytes, limit_bytes: int = SMALL_LIMIT_BYTES, see: str = "drover history") -> bytes:
    return data if len(data) <= limit_bytes else _refused(limit_bytes, see)
