"""The settings as values: the shape of drover.toml and of the `DROVER_*` variables.

Reading them is `drover.settings.settings_sources`. This module imports no validation library, so that a command that
has its settings at hand starts at once.
"""

import os
import re
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from drover.errors import ConfigurationError
from drover.events.clusters import Budgets
from drover.events.plans import Stepping
from drover.events.topics import DEFAULT_PREFIX, TopicNames
from drover.journal.connection import LogConnection
from drover.settings.addresses import check_addresses, check_session_timeout, parse_address
from drover.settings.client_certificate import ClientCertificate, SettingNames
from drover.settings.healing_settings import HealingSettings
from drover.settings.secret import Secret
from drover.settings.section_settings import PlanningSettings, SparkSettings
from drover.settings.security_settings import Security
from drover.settings.web_settings import WebSettings
from drover.settings.zookeeper import ZooKeeperOptions
from drover.state.limit_names import check
from drover.state.scheduling import Limits

# Every section refuses keys that it does not know: a misspelt setting is never silently ignored.
_STRICT: Mapping[str, Any] = {"extra": "forbid"}

LogFormat = Literal["auto", "json", "text"]


@dataclass(frozen=True, slots=True)
class LogSettings:
    """The Kafka that holds the log: `bootstrap` is `host:port[,host:port...]`; `prefix` begins every topic's name."""

    __pydantic_config__: ClassVar[Mapping[str, Any]] = _STRICT

    bootstrap: str
    prefix: str = DEFAULT_PREFIX
    security: Security = field(default_factory=Security)

    def __post_init__(self) -> None:
        """Refuse what is no address, and a prefix that no topic can have."""
        check_addresses("bootstrap", self.bootstrap)
        if re.fullmatch(r"[A-Za-z0-9._-]{1,200}", self.prefix) is None:
            raise ValueError(f"prefix must be 1 to 200 of letters, digits, '.', '_' and '-', and not {self.prefix!r}")

    @property
    def topics(self) -> TopicNames:
        """The names of Drover's own topics."""
        return TopicNames(self.prefix)

    def client_options(self) -> dict[str, Any]:
        """Return the keyword arguments for any client of the log's Kafka; see `Security.client_options`."""
        return self.security.client_options("log.security")

    def connection(self) -> LogConnection:
        """Return what every client of the log is opened with.

        Raises `ConfigurationError` for a password or TLS file that cannot be used.
        """
        return LogConnection(self.bootstrap, self.topics, self.client_options())


@dataclass(frozen=True, slots=True)
class ClusterSettings:
    """A managed cluster, how much may be in flight on it, and what is done unasked.

    See `drover.state.scheduling.Limits`. These are defaults, which commands may change. Each may
    be written as KIP-435 or Cruise Control calls it, too (`drover.state.limit_names`).
    """

    __pydantic_config__: ClassVar[Mapping[str, Any]] = _STRICT

    bootstrap: str
    security: Security = field(default_factory=Security)
    max_partitions_in_flight: int = 1250
    max_moves_per_broker: int = 5
    max_replicas_per_step: int = 1
    repairs_by_itself: bool = False
    stepping: Stepping = Stepping.GROW
    healing: HealingSettings | None = None
    max_leader_movements: int = 1000
    lazy_leadership: bool = False
    balances_after_return: bool = False
    max_incoming_per_broker: int | None = None
    max_outgoing_per_broker: int | None = None
    max_replica_copies_in_flight: int | None = None
    max_bytes_in_flight: int | None = None
    max_moves_per_rack: int | None = None
    adapts_to_health: bool = True

    def __post_init__(self) -> None:
        """Refuse what is no address, and limits under which nothing could ever move."""
        check_addresses("bootstrap", self.bootstrap)
        check(self.limits)

    @property
    def limits(self) -> Limits:
        """The limits as decisions use them."""
        return Limits(
            self.max_partitions_in_flight,
            self.max_moves_per_broker,
            self.max_replicas_per_step,
            self.repairs_by_itself,
            self.stepping,
            None if self.healing is None else self.healing.limits,
            self.max_leader_movements,
            self.lazy_leadership,
            self.balances_after_return,
            Budgets(
                self.max_incoming_per_broker,
                self.max_outgoing_per_broker,
                self.max_replica_copies_in_flight,
                self.max_bytes_in_flight,
                self.max_moves_per_rack,
            ),
            self.adapts_to_health,
        )


@dataclass(frozen=True, slots=True)
class WorkerSettings:
    """One worker process.

    `name` defaults to host and process id, `group` to `<log prefix>-worker`. `instance_id` makes group membership
    static: unique per worker, the same after its restart. `listen` is where /livez, /readyz and /metrics are served
    (port 0: any free one). `snapshot_every_records` is how many records a shard grows by between two snapshots, 0 for
    none. `log_format` is text, json, or auto: text on a terminal and JSON elsewhere; it holds for `drover project` too.
    """

    __pydantic_config__: ClassVar[Mapping[str, Any]] = _STRICT

    name: str | None = None
    group: str | None = None
    instance_id: str | None = None
    session_timeout_ms: int = 10_000
    listen: str = "127.0.0.1:8150"
    snapshot_every_records: int = 10_000
    log_format: LogFormat = "auto"

    def __post_init__(self) -> None:
        """Refuse an address that cannot be listened on."""
        parse_address(self.listen)
        check_session_timeout(self.session_timeout_ms)
        if self.snapshot_every_records < 0:
            raise ValueError("snapshot_every_records must be at least 0, which means none")

    @property
    def address(self) -> tuple[str, int]:
        """Host and port to listen on."""
        return parse_address(self.listen)

    @property
    def session_timeout_s(self) -> float:
        """The session timeout in seconds."""
        return self.session_timeout_ms / 1000

    @property
    def full_name(self) -> str:
        """The name this process goes by."""
        return self.name or f"{socket.gethostname()}-{os.getpid()}"


@dataclass(frozen=True, slots=True)
class ZooKeeperSettings:
    """The ZooKeeper of the projection; `hosts` is `host:port[,host:port...]`, each cluster's tree is `root`/cluster.

    With `username` and `password` (digest), or a client certificate, the nodes are the writer's alone, and may be read
    by `readers` (ids such as `digest:ops:HASH`, `ip:10.0.0.0/8`, `world:anyone`). Without, anybody could write them:
    `allow_open_zookeeper` must say that this is meant. Files are PEM, and `key_password` opens a key that is encrypted;
    with TLS the host's name is checked. `project`
    lets every worker project; with `intake` projectors carry out what operators write there. `listen` is where
    `drover project` serves /livez, /readyz and /metrics.
    """

    __pydantic_config__: ClassVar[Mapping[str, Any]] = _STRICT

    hosts: str | None = None
    root: str = "/drover"
    project: bool = False
    intake: bool = True
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    readers: tuple[str, ...] = ()
    allow_open_zookeeper: bool = False
    use_tls: bool = False
    ca_file: str | None = None
    cert_file: str | None = None
    key_file: str | None = None
    key_password: str | None = field(default=None, repr=False)
    session_timeout_ms: int = 10_000
    listen: str = "127.0.0.1:8161"

    def __post_init__(self) -> None:
        """Refuse what no client could use, and a root that is not Drover's to write."""
        if re.fullmatch(r"(/[^/]+)+", self.root) is None or self.root.split("/")[1] == "zookeeper":
            raise ValueError(f"root must be an absolute path of its own, such as /drover, and not {self.root!r}")
        if self.hosts is not None:
            check_addresses("hosts", self.hosts)
        if (self.username is None) is not (self.password is None):
            raise ValueError("username and password belong together")
        if (self.cert_file is None) is not (self.key_file is None):
            raise ValueError("cert_file and key_file belong together")
        if self.key_password is not None and self.key_file is None:
            raise ValueError("key_password has no effect without key_file")
        if not self.use_tls and (self.ca_file or self.cert_file):
            raise ValueError("TLS files have no effect without use_tls = true")
        if self.readers and not self.has_credentials:
            raise ValueError("readers have no effect without credentials: anybody may read and write the tree")
        wrong = [reader for reader in self.readers if not re.fullmatch(r"(digest|ip|sasl|x509|world):.+", reader)]
        if wrong:
            raise ValueError(
                f"reader {wrong[0]!r} is not an ACL id: scheme:id, such as digest:ops:HASH or world:anyone"
            )
        parse_address(self.listen)
        check_session_timeout(self.session_timeout_ms)

    @property
    def has_credentials(self) -> bool:
        """Whether ZooKeeper can know who is writing."""
        return self.username is not None or self.cert_file is not None

    @property
    def address(self) -> tuple[str, int]:
        """Host and port to listen on."""
        return parse_address(self.listen)

    def options(self) -> ZooKeeperOptions:
        """Return what the store is opened with; raises `ConfigurationError` for what must not or cannot be used."""
        if self.hosts is None:
            raise ConfigurationError("zookeeper.hosts is not set: say where the ZooKeeper is that shall show the state")
        if not self.has_credentials and not self.allow_open_zookeeper:
            raise ConfigurationError(
                "without credentials anybody could write the tree in ZooKeeper: set zookeeper.username and "
                "zookeeper.password (or cert_file and key_file), or allow_open_zookeeper = true if that is meant"
            )
        if self.cert_file is not None:
            names = SettingNames("zookeeper", "cert_file", "key_file", "key_password")
            password = None if self.key_password is None else Secret(self.key_password)
            # The client reads the files by itself, and would ask for a password on the terminal.
            ClientCertificate(names, self.cert_file, self.key_file, password).check_pem()
        return ZooKeeperOptions(
            hosts=self.hosts,
            username=self.username,
            password=self.password,
            readers=self.readers,
            use_tls=self.use_tls,
            ca_file=self.ca_file,
            cert_file=self.cert_file,
            key_file=self.key_file,
            key_password=self.key_password,
            session_timeout_s=self.session_timeout_ms / 1000,
        )


@dataclass(frozen=True, slots=True)
class Settings:
    """All settings; `clusters` is by the operator's name for each."""

    __pydantic_config__: ClassVar[Mapping[str, Any]] = _STRICT

    log: LogSettings
    clusters: dict[str, ClusterSettings] = field(default_factory=dict)
    worker: WorkerSettings = WorkerSettings()
    zookeeper: ZooKeeperSettings = ZooKeeperSettings()
    spark: SparkSettings = field(default_factory=SparkSettings)
    planning: PlanningSettings = field(default_factory=PlanningSettings)
    web: WebSettings = field(default_factory=WebSettings)

    @property
    def group(self) -> str:
        """The workers' consumer group: never shared by two Drovers on one Kafka."""
        return self.worker.group or f"{self.log.prefix}-worker"

    @property
    def limits(self) -> dict[str, Limits]:
        """The limits of every managed cluster."""
        return {name: cluster.limits for name, cluster in self.clusters.items()}

    @property
    def holds_secrets(self) -> bool:
        """Whether there is anything that must not be written to disk."""
        everywhere = (self.log.security, *(cluster.security for cluster in self.clusters.values()))
        kafka = any(security.sasl_plain_password or security.ssl_key_password for security in everywhere)
        zookeeper = self.zookeeper.password is not None or self.zookeeper.key_password is not None
        return kafka or zookeeper or bool(self.spark.options)

    @property
    def plaintext(self) -> tuple[str, ...]:
        """Name the connections over which everything, or a password, goes readable for anybody on the network."""
        named = {"log": self.log.security} | {f"clusters.{name}": one.security for name, one in self.clusters.items()}
        found = [name for name, security in named.items() if not security.uses_tls]
        if self.zookeeper.hosts is not None and self.zookeeper.username is not None and not self.zookeeper.use_tls:
            found.append("zookeeper (with its password)")
        return tuple(found)
