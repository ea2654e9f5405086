"""What goes wrong: workers, brokers, the network, other people's tools, and thieves of shards."""

from collections.abc import Callable
from random import Random

from drover.events.codec import encode_record
from drover.events.partitions import TopicPartition
from drover.events.records import SCHEMA_VERSION, Acquire
from drover.events.topics import shard_of
from tests.simulation.cluster import Loss
from tests.simulation.kinds import Arguments, Kind, a_broker, a_cluster, a_shard, a_worker
from tests.simulation.settings import PARTITIONS, TOPICS
from tests.simulation.world import World


def turn(world: World, worker: int, shard: int, points: int | None = None) -> None:
    found = a_shard(world, worker, shard)
    if found is not None and found.barrier is not None:
        found.enter(points)
    elif found is not None and (found.awake or found.loop is not None):
        found.turn(points)


# -- workers


def _choose_worker(random: Random, world: World) -> Arguments | None:
    return (random.randrange(len(world.workers)),) if world.workers else None


# How long what a dead worker had put on the wire stays there.
_DELAYS_MS = (0, 0, 1000, 3500)


def _choose_crash(random: Random, world: World) -> Arguments | None:
    if not world.workers:
        return None
    return random.randrange(len(world.workers)), random.random() < 0.5, random.choice(_DELAYS_MS)


def _crash(world: World, number: int, joins: object, delay_ms: int = 0) -> None:
    worker = a_worker(world, number)
    if worker is not None:
        world.crash(worker, delay_ms)
    if joins:
        # A successor under the same name: the group need not wait for the session.
        world.start_worker()
        world.rebalance()


def _choose_start(random: Random, world: World) -> Arguments | None:
    return () if len(world.workers) < world.settings.workers else None


def _start(world: World) -> None:
    if len(world.workers) < world.settings.workers:
        world.start_worker()
        world.rebalance()


def _pause(world: World, number: int) -> None:
    worker = a_worker(world, number)
    if worker is not None:
        worker.paused = True


def _resume(world: World, number: int) -> None:
    worker = a_worker(world, number)
    if worker is not None and worker.paused:
        world.resume(worker)


def _choose_moment(random: Random, world: World) -> Arguments | None:
    owned = [
        (number, shard.number)
        for number, worker in enumerate(world.workers)
        for shard in worker.shards
        if shard.assigned
    ]
    if not owned:
        return None
    return *random.choice(owned), random.choice((1, 1, 2, 2, 3, 4)), random.choice(_DELAYS_MS)


def _pause_in(world: World, number: int, shard: int, points: int, _delay_ms: int) -> None:
    """Stop a worker in the middle of a turn, with its appends and calls where they are."""
    turn(world, number, shard, points)
    _pause(world, number)


def _crash_in(world: World, number: int, shard: int, points: int, delay_ms: int) -> None:
    turn(world, number, shard, points)
    _crash(world, number, joins=True, delay_ms=delay_ms)


def _choose_wire(_random: Random, world: World) -> Arguments | None:
    sent = [call.shard.worker for call in world.calls if call.is_on_the_wire and not call.is_orphan]
    return (world.workers.index(sent[0]), 3500) if sent else None


def _crash_calling(world: World, number: int, delay_ms: int) -> None:
    """Kill a worker whose requests are on their way, and let them arrive just before their deadline."""
    _crash(world, number, joins=True, delay_ms=delay_ms)


def _rebalance(world: World) -> None:
    world.rebalance()


def _none(_random: Random, _world: World) -> Arguments:
    return ()


WORKERS = (
    Kind("crash", "workers", 4, _choose_crash, _crash),
    Kind("start", "workers", 6, _choose_start, _start),
    Kind("pause", "workers", 3, _choose_worker, _pause),
    Kind("pause-in", "workers", 3, _choose_moment, _pause_in),
    Kind("crash-in", "workers", 4, _choose_moment, _crash_in),
    Kind("crash-calling", "workers", 12, _choose_wire, _crash_calling),
    Kind("resume", "workers", 6, _choose_worker, _resume),
    Kind("rebalance", "workers", 1, _none, _rebalance),
)


# -- brokers, network, others, log


def _on(method: str) -> Callable[..., None]:
    return lambda world, cluster, *arguments: getattr(world.clusters[cluster], method)(*arguments)


def _choose_broker(random: Random, world: World) -> Arguments:
    return a_cluster(random, world), a_broker(random, world)


def _choose_dead_broker(random: Random, world: World) -> Arguments | None:
    name = a_cluster(random, world)
    cluster = world.clusters[name]
    since_ms = cluster.now_ms - world.settings.outage_ms
    dead = [
        broker
        for broker, state in cluster.model.brokers.items()
        if not state.alive and cluster.died_ms[broker] <= since_ms
    ]
    return (name, random.choice(dead)) if dead else None


def _choose_loss(random: Random, world: World) -> Arguments:
    return a_cluster(random, world), random.choice(list(Loss)).value


def _lose(world: World, cluster: str, loss: str) -> None:
    world.clusters[cluster].wire.loss = Loss(loss)


# Which requests a lagging broker answers: all of them, or some in turn.
_STALE_REPLIES = ([True], [True, False], [False, True, True], [True, False, False])


def _choose_delay(random: Random, world: World) -> Arguments | None:
    return (random.randrange(len(world.calls)), random.choice((500, 2000, 3500, 5000))) if world.calls else None


def _delay(world: World, number: int, delay_ms: int) -> None:
    if world.calls:
        world.calls[number % len(world.calls)].delay(delay_ms)


def _choose_cluster(random: Random, world: World) -> Arguments:
    return (a_cluster(random, world),)


def _reach(world: World, cluster: str, *, unreachable: bool) -> None:
    world.clusters[cluster].wire.unreachable = unreachable


def _answers(world: World, cluster: str, *, other: bool) -> None:
    state = world.checker.folds[shard_of(cluster, world.settings.shards)].state.clusters.get(cluster)
    if state is not None and state.kafka_cluster_id is not None:
        world.clusters[cluster].model.kafka_cluster_id = "another" if other else cluster


def _choose_stale(random: Random, world: World) -> Arguments:
    return a_cluster(random, world), random.choice(_STALE_REPLIES)


def _choose_topic(random: Random, world: World) -> Arguments:
    return a_cluster(random, world), random.choice(TOPICS)


def _choose_move(random: Random, world: World) -> Arguments:
    key = random.choice(PARTITIONS)
    return a_cluster(random, world), *key, random.sample(range(1, world.settings.brokers + 1), 3)


def _choose_undo(random: Random, world: World) -> Arguments | None:
    name = a_cluster(random, world)
    moving = sorted(world.clusters[name].model.moves())
    return (name, *random.choice(moving), None) if moving else None


def _move(world: World, cluster: str, topic: str, partition: int, replicas: list[int] | None) -> None:
    world.clusters[cluster].alter(TopicPartition(topic, partition), replicas)


def _choose_edit(random: Random, world: World) -> Arguments:
    return a_cluster(random, world), a_broker(random, world), random.choice((1_000_000, 2_000_000))


def _choose_shard(random: Random, world: World) -> Arguments:
    return (random.randrange(world.settings.shards),)


def _steal(world: World, shard: int, *, behind: int = 0) -> None:
    """Somebody outside the group takes the shard and does nothing with it, or tries with an epoch of the past."""
    number = shard % world.settings.shards
    epoch = world.checker.folds[number].epoch + 1 - behind
    token = b"thief-%06d" % len(world.log.shards[number])
    record = Acquire(schema=SCHEMA_VERSION, epoch=epoch, token=token, owner="thief", group="thieves", generation=1)
    world.log.append(number, encode_record(record))


TROUBLE = (
    Kind("stop-broker", "brokers", 5, _choose_broker, _on("stop_broker")),
    Kind("start-broker", "brokers", 7, _choose_dead_broker, _on("start_broker")),
    Kind("unregister", "brokers", 1, _choose_dead_broker, _on("unregister")),
    Kind("lose", "network", 6, _choose_loss, _lose),
    Kind("delay", "network", 8, _choose_delay, _delay),
    Kind("out-of-reach", "network", 2, _choose_cluster, lambda world, name: _reach(world, name, unreachable=True)),
    Kind("within-reach", "network", 4, _choose_cluster, lambda world, name: _reach(world, name, unreachable=False)),
    Kind("stale", "network", 2, _choose_stale, _on("show_stale")),
    Kind("another-answers", "network", 1, _choose_cluster, lambda world, name: _answers(world, name, other=True)),
    Kind("the-right-answers", "network", 3, _choose_cluster, lambda world, name: _answers(world, name, other=False)),
    Kind("move", "others", 3, _choose_move, _move),
    Kind("undo", "others", 3, _choose_undo, _move),
    Kind("delete", "others", 1, _choose_topic, _on("delete")),
    Kind("remake", "others", 2, _choose_topic, _on("remake")),
    Kind("create", "others", 3, _choose_topic, _on("create")),
    Kind("edit-rate", "others", 1, _choose_edit, _on("edit_rate")),
    Kind("edit-both-rates", "throttles", 1, _choose_edit, _on("edit_both_rates")),
    Kind("delete-rates", "throttles", 2, _choose_cluster, _on("delete_rates")),
    Kind("steal", "log", 2, _choose_shard, _steal),
    Kind("steal-late", "log", 1, _choose_shard, lambda world, shard: _steal(world, shard, behind=1)),
)
