"""Observe a cluster and carry out effects for a shard core: make the calls, and return their results as inputs.

This module retries no call, because the core decides what follows.
"""

import asyncio
import contextlib
import functools
from collections.abc import Callable, Iterable, Mapping, Sequence

from drover.cluster.port import (
    AddThrottledReplicas,
    AlterRequest,
    ClusterDriver,
    RemoveThrottledReplicas,
    SetBrokerRates,
    ThrottleChange,
)
from drover.errors import ClusterAccessError, ClusterError, ClusterUnavailableError, OutcomeUnknownError
from drover.facts import UNKNOWN_SERVER_ERROR, BrokerRates, CallResult, ThrottledReplicas
from drover.planner.rules import NO_RULES, Rules
from drover.reconcile.contract import Urgency
from drover.reconcile.healing.heal_plan import plan_heal
from drover.reconcile.messages import (
    AlterPartitions,
    CallEnded,
    ChangeThrottles,
    Effect,
    ElectLeaders,
    HealPlanMade,
    Identified,
    Input,
    InventoryTaken,
    LeadersElected,
    PlanHeal,
    ReadThrottles,
    TakeInventory,
    ThrottlesChanged,
    ThrottlesRead,
    Timestamp,
)
from drover.shard.core import ShardCore
from drover.threads import in_daemon_thread

Clock = Callable[[], Timestamp]


async def look(driver: ClusterDriver, core: ShardCore, cluster: str, clock: Clock) -> Input | None:
    """Observe a cluster as closely as the core wants now; None if there is nothing to report.

    If the core wants a survey of all partitions, it replaces the observation. The List that shows which partitions to
    observe is also the observation's first one. On an idle cluster, only the moves of others are listed. Raises the
    exceptions of the port's reading calls.
    """
    if core.cluster(cluster).attention(clock()).survey:
        core.cluster(cluster).survey_begins(clock())
        return await driver.survey()
    listing = await driver.list_moves()
    attention = core.cluster(cluster).attention(clock(), listing.moves)
    if attention.partitions:
        return await driver.observe(attention.partitions, since=listing, with_min_isr=True)
    if attention.urgency is Urgency.BUSY and not attention.brokers:
        return None
    identity = await driver.identify()
    live = tuple(sorted(identity.racks))
    return Identified(cluster, identity.kafka_cluster_id, live, clock().monotonic_ms, listing.moves)


async def carry_out(driver: ClusterDriver, effect: Effect, clock: Clock, rules: Rules = NO_RULES) -> Input:
    """Carry out an effect and return its result; the port's errors become part of the result.

    A heal is planned by the `rules` of the cluster.
    """
    match effect:
        case AlterPartitions():
            return await _alter(driver, effect, clock)
        case ElectLeaders():
            return await _elect(driver, effect, clock)
        case ReadThrottles():
            return await _read_throttles(driver, effect, clock)
        case ChangeThrottles():
            return await _change_throttles(driver, effect, clock)
        case TakeInventory():
            return await _take_inventory(driver, effect, clock)
        case PlanHeal():
            # In a thread, because blocking the loop for seconds would cost the worker its membership; in a daemon
            # thread, because a worker that stops must not wait for the plan.
            planning = functools.partial(plan_heal, effect.inventory, effect.to_heal, effect.disk_limit_percent, rules)
            plan, _thread = in_daemon_thread("heal-plan", planning)
            return HealPlanMade(effect.cluster, effect.to_heal, await plan)


def has_answer(ended: Input) -> bool:
    """Whether the cluster answered; missing rights to read count as no answer."""
    match ended:
        case CallEnded() | LeadersElected():
            return ended.results is not None
        case ThrottlesRead() | ThrottlesChanged():
            return bool(ended.brokers or ended.topics)
        case InventoryTaken():
            return ended.inventory is not None
        case _:
            return True


def result_of(ended: Input) -> str:
    """Return the result of a call: accepted, rejected (at least in part), lapsed (never sent), or lost (unknown)."""
    match ended:
        case CallEnded(results=None):
            return "lost" if ended.lost else "lapsed"
        case CallEnded():
            return _judged((ended.results or {}).values())
        case ThrottlesRead() if ended.refused_brokers or ended.refused_topics:
            return "rejected"
        case ThrottlesChanged() if has_answer(ended):
            return _judged((*ended.brokers.values(), *ended.topics.values()))
        case _:
            return "accepted" if has_answer(ended) else "lost"


def _judged(results: Iterable[CallResult]) -> str:
    return "accepted" if all(result.accepted for result in results) else "rejected"


async def _alter(driver: ClusterDriver, effect: AlterPartitions, clock: Clock) -> CallEnded:
    partitions = tuple(effect.requests)
    if clock().monotonic_ms > effect.start_by_ms:
        detail = "the call could not be started within 1 s of its intent"
        return CallEnded(effect.cluster, partitions, clock().monotonic_ms, None, detail=detail)
    try:
        results = await driver.alter([AlterRequest(key, replicas) for key, replicas in effect.requests.items()])
    except ClusterUnavailableError as error:
        return CallEnded(effect.cluster, partitions, clock().monotonic_ms, None, detail=str(error))
    except OutcomeUnknownError as error:
        return CallEnded(effect.cluster, partitions, clock().monotonic_ms, None, lost=True, detail=str(error))
    return CallEnded(effect.cluster, partitions, clock().monotonic_ms, results)


async def _elect(driver: ClusterDriver, effect: ElectLeaders, clock: Clock) -> LeadersElected:
    partitions = effect.partitions
    if effect.start_by_ms < clock().monotonic_ms:
        detail = "the call could not be started within 1 s of its intent"
        return LeadersElected(effect.cluster, partitions, clock().monotonic_ms, None, detail=detail)
    try:
        results = await driver.elect_leaders(partitions)
    except ClusterUnavailableError as error:
        return LeadersElected(effect.cluster, partitions, clock().monotonic_ms, None, detail=str(error))
    except OutcomeUnknownError as error:
        return LeadersElected(effect.cluster, partitions, clock().monotonic_ms, None, lost=True, detail=str(error))
    return LeadersElected(effect.cluster, partitions, clock().monotonic_ms, results)


async def _read_throttles(driver: ClusterDriver, effect: ReadThrottles, clock: Clock) -> ThrottlesRead:
    rates: Mapping[int, BrokerRates] = {}
    lists_by_topic: dict[str, ThrottledReplicas | None] = {}
    refused_brokers: dict[int, CallResult] = {}
    refused_topics: dict[str, CallResult] = {}
    with contextlib.suppress(ClusterError):
        try:
            rates = await driver.broker_rates(effect.brokers) if effect.brokers else {}
        except ClusterAccessError as refusal:
            refused_brokers = dict.fromkeys(effect.brokers, _refusal(refusal))
        try:
            lists = await driver.throttled_replicas(effect.topics) if effect.topics else {}
            lists_by_topic = {topic: lists.get(topic) for topic in effect.topics}
        except ClusterAccessError as refusal:
            refused_topics = dict.fromkeys(effect.topics, _refusal(refusal))
    return ThrottlesRead(effect.cluster, clock().monotonic_ms, rates, lists_by_topic, refused_brokers, refused_topics)


def _refusal(error: ClusterAccessError) -> CallResult:
    return CallResult(UNKNOWN_SERVER_ERROR if error.code is None else error.code, str(error))


async def _take_inventory(driver: ClusterDriver, effect: TakeInventory, clock: Clock) -> InventoryTaken:
    started_ms = clock().monotonic_ms
    try:
        inventory = await driver.inventory()
    except ClusterError:
        return InventoryTaken(effect.cluster, started_ms, None)
    return InventoryTaken(effect.cluster, started_ms, inventory)


async def _change_throttles(driver: ClusterDriver, effect: ChangeThrottles, clock: Clock) -> ThrottlesChanged:
    """Make all changes concurrently, so that a hanging broker delays no other; start none after the deadline."""
    brokers: dict[int, CallResult] = {}
    topics: dict[str, CallResult] = {}
    if clock().monotonic_ms <= effect.start_by_ms:
        rates = [_change(driver, [SetBrokerRates(broker, wanted)]) for broker, wanted in effect.rates.items()]
        lists = [_change(driver, _list_changes(topic, effect)) for topic in effect.remove]
        answers = await asyncio.gather(*rates, *lists)
        named = [*effect.rates, *effect.remove]
        answered = {name: answer for name, answer in zip(named, answers, strict=True) if answer is not None}
        brokers = {broker: answered[broker] for broker in effect.rates if broker in answered}
        topics = {topic: answered[topic] for topic in effect.remove if topic in answered}
    return ThrottlesChanged(effect.cluster, clock().monotonic_ms, brokers, topics)


def _list_changes(topic: str, effect: ChangeThrottles) -> Sequence[ThrottleChange]:
    """Return the changes of a topic's lists; removals come first, because a list may be nearly full."""
    changes = (
        RemoveThrottledReplicas(topic, effect.remove[topic], effect.kept[topic]),
        AddThrottledReplicas(topic, effect.add[topic]),
    )
    return [change for change in changes if change.entries.leader or change.entries.follower]


async def _change(driver: ClusterDriver, changes: Sequence[ThrottleChange]) -> CallResult | None:
    """Make the changes of one resource in one call, so that they share its time limit.

    Returns the first refusal, or success; None if the outcome is unknown, after which the changes are made again.
    """
    if not changes:
        return CallResult(0)
    try:
        answers = await driver.change_throttles(changes)
    except ClusterError:
        return None
    return next((answer for answer in answers.values() if not answer.accepted), CallResult(0))
