"""The text of every settings file of a local cluster; pure."""

from pathlib import Path

from drover.local.layout import CONTROLLER, CONTROLLER_ID, HOST, BrokerSpec, ClusterSpec

CONFIG_HEADER = "# Written by `drover local up`, removed by `drover local down`; edit a copy, not this file."

LOGGING = """\
rootLogger.level = INFO
rootLogger.appenderRef.console.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = [%d] %p %m (%c)%n
"""

KAFKA_COMMON = f"""\
controller.quorum.voters={CONTROLLER_ID}@{HOST}:{{controller_port}}
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT
node.id={{node_id}}
log.dirs={{data}}
broker.heartbeat.interval.ms=500
broker.session.timeout.ms=3000
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
replica.lag.time.max.ms=5000
log.cleaner.dedupe.buffer.size=2097152
num.network.threads=1
num.io.threads=2
background.threads=2
"""


def controller_settings(spec: ClusterSpec, data: Path) -> str:
    """Return the controller's server.properties."""
    common = KAFKA_COMMON.format(controller_port=spec.controller_port, node_id=CONTROLLER, data=data)
    return f"process.roles=controller\nlisteners=CONTROLLER://{HOST}:{spec.controller_port}\n{common}"


def broker_settings(spec: ClusterSpec, broker: BrokerSpec, data: Path) -> str:
    """Return one broker's server.properties."""
    common = KAFKA_COMMON.format(controller_port=spec.controller_port, node_id=broker.id, data=data)
    return (
        f"process.roles=broker\nbroker.rack={broker.rack}\n"
        f"listeners=PLAINTEXT://{broker.address}\nadvertised.listeners=PLAINTEXT://{broker.address}\n{common}"
    )


def format_marker(spec: ClusterSpec, node: str, directory_id: str) -> str:
    """Return the meta.properties that marks a broker's log directory as formatted for this cluster.

    Kafka's storage tool writes the same, at the price of one more JVM per broker. The controller is formatted by the
    tool itself, as its bootstrap records (feature levels) are not ours to know.
    """
    return f"version=1\ncluster.id={spec.cluster_id}\nnode.id={node}\ndirectory.id={directory_id}\n"


def zookeeper_settings(spec: ClusterSpec, data: Path) -> str:
    """Return the ZooKeeper's zoo.cfg."""
    return (
        f"tickTime=2000\ndataDir={data}\nclientPort={spec.zookeeper_port}\nclientPortAddress={HOST}\n"
        "admin.enableServer=false\n4lw.commands.whitelist=srvr\nmaxClientCnxns=0\n"
    )


def drover_settings(spec: ClusterSpec) -> str:
    """Return the drover.toml in which this cluster is called `local` and also holds the log."""
    return (
        f"{CONFIG_HEADER}\n"
        f'[log]\nbootstrap = "{spec.bootstrap}"\n\n'
        f'[clusters.local]\nbootstrap = "{spec.bootstrap}"\n\n'
        f'[zookeeper]\nhosts = "{spec.zookeeper}"\n'
    )
