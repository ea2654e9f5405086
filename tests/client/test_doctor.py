"""What `drover doctor` finds in facts, and that each finding has a remedy."""

from dataclasses import replace

import pytest

from drover.client.acls import Part, Place, needs
from drover.client.doctor import ClusterFacts, Finding, KafkaFacts, LogFacts, Severity, findings
from drover.client.views.found_throttles import FoundEntries, FoundRates, Whose
from drover.cluster.acls import CLUSTER_NAME, Operation, Resource
from drover.cluster.rights import Rights
from drover.events.partitions import TopicPartition
from drover.events.topics import TopicNames
from drover.inventory import LogDirectory
from drover.journal import topics as own_topics
from drover.traits import known_traits, version_of

NOW_MS = 1_800_000_000_000
VERSION = version_of(known_traits("4.3"))
BROKERS = (1, 2, 3)
NAMES = TopicNames("drover")
NEEDS = needs(NAMES, "drover-worker")
GIGABYTE = 10**9
WHOLE = LogDirectory("/data", 100 * GIGABYTE, 50 * GIGABYTE)


def everything(place: Place) -> Rights:
    """Every right that any part needs there; `orders` is the only other topic."""
    return Rights(
        {
            (need.resource, "orders" if name == "*" else name): frozenset(Operation)
            for need in NEEDS
            if need.place is place
            for name in need.names
        }
    )


def kafka(place: Place) -> KafkaFacts:
    return KafkaFacts(None, BROKERS, dict.fromkeys(BROKERS, VERSION), everything(place))


LOG = LogFacts(kafka(Place.LOG), NOW_MS, newest_ms=NOW_MS - 1000, directories=dict.fromkeys(BROKERS, (WHOLE,)))
CLUSTER = ClusterFacts("prod", kafka(Place.MANAGED), {"orders"}, directories=dict.fromkeys(BROKERS, (WHOLE,)))


def found(log: LogFacts = LOG, cluster: ClusterFacts = CLUSTER, part: Part = Part.WORKER) -> list[Finding]:
    made = list(findings(log, [cluster], NEEDS, part))
    assert all(finding.detail and finding.remedy for finding in made)
    return made


def of_cluster(**changes: object) -> tuple[str, str, str]:
    (finding,) = found(cluster=replace(CLUSTER, **changes))  # type: ignore[arg-type]  # of the facts that a test names
    return finding.check, finding.severity.value, finding.detail


def of_log(**changes: object) -> tuple[str, str, str]:
    (finding,) = found(replace(LOG, **changes))  # type: ignore[arg-type]  # of the facts that a test names
    assert finding.place == "log"
    return finding.check, finding.severity.value, finding.detail


@pytest.mark.parametrize("part", list(Part))
def test_nothing_stands_in_the_way_where_all_is_well(part: Part) -> None:
    assert found(part=part) == []


def test_a_kafka_that_cannot_be_reached_is_the_only_finding_about_it() -> None:
    gone = KafkaFacts("Drover cannot connect")
    assert of_log(kafka=gone, newest_ms=NOW_MS + 10**6) == ("connection", "problem", "Drover cannot connect")
    (finding,) = found(cluster=replace(CLUSTER, kafka=gone))
    assert "[clusters.prod]" in finding.remedy


def test_brokers_that_do_not_answer_where_they_say_they_are() -> None:
    silent = replace(CLUSTER.kafka, versions={1: VERSION})
    check, severity, detail = of_cluster(kafka=silent)
    assert (check, severity) == ("listeners", "problem")
    assert detail == "Kafka calls brokers 2, 3 alive, and this machine gets no answer from there"
    assert of_cluster(unreachable=[3])[2] == "broker 3: alive without the listener through which Drover connects"
    assert of_cluster(dead=[3]) == ("brokers", "warning", "Kafka calls broker 3 dead")


def test_others_who_may_write_to_the_tree_in_zookeeper_are_named() -> None:
    exposed = {f"/drover/{name}": ("world:anyone",) for name in "dcba"} | {
        "/drover/e": ("digest:eve:x", "world:anyone")
    }
    check, severity, detail = of_cluster(exposed_nodes=exposed)
    assert (check, severity) == ("ZooKeeper", "problem")
    assert "/drover/a, /drover/b, /drover/c and 2 more may be written by digest:eve:x, world:anyone" in detail


def test_releases_that_nobody_has_seen_and_a_migration() -> None:
    unknown = replace(VERSION, supported_metadata_version=99)
    check, severity, detail = of_cluster(kafka=replace(CLUSTER.kafka, versions=dict.fromkeys(BROKERS, unknown)))
    assert (check, severity) == ("versions", "warning")
    assert "is careful" in detail
    migrating = {1: VERSION, 2: VERSION, 3: version_of(known_traits("3", zookeeper_mode=True))}
    assert of_cluster(kafka=replace(CLUSTER.kafka, versions=migrating))[:2] == ("versions", "problem")


def test_rights_that_are_missing_are_named_with_what_they_are_for() -> None:
    rights = dict(everything(Place.MANAGED).operations)
    rights[Resource.CLUSTER, CLUSTER_NAME] = frozenset({Operation.DESCRIBE, Operation.ALTER_CONFIGS})
    check, severity, detail = of_cluster(kafka=replace(CLUSTER.kafka, rights=Rights(rights)))
    assert (check, severity) == ("ACLs", "problem")
    assert detail == "our user lacks Alter on cluster kafka-cluster: reassigns, elects, lists, sees log directories"
    rights[Resource.CLUSTER, CLUSTER_NAME] = frozenset(Operation)
    for topic in ("a", "b", "c", "d"):
        rights[Resource.TOPIC, topic] = frozenset()
    lacking = found(cluster=replace(CLUSTER, kafka=replace(CLUSTER.kafka, rights=Rights(rights))), part=Part.OPERATOR)
    assert lacking[0].detail.startswith("our user lacks Describe on topic a, b, c and 1 more: ")
    assert lacking[0].remedy == "drover acls --part operator prints what is needed"


def test_the_rights_of_another_part_are_none_of_its_business() -> None:
    rights = Rights({(Resource.GROUP, "drover-worker"): frozenset()})
    log = replace(LOG, kafka=replace(LOG.kafka, rights=rights))
    assert found(log, part=Part.SETUP) == []
    assert [finding.detail for finding in found(log)] == [
        "our user lacks Read on group drover-worker: shares the shards with the other workers"
    ]


def test_topics_that_differ_have_the_remedy_of_topics_check() -> None:
    finding = own_topics.Finding("drover.events", "topic drover.events does not exist", "drover log init")
    (made,) = found(replace(LOG, topic_findings=[finding]))
    assert (made.check, made.remedy, made.severity) == ("topics", "drover log init", Severity.PROBLEM)


def test_a_log_on_fewer_than_three_brokers() -> None:
    two = replace(LOG.kafka, live_brokers=(1, 2), versions={1: VERSION, 2: VERSION})
    assert of_log(kafka=two)[:2] == ("brokers", "problem")


def test_a_log_whose_time_is_ahead() -> None:
    assert of_log(newest_ms=NOW_MS + 90_000) == (
        "clocks",
        "warning",
        "the log's time is 90 s ahead of this machine's",
    )


def test_a_controller_whose_clock_differs() -> None:
    for ahead_ms, difference in ((90_000, "90 s ahead of"), (-90_000, "90 s behind")):
        finding = ("clocks", "warning", f"the controller's clock is {difference} this machine's")
        assert of_log(kafka=replace(LOG.kafka, clock_ahead_ms=ahead_ms)) == finding
        assert of_cluster(kafka=replace(CLUSTER.kafka, clock_ahead_ms=ahead_ms)) == finding
    assert found(cluster=replace(CLUSTER, kafka=replace(CLUSTER.kafka, clock_ahead_ms=-4_000))) == []


def test_full_and_failed_disks() -> None:
    full = replace(WHOLE, usable_bytes=9 * GIGABYTE)
    assert of_log(directories={2: (full,)}) == ("disks", "warning", "broker 2: 9% of the disk of /data are free")
    assert found(cluster=replace(CLUSTER, directories={2: (full,)})) == [], "plans have a limit of their own"
    failed = replace(WHOLE, code=56)
    check, severity, detail = of_cluster(directories={2: (failed,)})
    assert (check, severity) == ("disks", "problem")
    assert "broker 2: log directory /data has failed" in detail
    assert found(replace(LOG, directories={2: (LogDirectory("/data", None, None),)})) == []


@pytest.mark.parametrize(
    ("topic", "program"),
    [
        ("__CruiseControlMetrics", "Cruise Control"),
        ("__KafkaCruiseControlModelTrainingSamples", "Cruise Control"),
        ("__amazon_msk_canary", "Amazon MSK"),
        ("_confluent_balancer_api_state", "Self-Balancing Clusters"),
    ],
)
def test_another_balancer_is_known_by_its_topics(topic: str, program: str) -> None:
    check, severity, detail = of_cluster(topics={"orders", topic})
    assert (check, severity) == ("another balancer", "warning")
    assert program in detail
    assert topic in detail


def test_moves_of_others_and_throttles_that_were_left_over() -> None:
    assert of_cluster(moves_of_others=[TopicPartition("orders", 1)])[2] == ("somebody else moves orders:1")
    rates = [FoundRates(1, 1, 1, Whose.OURS, ""), FoundRates(2, 1, 1, Whose.LEFTOVER, "")]
    entries = [FoundEntries("orders", ("0:1",), (), Whose.LEFTOVER, ""), FoundEntries("a", (), (), Whose.THEIRS, "")]
    assert of_cluster(rates=rates, entries=entries) == (
        "leftover throttles",
        "warning",
        "no move needs the throttles of broker 2, topic orders",
    )


def test_what_could_not_be_looked_at_is_said_and_problems_come_first() -> None:
    unread = replace(CLUSTER.kafka, unread={"ACLs": "no answer"})
    made = found(replace(LOG, kafka=KafkaFacts("gone")), replace(CLUSTER, kafka=unread))
    assert [(finding.place, finding.severity.value) for finding in made] == [("log", "problem"), ("prod", "warning")]
    assert "could not be looked at: no answer" in made[1].detail


def test_what_could_not_be_looked_at_for_the_same_reason_is_one_finding() -> None:
    def unread(**reasons: str) -> tuple[str, str, str]:
        return of_cluster(kafka=replace(CLUSTER.kafka, unread=reasons))

    assert unread(ACLs="slow", clocks="slow") == ("ACLs, clocks", "warning", "this could not be looked at: slow")
    assert unread(inventory="gone")[:2] == ("inventory", "problem")
