"""What the simulation would have written: byte samples, and the log and the samples that tests on a real Kafka read."""

import random

from drover.events.codec import encode_progress
from drover.events.progress import Progress, ReplicaBytes
from tests.shard.random_logs import random_log
from tests.spark.kafka_rows import BEGAN_MS, NAMES, Stored


def samples_of(seed: int) -> list[Stored]:
    """Samples with late epochs, repeats, gaps, wrong clocks, steps, sizes that shrink and a broker that dies."""
    chance = random.Random(seed)
    found, at_ms, appended_ms, held = [], BEGAN_MS, BEGAN_MS, {2: 0, 3: 0, 4: 0}
    for number in range(300):
        at_ms += chance.choice((-500, 0, 400, 1000, 1000, 1000, 20_000, 700_000 if chance.random() < 0.1 else 1000))
        adding = chance.choice(((4,), (4,), (4,), (3, 4)))
        held = {broker: max(0, size + chance.randint(-50, 500)) for broker, size in held.items()}
        shown = {**held, 4: 0} if number % 10 < 3 else held
        sample = Progress(
            cluster=chance.choice(("east", "west")),
            topic="orders",
            partition=chance.randint(0, 2),
            epoch=chance.choice((1, 2, 2, 2)),
            at_ms=at_ms + chance.choice((0,) * 10 + (5_000, 10**12)),
            step=chance.choice((1, 1, 1, 2)),
            bytes_done=sum(shown[broker] for broker in adding),
            bytes_total=10_000,
            adding=tuple(ReplicaBytes(broker, shown[broker]) for broker in adding),
            leader=chance.choice((1, 1, None)),
        )
        appended_ms = max(appended_ms, at_ms + chance.randint(0, 50))
        found.append(Stored(NAMES.progress, 0, number, appended_ms, encode_progress(sample)))
    return found


# Without the genesis record, which the topics have already.
LOG = random_log(12, 120)[1:]
SAMPLES = tuple(one.value for one in samples_of(4)[:100] if one.value is not None)
