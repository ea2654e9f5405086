"""The model cluster beside a real one: hundreds of random scripts whose visible results must agree."""

import time

from msgspec.structs import replace

from bench.results import AtLeast, AtMost, Benchmark, Row, check, say
from bench.rig import fresh_cluster
from drover.traits import LATEST
from tests.reality.playing import play
from tests.reality.recorder import Disagreement
from tests.reality.scripts import Kill, make_batch

BATCHES = 8
SCRIPTS = 65
BATCHES_WITHOUT_ELR = 2
FEWEST = 500
FIRST_SEED = 100


async def run(*, quick: bool) -> tuple[Row, ...]:
    """Play the batches, the last ones with KIP-966 switched off, on one cluster after the other."""
    size, with_elr, without_elr = (4, 1, 1) if quick else (SCRIPTS, BATCHES - BATCHES_WITHOUT_ELR, BATCHES_WITHOUT_ELR)
    switched_off = replace(LATEST, with_elr=False)
    batches = [
        make_batch(FIRST_SEED + number, size, LATEST if number < with_elr else switched_off)
        for number in range(with_elr + without_elr)
    ]
    began = time.monotonic()
    found: list[Disagreement] = []
    repeated = 0
    for traits in (LATEST, switched_off):
        async with fresh_cluster() as cluster:
            these, again = await play(cluster, [batch for batch in batches if batch.traits == traits], say)
        found += these
        repeated += again
    scripts = sum(len(batch.scripts) for batch in batches)
    operations = sum(1 for batch in batches for script in batch.scripts for one in script.operations if one is not None)
    deaths = sum(isinstance(event, Kill) for batch in batches for event in batch.weather)
    check(quick or scripts >= FEWEST, f"{scripts} scripts are fewer than {FEWEST}")
    return (
        Row(
            "scripts played on the model and on Kafka 4.3.1",
            scripts,
            "scripts",
            gate=None if quick else AtLeast(FEWEST),
        ),
        Row("scripts whose visible results differ", len(found), "scripts", gate=AtMost(0)),
        Row("operations in them, each compared", operations, "operations"),
        Row("brokers killed and brought back meanwhile", deaths, "brokers"),
        Row("scripts played again because this machine let a broker's session end", repeated, "scripts"),
        Row("wall time", time.monotonic() - began, "s"),
    )


METHOD = """\
Seeded scripts (alters to random lists, wrong ones too, re-targets, cancels, elections, new, grown and deleted topics,
throttle lists) run at once on the model cluster and on a real one with four brokers, 65 side by side on topics of their
own, while up to three brokers are killed and come back and the controller is restarted; two of the batches with
KIP-966 switched off. After every operation both come to rest and must show the same: Kafka's code for each thing named,
replicas in order, ISR, leader, leader epoch, eligible leaders and the list of moves. docs/simulation.md says more."""
BENCHMARK = Benchmark("reality", "The model cluster beside a real one", METHOD, run)
