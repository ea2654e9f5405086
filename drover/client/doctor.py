"""PURE: the checks of `drover doctor` on the log and on managed clusters: findings, each with its remedy.

`drover doctor` gathers the facts. What other commands already find, such as wrong topics and leftover throttles, comes
in as their findings.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from drover.client.acls import EVERY, Need, Part, Place
from drover.client.views.found_throttles import FoundEntries, FoundRates, Whose
from drover.cluster.rights import Rights
from drover.events.partitions import TopicPartition
from drover.inventory import LogDirectory
from drover.journal import topics as own_topics
from drover.traits import BrokerVersion, traits_of

# A disk of the log that is fuller than this is worth a look: the log is kept for ever.
LEAST_FREE_SHARE = 0.15
# Where clocks differ by more, times that people type mean something else, and what counts in log time is off.
MOST_DIFFERENCE_MS = 5_000
FEWEST_BROKERS = 3
SHOWN_NAMES = 3
# Topics that show another program which moves replicas by itself, by the beginning of their names.
_OF_CRUISE_CONTROL = (
    "Cruise Control",
    (
        "turn off its self-healing and start none of its rebalances while Drover moves replicas: it cancels the moves "
        "of others by default"
    ),
)
_BALANCERS = {
    "__CruiseControlMetrics": _OF_CRUISE_CONTROL,
    "__KafkaCruiseControl": _OF_CRUISE_CONTROL,
    "__amazon_msk": (
        "Amazon MSK",
        (
            "with Express brokers, pause intelligent rebalancing (`aws kafka update-rebalancing`): it moves replicas, "
            "too, and refuses the moves of others"
        ),
    ),
    "_confluent_balancer": (
        "Confluent's Self-Balancing Clusters",
        "set confluent.balancer.enable=false while Drover moves replicas",
    ),
}


class Severity(StrEnum):
    """How bad a finding is: with a problem something does not work, with a warning it may not."""

    PROBLEM = "problem"
    WARNING = "warning"


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of a check that failed, at a place: `log`, or the name of a cluster."""

    place: str
    check: str
    severity: Severity
    detail: str
    remedy: str


@dataclass(frozen=True, slots=True)
class KafkaFacts:
    """The facts about one Kafka.

    `failure` says why it could not be reached; nothing else is known then. `versions` lacks the live brokers that did
    not answer. `clock_ahead_ms` is the least by which the controller's clock is ahead of this machine's, negative if it
    is behind, None where Kafka does not say. `unread` holds the reason for each check whose facts could not be read.
    """

    failure: str | None = None
    live_brokers: Collection[int] = ()
    versions: Mapping[int, BrokerVersion] = field(default_factory=dict)
    rights: Rights | None = None
    clock_ahead_ms: int | None = None
    unread: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class LogFacts:
    """The facts about the log's Kafka; `newest_ms` is the time of its newest record, `now_ms` this machine's."""

    kafka: KafkaFacts
    now_ms: int
    topic_findings: Sequence[own_topics.Finding] = ()
    newest_ms: int | None = None
    directories: Mapping[int, Sequence[LogDirectory]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ClusterFacts:
    """The facts about a managed cluster.

    `moves_of_others` are those that Kafka lists and the log does not know; `unreachable` brokers live without the
    listener of the bootstrap servers; `dead` ones are registered, or have replicas. `exposed_nodes` are those of
    the tree in ZooKeeper that others may write, with the ids of these.
    """

    name: str
    kafka: KafkaFacts
    topics: Collection[str] = ()
    unreachable: Collection[int] = ()
    dead: Collection[int] = ()
    moves_of_others: Collection[TopicPartition] = ()
    rates: Sequence[FoundRates] = ()
    entries: Sequence[FoundEntries] = ()
    directories: Mapping[int, Sequence[LogDirectory]] = field(default_factory=dict)
    exposed_nodes: Mapping[str, Sequence[str]] = field(default_factory=dict)


LOG = "log"
INVENTORY = "inventory"


def findings(log: LogFacts, clusters: Sequence[ClusterFacts], needs: Sequence[Need], part: Part) -> tuple[Finding, ...]:
    """Judge the facts, problems first; `needs` are the ACLs that `part`, whose user asked, must have."""
    made = [*_log(log, [need for need in needs if need.place is Place.LOG], part)]
    for cluster in clusters:
        made += _cluster(cluster, [need for need in needs if need.place is Place.MANAGED], part)
    return tuple(sorted(made, key=lambda finding: finding.severity))


def _log(log: LogFacts, needs: Sequence[Need], part: Part) -> Iterator[Finding]:
    if log.kafka.failure is not None:
        yield _unreached(LOG, log.kafka.failure)
        return
    yield from _kafka(LOG, log.kafka)
    if len(log.kafka.live_brokers) < FEWEST_BROKERS:
        yield _problem(
            LOG,
            "brokers",
            f"{len(log.kafka.live_brokers)} of the brokers that hold the log are alive, and it needs {FEWEST_BROKERS}",
            "start the others",
        )
    for finding in log.topic_findings:
        yield _problem(LOG, "topics", finding.detail, finding.remedy)
    yield from _rights(LOG, log.kafka, needs, part)
    if log.newest_ms is not None and log.newest_ms - log.now_ms > MOST_DIFFERENCE_MS:
        yield _clocks(LOG, "the log's time is", log.newest_ms - log.now_ms)
    yield from _disks(LOG, log.directories, "the log is kept for ever: add disk space, or remove other topics' data")


def _cluster(cluster: ClusterFacts, needs: Sequence[Need], part: Part) -> Iterator[Finding]:
    name = cluster.name
    if cluster.kafka.failure is not None:
        yield _unreached(name, cluster.kafka.failure)
        return
    yield from _kafka(name, cluster.kafka)
    yield from _rights(name, cluster.kafka, needs, part)
    if cluster.unreachable:
        yield _problem(
            name,
            "listeners",
            f"{_brokers(cluster.unreachable)}: alive without the listener through which Drover connects",
            "add that listener, or give Drover a bootstrap that all brokers offer",
        )
    if cluster.dead:
        yield _warning(
            name,
            "brokers",
            f"Kafka calls {_brokers(cluster.dead)} dead",
            "start what can be started; `drover plan drain` moves replicas away from dead brokers, too",
        )
    yield from _balancers(cluster)
    if cluster.moves_of_others:
        yield _warning(
            name,
            "moves of others",
            f"somebody else moves {_listed(map(str, sorted(cluster.moves_of_others)))}",
            "wait until they have ended; `drover status` shows them, and leaves them alone",
        )
    left = [f"broker {row.broker}" for row in cluster.rates if row.whose is Whose.LEFTOVER]
    left += [f"topic {row.topic}" for row in cluster.entries if row.whose is Whose.LEFTOVER]
    if left:
        yield _warning(
            name,
            "leftover throttles",
            f"no move needs the throttles of {_listed(left)}",
            f'drover throttle clean --cluster {name} --reason "left over"',
        )
    yield from _disks(name, cluster.directories, None)
    if cluster.exposed_nodes:
        others = ", ".join(sorted(set().union(*cluster.exposed_nodes.values())))
        yield _problem(
            name,
            "ZooKeeper",
            f"{_listed(sorted(cluster.exposed_nodes))} may be written by {others}, who can command Drover there",
            "`drover zookeeper run` with these credentials claims the tree; if it may not, remove the tree",
        )


def _kafka(place: str, kafka: KafkaFacts) -> Iterator[Finding]:
    """Yield what concerns any Kafka: brokers that do not answer, and releases."""
    silent = sorted(set(kafka.live_brokers) - kafka.versions.keys())
    if silent:
        yield _problem(
            place,
            "listeners",
            f"Kafka calls {_brokers(silent)} alive, and this machine gets no answer from there",
            "let this machine reach advertised.listeners of every broker: names, ports, firewalls and certificates",
        )
    traits = traits_of(kafka.versions.values())
    if traits is not None and traits.migrates:
        yield _problem(
            place, "versions", "the cluster is being migrated to KRaft", "finish the migration: Drover refuses to move"
        )
    elif traits is not None and not traits.is_known:
        yield _warning(
            place,
            "versions",
            f"the brokers run Kafka {traits.kafka}, so that Drover is careful where releases differ",
            "finish an upgrade that is under way, `metadata.version` included; or upgrade Drover",
        )
    ahead_ms = kafka.clock_ahead_ms
    if ahead_ms is not None and abs(ahead_ms) > MOST_DIFFERENCE_MS:
        yield _clocks(place, "the controller's clock is", ahead_ms)
    for why in dict.fromkeys(kafka.unread.values()):
        checks = [check for check, reason in kafka.unread.items() if reason == why]
        # Without an inventory there are no plans and no moves.
        make = _problem if INVENTORY in checks else _warning
        yield make(place, ", ".join(checks), f"this could not be looked at: {why}", "correct that, and ask again")


def _rights(place: str, kafka: KafkaFacts, needs: Sequence[Need], part: Part) -> Iterator[Finding]:
    if kafka.rights is None:
        return
    for need in needs:
        if need.part is not part:
            continue
        names = kafka.rights.names(need.resource) if need.names == (EVERY,) else need.names
        lacking = [
            (name, operation)
            for name in names
            for operation in need.operations
            if operation not in kafka.rights.operations.get((need.resource, name), need.operations)
        ]
        if lacking:
            words = dict.fromkeys(operation.title for _, operation in lacking)
            of = dict.fromkeys(name for name, _ in lacking)
            yield _problem(
                place,
                "ACLs",
                f"our user lacks {' and '.join(words)} on {need.resource.name.lower()} {_listed(of)}: {need.purpose}",
                f"drover acls --part {part.value} prints what is needed",
            )


def _balancers(cluster: ClusterFacts) -> Iterator[Finding]:
    named: dict[str, tuple[str, str]] = {}
    for topic in sorted(cluster.topics):
        for beginning, (program, remedy) in _BALANCERS.items():
            if topic.startswith(beginning):
                named.setdefault(program, (topic, remedy))
    for program, (topic, remedy) in named.items():
        yield _warning(cluster.name, "another balancer", f"topic {topic} is one of {program}", remedy)


def _disks(
    place: str, directories: Mapping[int, Sequence[LogDirectory]], remedy_of_full: str | None
) -> Iterator[Finding]:
    """Yield failed directories, and where it matters those that are nearly full."""
    for broker, each in sorted(directories.items()):
        for directory in each:
            if directory.code:
                yield _problem(
                    place, "disks", f"broker {broker}: {directory.failure}", "replace the disk, and restart the broker"
                )
            elif remedy_of_full is not None and directory.total_bytes and directory.usable_bytes is not None:
                share = directory.usable_bytes / directory.total_bytes
                if share < LEAST_FREE_SHARE:
                    yield _warning(
                        place,
                        "disks",
                        f"broker {broker}: {share:.0%} of the disk of {directory.path} are free",
                        remedy_of_full,
                    )


def _unreached(place: str, why: str) -> Finding:
    settings = "[log]" if place == LOG else f"[clusters.{place}]"
    return _problem(place, "connection", why, f"correct {settings} in the settings; `drover config check` checks files")


def _clocks(place: str, whose: str, ahead_ms: int) -> Finding:
    return _warning(
        place,
        "clocks",
        f"{whose} {abs(ahead_ms) / 1000:.0f} s {'ahead of' if ahead_ms > 0 else 'behind'} this machine's",
        "let the brokers, the controllers and this machine follow the same time servers (NTP)",
    )


def _problem(place: str, check: str, detail: str, remedy: str) -> Finding:
    return Finding(place, check, Severity.PROBLEM, detail, remedy)


def _warning(place: str, check: str, detail: str, remedy: str) -> Finding:
    return Finding(place, check, Severity.WARNING, detail, remedy)


def _brokers(numbers: Collection[int]) -> str:
    return f"{'broker' if len(numbers) == 1 else 'brokers'} {_listed(sorted(numbers))}"


def _listed(names: Any) -> str:
    """Name the first few."""
    texts = [str(name) for name in names]
    more = len(texts) - SHOWN_NAMES
    return ", ".join(texts[:SHOWN_NAMES]) + (f" and {more} more" if more > 0 else "")
