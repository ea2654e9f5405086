"""The recorder's scripts on every version of Kafka that Drover is proven on."""

from bench.results import AtLeast, AtMost, Benchmark, Row, say
from tests.versions import EVERY
from tests.versions.recorder import SCRIPTS, play_on

FEWEST = 100


async def run(*, quick: bool) -> tuple[Row, ...]:
    """Play the scripts on one version after the other."""
    rows: list[Row] = []
    for version in EVERY[-1:] if quick else EVERY:
        played = await play_on(
            version.kafka, zookeeper_mode=version.zookeeper_mode, scripts=4 if quick else SCRIPTS, say=say
        )
        gate = None if quick else AtLeast(FEWEST)
        rows += [
            Row(f"scripts played on {version}", played.scripts, "scripts", gate=gate),
            Row(f"of them with other results than the model of {version}", played.disagreements, "scripts",
                gate=AtMost(0)),
        ]  # fmt: skip
    return tuple(rows)


METHOD = f"""\
{SCRIPTS} seeded scripts as in `reality`, on each version, beside a model with the traits of that version. In
ZooKeeper mode the leader epoch is not compared, since every request to a replica may raise it, and a new controller is
elected because the old one's node in ZooKeeper is deleted. The model knows no eligible leaders on
versions that have none."""
BENCHMARK = Benchmark("versions", "The model beside other versions of Kafka", METHOD, run)
