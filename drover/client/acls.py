"""The exact ACLs that each part of Drover needs on Kafka.

`drover acls` prints this table, `drover local up --secure` grants it, and a test removes each ACL in turn and checks
that something fails. The log's Kafka and the managed clusters have separate ACLs, so that each can have its own user.
"""

import shlex
from dataclasses import dataclass
from enum import StrEnum

from drover.cluster.acls import CLUSTER_NAME, Acl, Operation, Resource
from drover.events.topics import TopicNames

EVERY = "*"


class Part(StrEnum):
    """The part of Drover that needs an ACL: the worker, the everyday commands, or the setup of topics."""

    WORKER = "worker"
    OPERATOR = "operator"
    SETUP = "setup"


class Place(StrEnum):
    """The Kafka to which an ACL applies: the one that holds the log, or a managed cluster."""

    LOG = "log"
    MANAGED = "managed"


@dataclass(frozen=True, slots=True)
class Need:
    """Operations that a part of Drover needs on resources of one kind, and their purpose."""

    part: Part
    place: Place
    resource: Resource
    names: tuple[str, ...]
    operations: tuple[Operation, ...]
    purpose: str

    def acls(self, user: str) -> tuple[Acl, ...]:
        """Return the need as ACLs for a user."""
        return tuple(Acl(user, self.resource, name, operation) for name in self.names for operation in self.operations)

    def command(self, bootstrap: str, user: str) -> str:
        """Return the need as a call of Kafka's own tool, quoted for a shell: users may be names in certificates."""
        resources = {
            Resource.CLUSTER: "--cluster",
            Resource.GROUP: " ".join(f"--group {shlex.quote(name)}" for name in self.names),
            Resource.TOPIC: " ".join(f"--topic {shlex.quote(name)}" for name in self.names),
        }
        operations = " ".join(f"--operation {operation.title}" for operation in self.operations)
        return (
            f"kafka-acls --bootstrap-server {shlex.quote(bootstrap)} --command-config admin.properties --add "
            f"--allow-principal {shlex.quote(f'User:{user}')} {operations} {resources[self.resource]}"
        )


def needs(topics: TopicNames, group: str) -> tuple[Need, ...]:
    """Return the table for these topics and the workers' consumer group."""
    every_topic = (topics.events, *topics.commands, topics.progress, topics.dead_letters, topics.snapshots)
    worker, operator, setup = Part.WORKER, Part.OPERATOR, Part.SETUP
    log, managed = Place.LOG, Place.MANAGED
    topic, read, write, create = Resource.TOPIC, Operation.READ, Operation.WRITE, Operation.CREATE
    describe, describe_configs = Operation.DESCRIBE, Operation.DESCRIBE_CONFIGS
    alter, alter_configs = Operation.ALTER, Operation.ALTER_CONFIGS
    return (
        Need(worker, log, topic, every_topic, (describe_configs,), "checks the topics before it starts"),
        Need(worker, log, topic, (topics.events,), (read, write), "follows the log and appends to it"),
        Need(worker, log, topic, topics.commands, (read, write), "reads commands, forwards misplaced ones"),
        Need(worker, log, topic, (topics.snapshots,), (read, write), "starts from snapshots and writes them"),
        Need(worker, log, topic, (topics.progress, topics.dead_letters), (write,), "byte samples, dead letters"),
        Need(worker, log, Resource.GROUP, (group,), (read,), "shares the shards with the other workers"),
        Need(
            worker,
            managed,
            Resource.CLUSTER,
            (CLUSTER_NAME,),
            (alter,),
            "reassigns, elects, lists, sees log directories",
        ),
        Need(worker, managed, Resource.CLUSTER, (CLUSTER_NAME,), (alter_configs,), "brokers' throttle rates"),
        Need(worker, managed, topic, (EVERY,), (describe,), "sees replicas, leaders and ISR"),
        Need(worker, managed, topic, (EVERY,), (alter_configs,), "reads min.insync.replicas, sets throttled replicas"),
        Need(operator, log, topic, topics.commands, (write,), "sends commands"),
        Need(operator, log, topic, (topics.events,), (read,), "outcomes, status, history, replay"),
        Need(operator, log, topic, (topics.snapshots,), (read,), "status and outcomes without a long replay"),
        Need(operator, log, topic, (topics.progress,), (read,), "progress of each copy"),
        Need(operator, log, topic, (topics.dead_letters,), (read,), "shows the dead letters"),
        Need(operator, managed, Resource.CLUSTER, (CLUSTER_NAME,), (describe,), "describe and plan: moves, disks"),
        Need(operator, managed, topic, (EVERY,), (describe,), "describe and plan: replicas, leaders and ISR"),
        Need(
            operator, managed, Resource.GROUP, (EVERY,), (describe,), "describe and plan with --load: offsets of groups"
        ),
        Need(operator, managed, Resource.CLUSTER, (CLUSTER_NAME,), (describe_configs,), "throttles: brokers' rates"),
        Need(operator, managed, topic, (EVERY,), (describe_configs,), "throttles and alter --dry-run: topics' configs"),
        Need(setup, log, topic, every_topic, (create, describe_configs), "drover log init and check"),
        Need(setup, log, topic, (topics.events,), (write,), "the first record of every shard"),
        Need(setup, log, topic, every_topic[1:], (describe,), "sees whether a topic exists"),
    )
