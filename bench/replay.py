"""How fast a shard's log is folded.

The real shard core makes the log of at least 200,000 events beside a model cluster: plans of 500, 250 and 50 partitions
and single ones, a throttle, rollbacks, news of brokers. Processor time, the least of five folds, since other work on
the machine only adds.
"""

import gc
import time
from collections.abc import Sequence

from bench.log_maker import varied_log
from bench.results import AtLeast, Benchmark, Row, check, say
from drover.fold.log import ShardFold


async def run(*, quick: bool) -> tuple[Row, ...]:
    """Fold one log several times."""
    maker = await varied_log(20_000 if quick else 200_000)
    say(f"a log of {maker.events:,} events in {len(maker.log):,} records")
    # As in a worker: each collection would otherwise walk over all that is imported, and over what made the log.
    gc.collect()
    gc.freeze()
    seconds = min(_fold(maker.log, maker.fold.state.hash()) for _ in range(2 if quick else 5))
    gc.unfreeze()
    return (Row("events folded in a replay", maker.events / seconds, "events/s", goal=AtLeast(100_000)),)


def _fold(log: Sequence[bytes], state_hash: bytes) -> float:
    fold = ShardFold(0, 1)
    gc.collect()
    began_s = time.process_time()
    for offset, payload in enumerate(log):
        fold.fold(offset, payload)
    seconds = time.process_time() - began_s
    check(fold.state.hash() == state_hash, "the replayed state has another hash")
    return seconds


BENCHMARK = Benchmark("replay", run)
