"""The parts of a local cluster and the paths of its files: pure values, and the JSON file that stores them."""

import json
import uuid
from base64 import urlsafe_b64encode
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from drover.errors import ConfigurationError
from drover.jars import KAFKA_VERSION, kafka_set

HOST = "127.0.0.1"
CONTROLLER_ID = 100
CONTROLLER = str(CONTROLLER_ID)
ZOOKEEPER = "zookeeper"
# The name of the tool that formats the controller; it is not a node.
FORMATTER = "format"
FEWEST_BROKERS = 3
MOST_CONTROLLERS = 5
# Users of a secure cluster: the worker's, the command line's, and the super user.
WORKER, OPERATOR, ADMIN = "drover", "operator", "admin"
USERS = (WORKER, OPERATOR, ADMIN)


@dataclass(frozen=True, slots=True)
class BrokerSpec:
    """A broker: its id, its rack and its port for clients; in a secure cluster, also its port for other nodes."""

    id: int
    rack: str
    port: int
    internal_port: int | None = None

    @property
    def address(self) -> str:
        """The address for clients, as host:port."""
        return f"{HOST}:{self.port}"

    @property
    def probe_port(self) -> int:
        """The port that needs no password."""
        return self.port if self.internal_port is None else self.internal_port


@dataclass(frozen=True, slots=True)
class ClusterSpec:
    """A local cluster as chosen at the first `up`; stored until `down`."""

    cluster_id: str
    brokers: tuple[BrokerSpec, ...]
    racks: int
    # Empty in ZooKeeper mode, where the brokers elect a controller among themselves.
    controller_ports: tuple[int, ...]
    zookeeper_port: int
    secure: bool = False
    kafka: str = KAFKA_VERSION

    @property
    def in_zookeeper_mode(self) -> bool:
        """Whether the cluster keeps its metadata in ZooKeeper instead of KRaft controllers."""
        return not self.controller_ports

    @property
    def controllers(self) -> tuple[str, ...]:
        """The names of the controllers."""
        return tuple(str(CONTROLLER_ID + index) for index in range(len(self.controller_ports)))

    @property
    def bootstrap(self) -> str:
        """Every broker's address, joined by commas."""
        return ",".join(broker.address for broker in self.brokers)

    @property
    def zookeeper(self) -> str:
        """The ZooKeeper's address."""
        return f"{HOST}:{self.zookeeper_port}"

    @property
    def ports(self) -> frozenset[int]:
        """Every port that the cluster uses."""
        of_brokers = {port for broker in self.brokers for port in (broker.port, broker.probe_port)}
        return frozenset({*self.controller_ports, self.zookeeper_port, *of_brokers})

    @property
    def nodes(self) -> tuple[str, ...]:
        """The names of all nodes: broker ids first, then the controllers and the ZooKeeper."""
        return (*(str(broker.id) for broker in self.brokers), *self.controllers, ZOOKEEPER)

    @property
    def kafka_nodes(self) -> tuple[str, ...]:
        """The names of the brokers and the controllers."""
        return self.nodes[:-1]

    def port(self, node: str) -> int:
        """Return the port on which a node listens."""
        if node in self.controllers:
            return self.controller_ports[self.controllers.index(node)]
        if node == ZOOKEEPER:
            return self.zookeeper_port
        return next(broker.port for broker in self.brokers if str(broker.id) == node)


def check_size(brokers: int, racks: int) -> None:
    """Refuse a cluster with too few brokers for its internal topics (RF 3), or with racks without a broker."""
    if brokers < FEWEST_BROKERS:
        raise ConfigurationError(
            f"{brokers} brokers are too few: the internal topics have 3 replicas, so use at least {FEWEST_BROKERS}"
        )
    if brokers >= CONTROLLER_ID:
        raise ConfigurationError(f"{brokers} brokers are too many: id {CONTROLLER_ID} is the controller's")
    if not 1 <= racks <= brokers:
        raise ConfigurationError(f"{racks} racks do not fit {brokers} brokers: choose 1 to {brokers}")


def check_version(kafka: str, controllers: int, *, secure: bool) -> None:
    """Refuse a version that is not locked, and features that it lacks; no controllers mean ZooKeeper mode."""
    kafka_set(kafka)
    if not 0 <= controllers <= MOST_CONTROLLERS:
        raise ConfigurationError(f"{controllers} controllers are not possible: choose 1 to {MOST_CONTROLLERS}")
    if controllers == 0 and not kafka.startswith("3."):
        raise ConfigurationError(f"Kafka {kafka} has no ZooKeeper mode: the last that has it is 3.9")
    if controllers == 0 and secure:
        raise ConfigurationError("a local cluster in ZooKeeper mode cannot be made secure")


def ports_needed(brokers: int, *, secure: bool = False, controllers: int = 1) -> int:
    """Return the number of ports of a cluster: its brokers (two each if secure), the controllers, the ZooKeeper."""
    return brokers * (2 if secure else 1) + controllers + 1


def new_spec(
    brokers: int,
    racks: int,
    ports: tuple[int, ...],
    *,
    secure: bool = False,
    kafka: str = KAFKA_VERSION,
    controllers: int = 1,
) -> ClusterSpec:
    """Return a new cluster on the given ports, with its brokers spread over the racks in turn."""
    broker_ports, (*others, zookeeper_port) = ports[:brokers], ports[brokers:]
    internal_ports, controller_ports = others[: len(others) - controllers], others[len(others) - controllers :]
    return ClusterSpec(
        cluster_id=random_id(),
        brokers=tuple(
            BrokerSpec(
                id=index + 1,
                rack=f"r{index % racks + 1}",
                port=port,
                internal_port=internal_ports[index] if secure else None,
            )
            for index, port in enumerate(broker_ports)
        ),
        racks=racks,
        controller_ports=tuple(controller_ports),
        zookeeper_port=zookeeper_port,
        secure=secure,
        kafka=kafka,
    )


def random_id() -> str:
    """Return a new id in Kafka's form (22 URL-safe characters), without `-`, which its tools may take for a flag."""
    return urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=").replace("-", "A")


@dataclass(frozen=True, slots=True)
class Layout:
    """The paths of a cluster's files; all but the spec and the settings files are below `nodes`."""

    directory: Path

    @property
    def spec_file(self) -> Path:
        """The stored spec; the directory holds a cluster exactly if this file exists."""
        return self.directory / "cluster.json"

    @property
    def config_file(self) -> Path:
        """The drover.toml that calls this cluster `local`."""
        return self.directory / "drover.toml"

    def user_config_file(self, user: str) -> Path:
        """The settings file of a user other than the worker, in a secure cluster."""
        return self.directory / f"{user}.toml"

    @property
    def config_files(self) -> tuple[Path, ...]:
        """Every settings file that `up` may write."""
        return (self.config_file, *(self.user_config_file(user) for user in (OPERATOR, ADMIN)))

    @property
    def authority_file(self) -> Path:
        """The certificate that a secure cluster's clients trust."""
        return self.nodes_directory / "authority.pem"

    @property
    def format_arguments_file(self) -> Path:
        """The storage tool's arguments; the file exists only while the tool runs."""
        return self.node(FORMATTER) / "format.arguments"

    def password_file(self, user: str) -> Path:
        """A user's password, readable by the owner only."""
        return self.nodes_directory / f"{user}.password"

    @property
    def nodes_directory(self) -> Path:
        """The directory of the nodes' files, which `down` removes as a whole."""
        return self.directory / "nodes"

    @property
    def logging_file(self) -> Path:
        """The settings of Log4j 2, for all nodes but those of Kafka 3."""
        return self.nodes_directory / "log4j2.properties"

    @property
    def old_logging_file(self) -> Path:
        """The settings of Log4j 1, for the nodes of Kafka 3."""
        return self.nodes_directory / "log4j.properties"

    def node(self, node: str) -> Path:
        """The directory of one node."""
        return self.nodes_directory / node

    def settings_file(self, node: str) -> Path:
        """The properties file of a node's JVM."""
        return self.node(node) / "node.properties"

    def keystore_file(self, node: str) -> Path:
        """A node's private key and certificates."""
        return self.node(node) / "keystore.pem"

    def data_directory(self, node: str) -> Path:
        """The directory of a node's data."""
        return self.node(node) / "data"

    def log_file(self, node: str) -> Path:
        """The output of a node's JVM, across restarts."""
        return self.node(node) / "node.log"

    def pid_file(self, node: str) -> Path:
        """The pid and start time of a node's process."""
        return self.node(node) / "process.json"


def read_spec(layout: Layout) -> ClusterSpec | None:
    """Return the stored spec, or None without a cluster. Raises `ConfigurationError` if it cannot be read."""
    try:
        text = layout.spec_file.read_text(encoding="utf-8")
    except (FileNotFoundError, NotADirectoryError):
        return None
    try:
        content: dict[str, Any] = json.loads(text)
        return ClusterSpec(
            cluster_id=content["cluster_id"],
            brokers=tuple(
                BrokerSpec(each["id"], each["rack"], each["port"], each.get("internal_port"))
                for each in content["brokers"]
            ),
            racks=content["racks"],
            controller_ports=tuple(content["controller_ports"]),
            zookeeper_port=content["zookeeper_port"],
            secure=content["secure"],
            kafka=content["kafka"],
        )
    except (json.JSONDecodeError, KeyError, TypeError) as error:
        raise ConfigurationError(
            f"{layout.spec_file} is not a file of `drover local up` ({error!r}); choose another --dir or, if it was "
            f"damaged, remove this file and {layout.nodes_directory}"
        ) from error


def make_private(directory: Path) -> None:
    """Create a directory, and .local above it, with access for the owner only: it holds passwords, keys and data."""
    for private in (directory.parent, directory) if directory.parent.name == ".local" else (directory,):
        private.mkdir(parents=True, exist_ok=True, mode=0o700)
        private.chmod(0o700)


def write_spec(layout: Layout, spec: ClusterSpec) -> None:
    """Store the spec atomically."""
    make_private(layout.directory)
    content = {
        "cluster_id": spec.cluster_id,
        "brokers": [asdict(each) for each in spec.brokers],
        "racks": spec.racks,
        "controller_ports": spec.controller_ports,
        "zookeeper_port": spec.zookeeper_port,
        "secure": spec.secure,
        "kafka": spec.kafka,
    }
    part = layout.spec_file.with_suffix(".json.part")
    part.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    part.replace(layout.spec_file)
