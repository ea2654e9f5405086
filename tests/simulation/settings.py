"""What one seed fixes before its first step: how large the world is, and how often what happens in it (swarm)."""

from random import Random

from msgspec import Struct
from msgspec.structs import replace

from drover.events.clusters import Budgets
from drover.events.healing import HealingLimits
from drover.events.partitions import TopicPartition
from drover.events.plans import Stepping
from drover.events.traits import Traits
from drover.state.scheduling import Limits
from drover.traits import LATEST, known_traits

# Where two shards are, the first lives in shard 0 and the second in shard 1 (see events.topics.shard_of).
CLUSTERS = ("east", "west")
TOPICS = ("orders", "payments")
PARTITIONS_PER_TOPIC = 3
ZOOKEEPER_MODE = "ZooKeeper mode"
WALL_START_MS = 1_700_000_000_000


class Settings(Struct, frozen=True, kw_only=True):
    """One world. `rates` are weights of the kinds of things that happen; zero switches a kind off.

    `ingest_bytes_per_second` is what producers write to each partition, all the time. `kafka` is the release that the
    model clusters mimic, in ZooKeeper mode if that is what it is called.
    """

    shards: int = 1
    clusters: int = 1
    workers: int = 2
    brokers: int = 6
    max_partitions_in_flight: int = 1250
    max_moves_per_broker: int = 5
    max_replicas_per_step: int = 1
    repairs_by_itself: bool = False
    stepping: Stepping = Stepping.GROW
    copy_bytes_per_second: int | None = None
    session_timeout_ms: int = 0
    partition_bytes: int = 300_000
    ingest_bytes_per_second: int = 0
    min_isr: int = 1
    heals_brokers: bool = True
    healing: HealingLimits | None = None
    max_leader_movements: int = 1000
    lazy_leadership: bool = False
    balances_after_return: bool = False
    leader_rebalance_ms: int | None = None
    budgets: Budgets = Budgets()
    adapts_to_health: bool = False
    kafka: str = LATEST.kafka
    rates: dict[str, int] = {}

    @property
    def limits(self) -> Limits:
        """The limits as the workers are configured with them."""
        return Limits(
            self.max_partitions_in_flight,
            self.max_moves_per_broker,
            self.max_replicas_per_step,
            self.repairs_by_itself,
            self.stepping,
            self.healing,
            self.max_leader_movements,
            self.lazy_leadership,
            self.balances_after_return,
            self.budgets,
            self.adapts_to_health,
        )

    @property
    def traits(self) -> Traits:
        """The traits of the model clusters."""
        if self.kafka == LATEST.kafka:
            return LATEST
        return known_traits(
            "3.9" if self.kafka == ZOOKEEPER_MODE else self.kafka, zookeeper_mode=self.kafka == ZOOKEEPER_MODE
        )

    @property
    def outage_ms(self) -> int:
        """How long a dead broker stays so at least: long enough to be healed, except where brokers shall flap."""
        return 0 if self.healing is None or self.healing.flapping_returns == 1 else 12_000

    @property
    def names(self) -> tuple[str, ...]:
        """The clusters of this world."""
        return CLUSTERS[: self.clusters]


PARTITIONS = tuple(TopicPartition(topic, number) for topic in TOPICS for number in range(PARTITIONS_PER_TOPIC))


def drawn(random: Random) -> Settings:
    """Draw a world: sizes, limits and the rate of every kind of trouble, some of them zero."""
    shards, clusters = random.choice([(1, 1), (1, 1), (1, 1), (1, 2), (2, 2)])
    settings = Settings(
        shards=shards,
        clusters=clusters,
        workers=random.choice([2, 2, 3]),
        max_partitions_in_flight=random.choice([2, 4, 1250]),
        max_moves_per_broker=random.choice([1, 2, 5]),
        max_replicas_per_step=random.choice([1, 1, 2]),
        repairs_by_itself=random.choice([False, True]),
        stepping=random.choice([Stepping.GROW, Stepping.SWAP, Stepping.SWAP, Stepping.SINGLE]),
        copy_bytes_per_second=random.choice([None, 400_000]),
        session_timeout_ms=random.choice([0, 700]),
        min_isr=random.choice([1, 2]),
        heals_brokers=random.random() < 0.8,
        rates={
            "people": random.choice([3, 6, 10]),
            "workers": random.choice([0, 1, 2, 4]),
            "brokers": random.choice([0, 1, 2, 3]),
            "network": random.choice([0, 1, 2, 3]),
            "others": random.choice([0, 0, 1, 2]),
            "log": random.choice([0, 1, 2]),
            "healing": 0,
            "throttles": 0,
        },
        max_leader_movements=random.choice([1, 2, 1000]),
        lazy_leadership=random.random() < 0.3,
        balances_after_return=random.random() < 0.3,
        leader_rebalance_ms=random.choice([None, 5000]),
    )
    # Its own chance, so that worlds without it stay as they were.
    apart = Random(repr(settings))
    if apart.random() < 0.4:
        settings = _with_healing(apart, settings)
    if apart.random() < 0.3:
        settings = _with_throttles_of_others(apart, settings)
    if apart.random() < 0.3:
        settings = _with_budgets(apart, settings)
    if apart.random() < 0.2:
        settings = replace(settings, kafka=apart.choice(["3.7", "3.9", ZOOKEEPER_MODE]))
    if apart.random() < 0.3:
        settings = replace(settings, adapts_to_health=True)
    return settings


def _with_throttles_of_others(random: Random, settings: Settings) -> Settings:
    """Let others change throttles while moves go on for so long that it is noticed."""
    rates = {**settings.rates, "throttles": random.choice([1, 2])}
    return replace(settings, partition_bytes=1_500_000, copy_bytes_per_second=400_000, rates=rates)


def _with_budgets(random: Random, settings: Settings) -> Settings:
    """Bound what is in flight tightly, and let people change that in the middle."""
    budgets = Budgets(
        max_incoming_per_broker=random.choice([None, 1, 2]),
        max_outgoing_per_broker=random.choice([None, 1, 2]),
        max_replica_copies_in_flight=random.choice([None, 1, 2, 4]),
        max_bytes_in_flight=random.choice([None, 1, 400_000, 700_000]),
    )
    settings = replace(settings, budgets=budgets, rates={**settings.rates, "limits": random.choice([0, 1, 1])})
    # Its own chance, so that worlds without it stay as they were.
    between_racks = Random(f"racks of {settings!r}").choice([None, None, 1, 2])
    return replace(settings, budgets=replace(settings.budgets, max_moves_per_rack=between_racks))


def _with_healing(random: Random, settings: Settings) -> Settings:
    """Let brokers be healed so soon that it happens in the few seconds that a seed has."""
    healing = HealingLimits(
        failure_interval_ms=random.choice([-1, 0, 0, 1500, 1500, 4000]),
        alarm_ms=random.choice([-1, 1000]),
        chunk_partitions=random.choice([1, 2, 10]),
        mass_failure_brokers=random.choice([1, 2, 2, 3]),
        max_bytes_per_day=random.choice([None, None, 900_000]),
        flapping_returns=random.choice([1, 3, 3]),
        flapping_window_ms=10_000,
        rolls_back_on_return=random.choice([False, True]),
        throttle_bytes_per_second=random.choice([None, 250_000]),
    )
    # What people move is not healed: most of these worlds are quieter, so that there is something to heal.
    people = random.choice([1, 1, 2, settings.rates["people"]])
    rates = {**settings.rates, "people": people, "brokers": max(4, settings.rates["brokers"]), "healing": 1}
    return replace(settings, healing=healing, rates=rates)
