"""Read topic and broker configs of a real cluster, and change throttles."""

import asyncio
from collections.abc import Collection, Mapping, Sequence

from drover.cluster import messages
from drover.cluster.messages import BROKER_RESOURCE, TOPIC_RESOURCE, DescribedConfigs
from drover.cluster.port import SetBrokerRates, ThrottleChange
from drover.cluster.throttle_lists import (
    FOLLOWER_RATE,
    FOLLOWER_REPLICAS,
    LEADER_RATE,
    LEADER_REPLICAS,
    ConfigOperation,
    has_taken_effect,
    left_out,
    list_operations,
    parse_rates,
    parse_throttled,
    rate_operations,
    waves,
)
from drover.cluster.wire import Connection, Deadline
from drover.errors import ClusterAccessError, ClusterUnavailableError, OutcomeUnknownError
from drover.facts import (
    NONE,
    NOT_CONTROLLER,
    REQUEST_TIMED_OUT,
    UNKNOWN_SERVER_ERROR,
    UNKNOWN_TOPIC_OR_PARTITION,
    BrokerRates,
    CallResult,
)

BROKER_NOT_AVAILABLE = 8
INVALID_REQUEST = 42
NOT_AUTHORIZED = frozenset({29, 31})  # TOPIC_AUTHORIZATION_FAILED, CLUSTER_AUTHORIZATION_FAILED
OUTCOME_UNKNOWN_CODES = frozenset({UNKNOWN_SERVER_ERROR, REQUEST_TIMED_OUT, NOT_CONTROLLER})
LIST_KEYS = (LEADER_REPLICAS, FOLLOWER_REPLICAS)
RATE_KEYS = (LEADER_RATE, FOLLOWER_RATE)

_VISIBLE_WITHIN_S = 1.0
_LOOK_AGAIN_S = 0.02

Results = dict[ThrottleChange, CallResult]


async def topic_configs(
    connection: Connection, topics: Collection[str], keys: Sequence[str] | None, deadline: Deadline
) -> dict[str, DescribedConfigs]:
    """Read configs of the topics that exist; None reads every key.

    Raises:
        ClusterAccessError: an ACL is missing.
        ClusterUnavailableError: no answer, or Kafka refuses to return a topic's configs.
    """
    if not topics:
        return {}
    response = await connection.send(messages.configs_request(TOPIC_RESOURCE, topics, keys), deadline)
    existing: dict[str, DescribedConfigs] = {}
    for name, described in messages.read_configs(response).items():
        if described.result.code == UNKNOWN_TOPIC_OR_PARTITION:
            continue
        if described.result.code in NOT_AUTHORIZED:
            raise _not_allowed(f"may not read the configs of topic {name}", described.result)
        if not described.result.accepted:
            raise ClusterUnavailableError(
                f"the configs of topic {name} cannot be read: Kafka error {described.result.code}"
                f" ({described.result.message})"
            )
        existing[name] = described
    return existing


async def broker_rates(connection: Connection, brokers: Collection[int], deadline: Deadline) -> dict[int, BrokerRates]:
    """Read the rates set on each broker that answers; only a broker itself can return its dynamic configs.

    Raises:
        ClusterAccessError: an ACL is missing.
    """

    async def one(broker: int) -> BrokerRates | None:
        request = messages.configs_request(BROKER_RESOURCE, [str(broker)], RATE_KEYS)
        try:
            response = await connection.send(request, deadline, broker=broker)
        except ClusterUnavailableError:
            return None  # the broker has just died; dead brokers are left out
        described = messages.read_configs(response)[str(broker)]
        if _is_of_another_broker(described.result):
            await connection.refresh(deadline)
            return None
        if described.result.code in NOT_AUTHORIZED:  # a missing ACL must not look like a dead broker
            raise _not_allowed(f"may not read the configs of broker {broker}", described.result)
        return parse_rates(described.own) if described.result.accepted else None

    ordered = sorted(set(brokers))
    # Wait for all of them, so that no call is under way when a caller closes the driver after a refusal.
    answers = await asyncio.gather(*(one(broker) for broker in ordered), return_exceptions=True)
    rates: dict[int, BrokerRates] = {}
    for broker, answer in zip(ordered, answers, strict=True):
        if isinstance(answer, BaseException):
            raise answer
        if answer is not None:
            rates[broker] = answer
    return rates


def _is_of_another_broker(answer: CallResult) -> bool:
    """Whether another broker has answered, which now has the address of the broker that was asked."""
    return answer.code == INVALID_REQUEST and "nexpected broker id" in (answer.message or "")


def _not_allowed(action: str, answer: CallResult) -> ClusterAccessError:
    return ClusterAccessError(
        f"Drover {action}: Kafka error {answer.code} ({answer.message}); `drover acls` prints the ACLs that are needed",
        answer.code,
    )


async def change_throttles(
    connection: Connection, changes: Sequence[ThrottleChange], live_brokers: Collection[int], deadline: Deadline
) -> Results:
    """Make throttle changes in order; changes of different resources are sent together.

    Once a change of a resource is refused, its later changes are not made and get the same answer.

    Raises:
        ClusterUnavailableError: no change was made.
        OutcomeUnknownError: a change may have been made; all changes are idempotent, so read the configs or repeat.
    """
    results: Results = {}
    for wave in waves(changes):
        results |= left_out(wave, results)
        rates = [change for change in wave if change not in results and isinstance(change, SetBrokerRates)]
        lists = [change for change in wave if change not in results and not isinstance(change, SetBrokerRates)]
        parts = [_set_rates(connection, change, live_brokers, deadline) for change in rates]
        answers = await asyncio.gather(*parts, _change_lists(connection, lists, deadline), return_exceptions=True)
        problems: list[ClusterUnavailableError | OutcomeUnknownError] = []
        for answer in answers:
            if isinstance(answer, ClusterUnavailableError | OutcomeUnknownError):
                problems.append(answer)
            elif isinstance(answer, BaseException):
                raise answer
            else:
                results |= answer
        _raise_what_is_known(problems, results)
    return results


def _raise_what_is_known(problems: Sequence[ClusterUnavailableError | OutcomeUnknownError], results: Results) -> None:
    """Raise the error of a wave with problems; if one of its changes took effect, the outcome is unknown."""
    problems = [*problems, *(_unknown(change, answer) for change, answer in results.items() if _is_unknown(answer))]
    if not problems:
        return
    anything_done = any(answer.accepted for answer in results.values())
    unknown = next((problem for problem in problems if isinstance(problem, OutcomeUnknownError)), None)
    if unknown is not None or anything_done:
        raise OutcomeUnknownError(str(unknown or problems[0])) from problems[0]
    raise problems[0]


def _is_unknown(answer: CallResult) -> bool:
    return answer.code in OUTCOME_UNKNOWN_CODES


def _unknown(change: ThrottleChange, answer: CallResult) -> OutcomeUnknownError:
    return OutcomeUnknownError(
        f"{change}: Kafka error {answer.code} ({answer.message}); read the config before relying on it"
    )


async def _set_rates(
    connection: Connection, change: SetBrokerRates, live_brokers: Collection[int], deadline: Deadline
) -> Results:
    broker = str(change.broker)
    request = messages.alter_configs_request(BROKER_RESOURCE, {broker: rate_operations(change.rates)})
    if change.broker not in live_brokers:
        return {
            change: CallResult(
                BROKER_NOT_AVAILABLE, f"broker {broker} is not alive, and only the broker itself accepts its rates"
            )
        }
    try:
        response = await connection.send(request, deadline, broker=change.broker, changes=True)
    except ClusterUnavailableError as problem:
        return {change: CallResult(BROKER_NOT_AVAILABLE, str(problem))}  # the broker has just died; the others go on
    answer = messages.read_alter_configs(response)[broker]
    if _is_of_another_broker(answer):
        await connection.refresh(deadline)
        return {change: CallResult(BROKER_NOT_AVAILABLE, f"another broker answers in its place: {answer.message}")}
    if answer.accepted:
        await _until_rates_show(connection, change, deadline)
    return {change: answer}


async def _until_rates_show(connection: Connection, change: SetBrokerRates, deadline: Deadline) -> None:
    """Wait briefly until the broker shows the rates that the controller has accepted; see `_until_visible`."""
    look_until = _look_until(deadline)
    while look_until.left_ms() > 0:
        shown = await broker_rates(connection, (change.broker,), deadline)
        if shown.get(change.broker, change.rates) == change.rates:
            return
        await asyncio.sleep(_LOOK_AGAIN_S)


async def _change_lists(connection: Connection, changes: Sequence[ThrottleChange], deadline: Deadline) -> Results:
    """Change the lists of several topics, each named once, in one request based on their current values."""
    asked = {change.topic: change for change in changes if not isinstance(change, SetBrokerRates)}
    described = await topic_configs(connection, asked, LIST_KEYS, deadline)
    results: Results = {}
    operations: dict[str, tuple[ConfigOperation, ...]] = {}
    for topic, change in asked.items():
        if topic not in described:
            results[change] = CallResult(UNKNOWN_TOPIC_OR_PARTITION, f"topic {topic} does not exist")
            continue
        planned = list_operations(change, parse_throttled(described[topic].own))
        if isinstance(planned, CallResult):
            results[change] = planned
        elif planned:
            operations[topic] = planned
        else:
            results[change] = CallResult(NONE)
    if operations:
        response = await connection.send(
            messages.alter_configs_request(TOPIC_RESOURCE, operations), deadline, changes=True
        )
        answers = messages.read_alter_configs(response)
        results |= {asked[topic]: answers[topic] for topic in operations}
        accepted = {topic: operations[topic] for topic in operations if answers[topic].accepted}
        await _until_visible(connection, accepted, deadline)
    return results


async def _until_visible(
    connection: Connection, operations: Mapping[str, tuple[ConfigOperation, ...]], deadline: Deadline
) -> None:
    """Wait briefly until brokers show an accepted change, because the next change starts from a read.

    A change that is not visible in time is no fault, because Kafka has accepted it. Each read has the deadline of the
    whole call: giving up a request would close its connection, and lose the alters under way on it.
    """
    look_until = _look_until(deadline)
    while operations and look_until.left_ms() > 0:
        try:
            described = await topic_configs(connection, operations, LIST_KEYS, deadline)
        except ClusterUnavailableError:
            return
        if all(has_taken_effect(operations[topic], described[topic].own) for topic in operations if topic in described):
            return
        await asyncio.sleep(_LOOK_AGAIN_S)


def _look_until(deadline: Deadline) -> Deadline:
    """Return the deadline after which no further read begins."""
    return Deadline.after_ms(min(int(_VISIBLE_WITHIN_S * 1000), deadline.left_ms()))
