"""The text of every settings file of a local cluster; pure."""

import json
from collections.abc import Mapping
from pathlib import Path

from drover.local.layout import ADMIN, CONTROLLER, HOST, BrokerSpec, ClusterSpec, Layout

MECHANISM = "SCRAM-SHA-512"
CONFIG_HEADER = "# Written by `drover local up`, removed by `drover local down`; edit a copy, not this file."

# Without the first line, Log4j stops at the same signal as Kafka, and the log lacks the end of a shutdown.
LOGGING = """\
shutdownHook = disable
rootLogger.level = INFO
rootLogger.appenderRef.console.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = [%d] %p %m (%c)%n
"""

# The same for Kafka 3, which has Log4j 1.
OLD_LOGGING = """\
log4j.rootLogger=INFO,console
log4j.appender.console=org.apache.log4j.ConsoleAppender
log4j.appender.console.layout=org.apache.log4j.PatternLayout
log4j.appender.console.layout.ConversionPattern=[%d] %p %m (%c)%n
"""

# By default the controller writes an empty record every half second, which costs an idle cluster a seventh of its
# processor time.
KRAFT = """\
controller.quorum.voters={voters}
controller.listener.names=CONTROLLER
node.id={node_id}
log.dirs={data}
broker.heartbeat.interval.ms=500
broker.session.timeout.ms=3000
metadata.max.idle.interval.ms=10000
"""

# A broker that has not reached a controller within these timeouts retries without backoff and uses a whole core. With
# Kafka's defaults (1 and 2 s) that happens at every start and whenever the controller is down. A new leader among
# several controllers is found as fast as with the defaults.
OBSERVER = """\
controller.quorum.election.timeout.ms=600000
controller.quorum.fetch.timeout.ms=10000
"""

ZOOKEEPER_MODE = """\
zookeeper.connect={zookeeper}
zookeeper.session.timeout.ms=3000
zookeeper.connection.timeout.ms=60000
broker.id={node_id}
log.dirs={data}
"""

KAFKA_COMMON = """\
auto.create.topics.enable=false
unclean.leader.election.enable=false
offsets.topic.replication.factor=3
offsets.topic.num.partitions=4
transaction.state.log.replication.factor=3
transaction.state.log.min.isr=2
transaction.state.log.num.partitions=2
share.coordinator.state.topic.replication.factor=3
share.coordinator.state.topic.min.isr=2
share.coordinator.state.topic.num.partitions=2
group.initial.rebalance.delay.ms=0
group.min.session.timeout.ms=1000
replica.lag.time.max.ms=5000
log.cleaner.dedupe.buffer.size=2097152
num.network.threads=1
num.io.threads=2
background.threads=2
"""


def controller_settings(spec: ClusterSpec, layout: Layout, node: str = CONTROLLER) -> str:
    """Return a controller's server.properties."""
    return (
        f"process.roles=controller\nlisteners=CONTROLLER://{HOST}:{spec.port(node)}\n"
        f"{_common_settings(spec, layout, node)}"
    )


def broker_settings(spec: ClusterSpec, layout: Layout, broker: BrokerSpec) -> str:
    """Return one broker's server.properties.

    Clients of a secure cluster use SASL_SSL. Brokers and controllers connect to each other with mutual TLS, so that no
    broker needs a password.
    """
    listeners = f"PLAINTEXT://{broker.address}"
    more = ""
    if spec.secure:
        listeners = f"CLIENT://{broker.address},INTERNAL://{HOST}:{broker.internal_port}"
        more = (
            "inter.broker.listener.name=INTERNAL\n"
            "listener.name.internal.ssl.client.auth=required\n"
            f"listener.name.client.sasl.enabled.mechanisms={MECHANISM}\n"
            f"listener.name.client.{MECHANISM.lower()}.sasl.jaas.config="
            "org.apache.kafka.common.security.scram.ScramLoginModule required;\n"
        )
    roles = "" if spec.in_zookeeper_mode else f"process.roles=broker\n{OBSERVER}"
    return (
        f"{roles}broker.rack={broker.rack}\nlisteners={listeners}\nadvertised.listeners={listeners}\n"
        f"{more}{_common_settings(spec, layout, str(broker.id))}"
    )


def _common_settings(spec: ClusterSpec, layout: Layout, node: str) -> str:
    data = _escaped(layout.data_directory(node))
    if spec.in_zookeeper_mode:
        return ZOOKEEPER_MODE.format(zookeeper=spec.zookeeper, node_id=node, data=data) + KAFKA_COMMON
    voters = ",".join(f"{controller}@{HOST}:{spec.port(controller)}" for controller in spec.controllers)
    common = KRAFT.format(voters=voters, node_id=node, data=data) + KAFKA_COMMON
    if not spec.secure:
        return f"{common}listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT\n"
    super_users = [f"User:{ADMIN}", *(f"User:CN={common_name(node)}" for node in spec.kafka_nodes)]
    return (
        f"{common}listener.security.protocol.map=CONTROLLER:SSL,INTERNAL:SSL,CLIENT:SASL_SSL\n"
        "listener.name.controller.ssl.client.auth=required\n"
        f"ssl.keystore.type=PEM\nssl.keystore.location={_escaped(layout.keystore_file(node))}\n"
        f"ssl.truststore.type=PEM\nssl.truststore.location={_escaped(layout.authority_file)}\n"
        "authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer\n"
        f"super.users={';'.join(super_users)}\n"
    )


def _escaped(path: Path) -> str:
    """Escape a path for Java's properties files, which are Latin-1, and in which a backslash begins an escape."""
    units = str(path).encode("utf-16-be")
    codes = (int.from_bytes(units[place : place + 2], "big") for place in range(0, len(units), 2))
    return "".join(f"\\u{code:04x}" if code > 0x7E or code == 0x5C else chr(code) for code in codes)


def common_name(node: str) -> str:
    """Return the name in a Kafka node's certificate, by which the authorizer knows it."""
    return f"kafka-{node}"


def format_marker(spec: ClusterSpec, node: str, directory_id: str) -> str:
    """Return the meta.properties that marks a node's log directory as formatted for this cluster.

    Kafka's storage tool writes the same file, but needs a JVM per node. Only the first controller is formatted by the
    tool, which writes its bootstrap records (feature levels); the other controllers get a copy of them.
    """
    return f"version=1\ncluster.id={spec.cluster_id}\nnode.id={node}\ndirectory.id={directory_id}\n"


def zookeeper_settings(spec: ClusterSpec, data: Path) -> str:
    """Return the ZooKeeper's zoo.cfg."""
    return (
        f"tickTime=2000\ndataDir={_escaped(data)}\nclientPort={spec.zookeeper_port}\nclientPortAddress={HOST}\n"
        # Sessions of Kafka's brokers in ZooKeeper mode end sooner than two ticks.
        "minSessionTimeout=1000\n"
        "admin.enableServer=false\n4lw.commands.whitelist=srvr\nmaxClientCnxns=0\n"
    )


def drover_settings(spec: ClusterSpec, layout: Layout, user: str) -> str:
    """Return the drover.toml of one of its users, in which this cluster is called `local` and also holds the log."""
    security = _security_settings(layout, user) if spec.secure else ""
    sections = [CONFIG_HEADER]
    for section in ("log", "clusters.local"):
        sections.append(f'[{section}]\nbootstrap = "{spec.bootstrap}"\n')
        sections += [f"[{section}.security]\n{security}"] if security else []
    sections.append("[worker]\nallow_drover_topics = true  # a drain of one of these brokers moves them, too\n")
    allowed = "allow_open_zookeeper = true  # on loopback, for trying things out"
    sections.append(f'[zookeeper]\nhosts = "{spec.zookeeper}"\n{allowed}\n')
    return "\n".join(sections)


def _security_settings(layout: Layout, user: str) -> str:
    settings = {
        "security_protocol": "SASL_SSL",
        "sasl_mechanism": MECHANISM,
        "sasl_plain_username": user,
        "sasl_plain_password_file": str(layout.password_file(user)),
        "ssl_cafile": str(layout.authority_file),
    }
    return "".join(f"{name} = {json.dumps(value)}\n" for name, value in settings.items())


def format_arguments(spec: ClusterSpec, settings_file: Path, passwords: Mapping[str, str]) -> str:
    """Return the arguments of Kafka's storage tool to format the controller and create the users, one per line."""
    users = [f"--add-scram\n{MECHANISM}=[name={user},password={password}]\n" for user, password in passwords.items()]
    return f"format\n--cluster-id={spec.cluster_id}\n--config\n{settings_file}\n{''.join(users)}"
