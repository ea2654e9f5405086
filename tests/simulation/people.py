"""What people ask for, wisely or not: every command there is, duplicates, misplaced ones, and what is no command."""

from collections.abc import Callable
from random import Random
from typing import Any

from drover.cluster.throttle_lists import parse_rates
from drover.events.clusters import HoldRole
from drover.events.codec import encode_command
from drover.events.commands import (
    Alter,
    BalanceLeaders,
    Blacklist,
    BlacklistEntry,
    BrokerFailed,
    BrokerReturned,
    Cancel,
    ChangeLimits,
    Command,
    Demote,
    Freeze,
    HealCommand,
    HoldBroker,
    PartitionName,
    PartitionTarget,
    PausePlan,
    ReleaseBroker,
    Repair,
    Restore,
    RestoreThrottles,
    ResumePlan,
    Throttle,
    Unfreeze,
)
from drover.events.leftover_throttles import LeftoverRates
from drover.events.plans import Priority, Stepping
from drover.events.topics import shard_of
from drover.state.plans import PlanStatus
from tests.simulation.kinds import Arguments, Kind, a_broker, a_cluster
from tests.simulation.settings import PARTITIONS, TOPICS
from tests.simulation.world import World

# -- people: `fields` are the command's own; the id says when it was chosen, so that no two are alike


def command(world: World, kind: int, made: Command, shard: int | None = None, *, as_json: bool = False) -> None:
    """Send a command."""
    world.put(kind, encode_command(made, as_json=as_json), made.cluster, shard)


def _common(random: Random, world: World) -> dict[str, Any]:
    return {"id": f"c{len(world.sent)}", "cluster": a_cluster(random, world), "by": "ana", "reason": "because"}


def _plans(world: World, cluster: str, *, only_open: bool) -> list[str]:
    state = world.checker.folds[shard_of(cluster, world.settings.shards)].state.clusters.get(cluster)
    plans = {} if state is None else state.plans
    # The oldest are of no use: they have ended.
    return [name for name, plan in plans.items() if plan.status is PlanStatus.OPEN or not only_open][-6:]


def _choose_alter(random: Random, world: World) -> Arguments:
    fields = _common(random, world)
    keys = random.sample(PARTITIONS, random.choice((1, 1, 2, 3, 6)))
    brokers = range(1, world.settings.brokers + (random.random() < 0.1) + 1)
    targets: list[list[Any]] = [[*key, random.sample(brokers, random.choice((1, 2, 3, 3, 3, 3, 4)))] for key in keys]
    if random.random() < 0.1:
        targets[0][2] = None
    if random.random() < 0.2:
        fields["more"] = True
    if random.random() < 0.4:
        fields["throttle_bytes_per_second"] = random.choice((100_000, 250_000))
    if random.random() < 0.2:
        fields["stepping"] = random.choice(list(Stepping)).value
    if world.settings.rates.get("limits") and random.random() < 0.3:
        fields["priority"] = random.choice(list(Priority)).value
    if random.random() < 0.15:
        fields["queue"] = True
    if random.random() < 0.3 and (plans := _plans(world, fields["cluster"], only_open=True)):
        fields["plan"] = random.choice(plans)
    return targets, fields, random.random() < 0.3, random.randrange(2) if random.random() < 0.1 else None


def _alter(world: World, targets: list[list[Any]], fields: dict[str, Any], as_json: bool, shard: int | None) -> None:
    given = dict(fields)
    if "stepping" in given:
        given["stepping"] = Stepping(given["stepping"])
    if "priority" in given:
        given["priority"] = Priority(given["priority"])
    partitions = tuple(
        PartitionTarget(topic=topic, partition=number, replicas=None if replicas is None else tuple(replicas))
        for topic, number, replicas in targets
    )
    command(world, 0, Alter(partitions=partitions, **given), shard, as_json=as_json)


def _choose_cancel(random: Random, world: World) -> Arguments:
    fields: dict[str, Any] = {**_common(random, world), "mode": random.choice(("rollback", "rollback", "stop"))}
    plans = _plans(world, fields["cluster"], only_open=False)
    kind = random.choice(("partitions", "partitions", "topics", "plan", "all", "queued"))
    if kind == "partitions":
        fields["partitions"] = [list(key) for key in random.sample(PARTITIONS, 2)]
    elif kind == "topics":
        fields["topics"] = [random.choice(TOPICS)]
    elif kind == "queued":
        fields[kind] = f"c{random.randrange(len(world.sent) + 1)}"
    elif kind == "plan" and plans:
        fields["plan"] = random.choice(plans)
    else:
        fields["all"] = True
    return (fields,)


def _cancel(world: World, fields: dict[str, Any]) -> None:
    given = dict(fields)
    if "partitions" in given:
        given["partitions"] = tuple(PartitionName(topic, number) for topic, number in given["partitions"])
    if "topics" in given:
        given["topics"] = tuple(given["topics"])
    command(world, 1, Cancel(**given))


def _simple(kind: int, made: Callable[..., Command]) -> Callable[[World, dict[str, Any]], None]:
    return lambda world, fields: command(world, kind, made(**fields))


def _just(random: Random, world: World) -> Arguments:
    return (_common(random, world),)


def _choose_freeze(random: Random, world: World) -> Arguments:
    return ({**_common(random, world), "by": random.choice(("ana", "bob"))},)


def _choose_unfreeze(random: Random, world: World) -> Arguments:
    (fields,) = _choose_freeze(random, world)
    return ({**fields, "all": random.random() < 0.3},)


def _choose_throttle(random: Random, world: World) -> Arguments | None:
    fields = _common(random, world)
    plans = _plans(world, fields["cluster"], only_open=False)
    rate = random.choice((100_000, 250_000, 400_000))
    return ({**fields, "plan": random.choice(plans), "bytes_per_second": rate},) if plans else None


def _choose_any_throttle(random: Random, world: World) -> Arguments | None:
    """Choose the cluster's throttle, one that is taken away, or one that may rise."""
    (fields,) = _choose_throttle(random, world) or (None,)
    if fields is None:
        return None
    kind = random.choice(("cluster", "cluster", "clear", "clear-cluster", "rise"))
    if kind in {"cluster", "clear-cluster"}:
        del fields["plan"]
    if kind in {"clear", "clear-cluster"}:
        del fields["bytes_per_second"]
        fields["clear"] = True
    if kind == "rise":
        fields["may_rise_to"] = 2 * fields["bytes_per_second"]
    return (fields,)


def _choose_strays(random: Random, world: World) -> Arguments | None:
    """Choose rates of a broker that somebody sees, whoever has set them."""
    fields, broker = _common(random, world), a_broker(random, world)
    found = parse_rates(world.clusters[fields["cluster"]].model.brokers[broker].configs)
    rates = {"leader": found.leader_bytes_per_second, "follower": found.follower_bytes_per_second}
    if rates == {"leader": None, "follower": None}:
        return None
    return ({**fields, "brokers": [{"broker": broker, **rates}]},)


def _restore_throttles(world: World, fields: dict[str, Any]) -> None:
    brokers = tuple(LeftoverRates(**stray) for stray in fields["brokers"])
    command(world, 0, RestoreThrottles(**{**fields, "brokers": brokers}))


def _choose_blacklist(random: Random, world: World) -> Arguments:
    fields = {**_common(random, world), "brokers": sorted(random.sample(range(1, 6), random.randrange(3)))}
    if random.random() < 0.3:
        until_ms = world.now().wall_ms + random.choice((0, 3000, 20_000))
        fields["entries"] = [{"broker": a_broker(random, world), "until_ms": until_ms}]
    return (fields,)


def _blacklist(world: World, fields: dict[str, Any]) -> None:
    entries = tuple(BlacklistEntry(**entry) for entry in fields.get("entries", ()))
    command(world, 2, Blacklist(**{**fields, "brokers": tuple(fields["brokers"]), "entries": entries}))


def _choose_demote(random: Random, world: World) -> Arguments:
    fields = {**_common(random, world), "broker": a_broker(random, world)}
    if random.random() < 0.3:
        fields["topics"] = [random.choice(TOPICS)]
    if random.random() < 0.5:
        fields["for_ms"] = random.choice((1, 3000, 20_000))
    if random.random() < 0.3:
        fields["until_in_sync"] = True
    return (fields,)


def _choose_restore(random: Random, world: World) -> Arguments:
    state = world.checker.folds[0].state.clusters.get(name := a_cluster(random, world))
    listed = () if state is None else state.blacklist
    broker = random.choice(listed) if listed else a_broker(random, world)
    return ({**_common(random, world), "cluster": name, "broker": broker},)


def _of_topics(made: Callable[..., Command]) -> Callable[[World, dict[str, Any]], None]:
    def act(world: World, fields: dict[str, Any]) -> None:
        given = {**fields, "topics": tuple(fields["topics"])} if "topics" in fields else fields
        command(world, 2, made(**given))

    return act


def _choose_report(random: Random, world: World) -> Arguments:
    return ({**_common(random, world), "broker": a_broker(random, world), "at_ms": world.now().wall_ms},)


def _choose_heal(random: Random, world: World) -> Arguments:
    action = random.choice(("start", "start", "skip", "stop"))
    fields: dict[str, Any] = {**_common(random, world), "action": action}
    if action != "stop" or random.random() < 0.5:
        fields["broker"] = a_broker(random, world)
    if action == "stop" and random.random() < 0.5:
        fields["rollback"] = True
    return (fields,)


_LIMITS: tuple[tuple[str, tuple[Any, ...]], ...] = (
    ("max_partitions_in_flight", (1, 2, 4)),
    ("max_moves_per_broker", (1, 2, 5)),
    ("max_replicas_per_step", (1, 2, 3)),
    ("max_leader_movements", (1, 2, 1000)),
    ("max_incoming_per_broker", (1, 2, None)),
    ("max_outgoing_per_broker", (1, 2, None)),
    ("max_replica_copies_in_flight", (1, 3, None)),
    ("max_bytes_in_flight", (1, 500_000, None)),
    ("max_moves_per_rack", (1, 2, None)),
    ("stepping", ("grow", "swap", "single")),
    ("max_moves_per_broker", (0, "many")),
)


def _choose_limits(random: Random, world: World) -> Arguments:
    fields = _common(random, world)
    drawn = random.random()
    if drawn < 0.1:
        return ({**fields, "reset_all": True},)
    name, values = random.choice(_LIMITS)
    return ({**fields, "reset": [name]} if drawn < 0.25 else {**fields, "values": {name: random.choice(values)}},)


def _limits(world: World, fields: dict[str, Any]) -> None:
    command(world, 0, ChangeLimits(**{**fields, "reset": tuple(fields.get("reset", ()))}))


def _choose_plan(random: Random, world: World) -> Arguments | None:
    fields = _common(random, world)
    plans = _plans(world, fields["cluster"], only_open=True)
    return ({**fields, "plan": random.choice(plans)},) if plans else None


def _choose_release(random: Random, world: World) -> Arguments:
    return ({**_common(random, world), "broker": a_broker(random, world)},)


def _choose_hold(random: Random, world: World) -> Arguments:
    (fields,) = _choose_release(random, world)
    return ({**fields, "role": random.choice(list(HoldRole)).value},)


def _hold(world: World, fields: dict[str, Any]) -> None:
    command(world, 1, HoldBroker(**{**fields, "role": HoldRole(fields["role"])}))


def _choose_duplicate(random: Random, world: World) -> Arguments | None:
    return (random.randrange(len(world.sent)), random.randrange(2)) if world.sent else None


def _duplicate(world: World, number: int, shard: int) -> None:
    if world.sent:
        kind, payload = world.sent[number % len(world.sent)]
        world.commands.put(kind, shard % world.settings.shards, payload, world.now().wall_ms)


_MALFORMED = ("c1", "7b", "", f"{0:x}" * 2, b'{"type":"alter","id":"bad","cluster":"east"}'.hex(), b"{}".hex())


def _choose_malformed(random: Random, world: World) -> Arguments:
    return random.randrange(4), random.randrange(2), random.choice(_MALFORMED)


def _malformed(world: World, kind: int, shard: int, payload: str) -> None:
    world.commands.put(kind, shard % world.settings.shards, bytes.fromhex(payload), world.now().wall_ms)


PEOPLE = (
    Kind("alter", "people", 20, _choose_alter, _alter),
    Kind("cancel", "people", 10, _choose_cancel, _cancel),
    Kind("throttle", "people", 2, _choose_throttle, _simple(0, Throttle)),
    Kind("any-throttle", "throttles", 2, _choose_any_throttle, _simple(0, Throttle)),
    Kind("restore-throttles", "throttles", 1, _choose_strays, _restore_throttles),
    Kind("freeze", "people", 2, _choose_freeze, _simple(1, Freeze)),
    Kind("unfreeze", "people", 6, _choose_unfreeze, _simple(1, Unfreeze)),
    Kind("repair", "people", 1, _just, _simple(1, Repair)),
    Kind("blacklist", "people", 2, _choose_blacklist, _blacklist),
    Kind("demote", "people", 3, _choose_demote, _of_topics(Demote)),
    Kind("restore", "people", 3, _choose_restore, _of_topics(Restore)),
    Kind("balance", "people", 1, _just, _of_topics(BalanceLeaders)),
    Kind("broker-failed", "people", 1, _choose_report, _simple(3, BrokerFailed)),
    Kind("broker-returned", "people", 1, _choose_report, _simple(3, BrokerReturned)),
    Kind("heal", "healing", 1, _choose_heal, _simple(3, HealCommand)),
    Kind("limits", "limits", 3, _choose_limits, _limits),
    Kind("pause-plan", "limits", 1, _choose_plan, _simple(1, PausePlan)),
    Kind("resume-plan", "limits", 2, _choose_plan, _simple(1, ResumePlan)),
    Kind("hold-broker", "limits", 1, _choose_hold, _hold),
    Kind("release-broker", "limits", 2, _choose_release, _simple(1, ReleaseBroker)),
    Kind("duplicate", "people", 4, _choose_duplicate, _duplicate),
    Kind("malformed", "people", 2, _choose_malformed, _malformed),
)
