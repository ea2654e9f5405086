"""How fast a shard's log is folded, and what an active reassignment costs in memory."""

import gc
import statistics
import time
import tracemalloc
from collections.abc import Sequence

import msgspec

from bench.log_maker import queued_log, varied_log
from bench.results import AtLeast, AtMost, Benchmark, Row, check, say
from drover.events.base import PartitionEvent, PartitionsEvent
from drover.events.records import Batch, Record
from drover.fold.log import ShardFold


async def run(*, quick: bool) -> tuple[Row, ...]:
    """Fold one log in two ways by turns, then weigh a fold."""
    maker = await varied_log(20_000 if quick else 200_000)
    log, events = maker.log, maker.events
    sizes = [len(payload) for payload in log]
    middle, largest = statistics.median(sizes), max(sizes)
    say(f"a log of {events:,} events in {len(log):,} records of {middle:,.0f} bytes in the middle, at most {largest:,}")
    # As in a worker; else each collection walks over all that is imported, and over what made the log.
    gc.collect()
    gc.freeze()
    folding: list[float] = []
    bare: list[float] = []
    decoding: list[float] = []
    for _ in range(3 if quick else 7):
        decoding.append(_decode(log))
        bare.append(_bare(log))
        folding.append(_fold(log, maker.fold.state.hash()))
    folded_per_s = events / min(folding)
    bare_per_s = events / min(bare)
    decoded_per_s = events / min(decoding)
    gc.unfreeze()
    active = 2_000 if quick else 20_000
    waiting = await queued_log(active)
    return (
        Row("events folded, beside the bare loop", folded_per_s, "events/s", bare_per_s, gate=AtLeast(0.5)),
        Row("events folded, beside decoding alone", folded_per_s, "events/s", decoded_per_s),
        Row("events folded", folded_per_s, "events/s", goal=AtLeast(150_000)),
        Row(f"memory per active reassignment ({active:,})", _weigh(waiting.log) / active, "bytes", gate=AtMost(2048)),
    )


def _fold(log: Sequence[bytes], state_hash: bytes) -> float:
    """Time what every reader of the log does: all rules, all effects."""
    fold = ShardFold(0, 1)
    gc.collect()
    began = time.process_time()
    for offset, payload in enumerate(log):
        fold.fold(offset, payload)
    took = time.process_time() - began
    check(fold.state.hash() == state_hash, "the replayed state is another one")
    return took


class _Actor:
    """The least that anybody could keep of a partition."""

    __slots__ = ("at_ms", "event", "kind", "number")

    def __init__(self) -> None:
        self.number = 0
        self.kind: type | None = None
        self.at_ms = 0
        self.event: object = None


def _bare(log: Sequence[bytes]) -> float:
    """Time a bare decode-and-apply: decode each record, find each event's actors, set their fields; check no rule."""
    decoder: msgspec.msgpack.Decoder[Record] = msgspec.msgpack.Decoder(Record)
    actors: dict[object, _Actor] = {}
    gc.collect()
    began = time.process_time()
    for payload in log:
        record = decoder.decode(payload)
        if isinstance(record, Batch):
            for event in record.events:
                if isinstance(event, PartitionEvent):
                    key: object = event.key
                elif isinstance(event, PartitionsEvent):
                    _bare_many(actors, event, record.at_ms)
                    continue
                else:
                    key = event.cluster
                actor = actors.get(key)
                if actor is None:
                    actor = actors[key] = _Actor()
                actor.number += 1
                actor.kind = type(event)
                actor.at_ms = record.at_ms
                actor.event = event
    took = time.process_time() - began
    check(actors, "the log is empty")
    return took


def _bare_many(actors: dict[object, _Actor], event: PartitionsEvent, at_ms: int) -> None:
    """Do the same for an event about many partitions: each has an actor of its own."""
    for key in event.keys:
        actor = actors.get(key)
        if actor is None:
            actor = actors[key] = _Actor()
        actor.number += 1
        actor.kind = type(event)
        actor.at_ms = at_ms
        actor.event = event


def _decode(log: Sequence[bytes]) -> float:
    """Time decoding alone."""
    decoder: msgspec.msgpack.Decoder[Record] = msgspec.msgpack.Decoder(Record)
    gc.collect()
    began = time.process_time()
    for payload in log:
        decoder.decode(payload)
    return time.process_time() - began


def _weigh(log: Sequence[bytes]) -> int:
    """Return the bytes that a fold of this log holds."""
    gc.collect()
    tracemalloc.start()
    fold = ShardFold(0, 1)
    for offset, payload in enumerate(log):
        fold.fold(offset, payload)
    gc.collect()
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    check(fold.position == len(log), "the log was not folded")
    return held


METHOD = """\
A log of at least 200,000 events is made by the real shard core beside a model of a cluster: plans of 500, 250 and
50 partitions and single ones, a throttle, rollbacks, news of brokers, in records of many sizes. All loops run by
turns in one process, 7 times each; processor time, the least of the seven, since other work on the machine only adds.
What the process has loaded is kept from garbage collection, as in a worker. *Baseline* of the first row: decode each
record with msgspec, find the actor of each partition that an event is about in a dictionary and set its four fields; no
rule, no index, no chain.
*Memory*: what `tracemalloc` says a fold holds after a log that leaves 20,000 reassignments active, nearly all of them
queued."""
BENCHMARK = Benchmark("replay", "Replay of the event log", METHOD, run)
