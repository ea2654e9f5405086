"""The settings as values: the structure of drover.toml and of the `DROVER_*` variables, and the checks of each section.

`drover.settings.sources` reads them.
"""

import ipaddress
import os
import re
import socket
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal

from drover.errors import ConfigurationError
from drover.events.clusters import Budgets
from drover.events.healing import HealingLimits
from drover.events.plans import Stepping
from drover.events.topics import DEFAULT_PREFIX, TopicNames
from drover.journal.connection import LogConnection
from drover.logins import Secret
from drover.planner.capacities import Capacities, Capacity
from drover.planner.goals import DEFAULT_BAND, DEFAULT_LIMITS, Band, with_limits
from drover.planner.goals import Limits as PlannerLimits
from drover.planner.model import BrokerSet
from drover.planner.placement import Placement
from drover.planner.rules import Rules
from drover.settings.addresses import check_addresses, check_session_timeout, parse_address
from drover.settings.credentials import ClientCertificate, SettingNames
from drover.settings.security import Security
from drover.state.limit_names import check, check_healing
from drover.state.scheduling import Limits

LogFormat = Literal["auto", "json", "text"]
_HEALING = HealingLimits()


@dataclass(frozen=True, slots=True)
class LogSettings:
    """The Kafka that holds the log: `bootstrap` is `host:port[,host:port...]`; `prefix` begins every topic's name."""

    bootstrap: str
    """brokers of the Kafka that holds the log; needed with several clusters"""
    prefix: str = DEFAULT_PREFIX
    """the beginning of the names of Drover's topics"""
    security: Security = field(default_factory=Security)
    """how to reach it"""

    def __post_init__(self) -> None:
        """Refuse invalid addresses and prefixes."""
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
        """Return the connection settings for every client of the log.

        Raises `ConfigurationError` for a password or TLS file that cannot be used.
        """
        return LogConnection(self.bootstrap, self.topics, self.client_options())


@dataclass(frozen=True, slots=True)
class HealingSettings:
    """Settings of healing (KIP-46); see `drover.events.healing.HealingLimits`, whose fields and defaults these are.

    With this section, absent brokers are recorded and alarms raised; replicas are moved only if `failure_interval_ms`
    is 0 or more.
    """

    failure_interval_ms: int = _HEALING.failure_interval_ms
    alarm_ms: int = _HEALING.alarm_ms
    chunk_partitions: int = _HEALING.chunk_partitions
    mass_failure_brokers: int = _HEALING.mass_failure_brokers
    mass_failure_percent: int = _HEALING.mass_failure_percent
    max_bytes_per_day: int | None = _HEALING.max_bytes_per_day
    flapping_returns: int = _HEALING.flapping_returns
    flapping_window_ms: int = _HEALING.flapping_window_ms
    rolls_back_on_return: bool = _HEALING.rolls_back_on_return
    throttle_bytes_per_second: int | None = _HEALING.throttle_bytes_per_second
    disk_limit_percent: int = _HEALING.disk_limit_percent

    def __post_init__(self) -> None:
        """Refuse invalid limits (R46-8)."""
        check_healing(self.limits)

    @property
    def limits(self) -> HealingLimits:
        """The limits as decisions use them."""
        return HealingLimits(**asdict(self))


@dataclass(frozen=True, slots=True)
class BrokerCapacitySettings:
    """The capacity of a broker, for plans; see `drover.planner.capacities.Capacity`."""

    disk_bytes: int | None = None
    """the size of its disks, where Kafka does not report it (before 3.3)"""
    network_in_bytes_per_s: float | None = None
    """what its network can receive"""
    network_out_bytes_per_s: float | None = None
    """what its network can send"""
    cores: float | None = None
    """its processor's cores"""
    max_replicas: int | None = None
    """the most replicas that plans may give it; default: no bound"""

    def __post_init__(self) -> None:
        """Refuse figures that nothing can have."""
        for declared in fields(self):
            value = getattr(self, declared.name)
            if value is not None and not value > 0:
                raise ValueError(f"{declared.name} must be above 0")

    @property
    def capacity(self) -> Capacity:
        """The capacity as the planner uses it."""
        return Capacity(**asdict(self))


@dataclass(frozen=True, slots=True)
class CapacitySettings:
    """The capacities of a cluster's brokers: `default` is for those that are not named, and for what is not said."""

    default: BrokerCapacitySettings = BrokerCapacitySettings()
    """the capacity of brokers that are not named"""
    brokers: dict[str, BrokerCapacitySettings] = field(default_factory=dict)
    """the capacity of single brokers, by id"""

    def __post_init__(self) -> None:
        """Refuse names that are no ids of brokers."""
        wrong = [name for name in self.brokers if not (name.isascii() and name.isdecimal())]
        if wrong:
            raise ValueError(f"brokers must be named by their ids, and {wrong[0]!r} is none")

    @property
    def capacities(self) -> Capacities:
        """The capacities as the planner uses them."""
        return Capacities(self.default.capacity, {int(name): broker.capacity for name, broker in self.brokers.items()})


@dataclass(frozen=True, slots=True)
class BrokerSetSettings:
    """Brokers that are set apart for topics."""

    brokers: tuple[int, ...]
    """the ids of its brokers"""
    topics: tuple[str, ...]
    """the topics, which stay on these brokers; `*` and `?` are wildcards"""


@dataclass(frozen=True, slots=True)
class PlacementSettings:
    """What plans keep to; see `drover.planner.placement.Placement`."""

    leaders_in_racks: tuple[str, ...] = ()
    """the racks whose brokers should lead; default: all"""
    min_leaders: dict[str, int] = field(default_factory=dict)
    """by topic (`*` and `?` are wildcards), how many of its partitions each broker should lead"""
    broker_sets: dict[str, BrokerSetSettings] = field(default_factory=dict)
    """brokers that are set apart for topics, by the name of the set"""

    def __post_init__(self) -> None:
        """Refuse minimums of nothing."""
        if any(count < 1 for count in self.min_leaders.values()):
            raise ValueError("min_leaders must be at least 1 for each topic that it names")

    @property
    def placement(self) -> Placement:
        """The placement as the planner uses it."""
        return Placement(
            tuple(BrokerSet(name, each.brokers, each.topics) for name, each in self.broker_sets.items()),
            tuple(self.min_leaders.items()),
            self.leaders_in_racks,
        )


@dataclass(frozen=True, slots=True)
class ClusterSettings:
    """A managed cluster, its limits, and the automatic actions on it; see `drover.state.scheduling.Limits`.

    The limits are defaults, which commands may change. The names of KIP-435 and Cruise Control are accepted, too
    (`drover.state.limit_names`).
    """

    bootstrap: str
    """brokers of the cluster"""
    security: Security = field(default_factory=Security)
    """how to reach it"""
    max_partitions_in_flight: int = 1250
    max_moves_per_broker: int = 5
    max_replicas_per_step: int = 1
    repairs_by_itself: bool = False
    stepping: Stepping = Stepping.GROW
    healing: HealingSettings | None = None
    """the healing of brokers that stay away; none without this section"""
    max_leader_movements: int = 1000
    lazy_leadership: bool = False
    balances_after_return: bool = False
    max_incoming_per_broker: int | None = None
    max_outgoing_per_broker: int | None = None
    max_replica_copies_in_flight: int | None = None
    max_bytes_in_flight: int | None = None
    max_moves_per_rack: int | None = None
    adapts_to_health: bool = True
    windows: str | None = None
    capacity: CapacitySettings = field(default_factory=CapacitySettings)
    """what its brokers can bear, for plans"""
    placement: PlacementSettings = field(default_factory=PlacementSettings)
    """where plans keep topics and leaders"""

    def __post_init__(self) -> None:
        """Refuse invalid addresses, and limits under which no replica could ever move."""
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
            self.windows,
        )


@dataclass(frozen=True, slots=True)
class WorkerSettings:
    """One worker process.

    `name` defaults to host and process id, `group` to `<log prefix>-worker`. `instance_id` makes group membership
    static: unique per worker, the same after its restart. `listen` is where /livez, /readyz and /metrics are served
    (port 0: any free one). `snapshot_every_records` is how many records a shard grows by between two snapshots, 0 for
    none. `log_format` is text, json, or auto: text on a terminal and JSON elsewhere; it also holds for
    `drover zookeeper run`.
    `allow_drover_topics` lets commands move Drover's own topics: whoever may send one decides then where the log lies.
    """

    name: str | None = None
    """the name of this process; default: host and process id"""
    group: str | None = None
    """the workers' consumer group; default: `<log.prefix>-worker`"""
    instance_id: str | None = None
    """a name that makes group membership static: unique per worker, the same after its restart"""
    session_timeout_ms: int = 10_000
    """how long a worker may be silent before others take over"""
    listen: str = "127.0.0.1:8150"
    """where /livez, /readyz and /metrics are served; port 0 takes any"""
    snapshot_every_records: int = 10_000
    """how many records a shard grows by between two snapshots; 0: none"""
    log_format: LogFormat = "auto"
    """text, json, or auto: text on a terminal, else JSON; also of `drover zookeeper run` and `drover web`"""
    allow_drover_topics: bool = False
    """whether commands may move Drover's own topics"""

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
        """The name of this process."""
        return self.name or f"{socket.gethostname()}-{os.getpid()}"


@dataclass(frozen=True, slots=True)
class ZooKeeperOptions:
    """How to reach a ZooKeeper. TLS files are PEM; the host's name is checked against its certificate.

    With a name and password, or a client certificate, nodes are the creator's alone, and may be read by `readers`
    (ids such as `digest:ops:HASH`, `ip:10.0.0.0/8`, `world:anyone`). Without, anybody may write them.
    """

    hosts: str
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    readers: tuple[str, ...] = ()
    use_tls: bool = False
    ca_file: str | None = None
    cert_file: str | None = None
    key_file: str | None = None
    key_password: str | None = field(default=None, repr=False)
    session_timeout_s: float = 10.0
    request_timeout_s: float = 10.0

    @property
    def has_credentials(self) -> bool:
        """Whether the server can authenticate the writer."""
        return self.username is not None or self.cert_file is not None


@dataclass(frozen=True, slots=True)
class ZooKeeperSettings:
    """The ZooKeeper of the projection; `hosts` is `host:port[,host:port...]`, each cluster's tree is `root`/cluster.

    With `username` and `password` (digest), or a client certificate, the nodes are the writer's alone, and may be read
    by `readers` (ids such as `digest:ops:HASH`, `ip:10.0.0.0/8`, `world:anyone`). Without, anybody could write them:
    `allow_open_zookeeper` must say that this is meant. Files are PEM, and `key_password` opens a key that is encrypted;
    with TLS the host's name is checked. `project`
    lets every worker project; with `intake` projectors carry out what operators write there. `listen` is where
    `drover zookeeper run` serves /livez, /readyz and /metrics.
    """

    hosts: str | None = None
    """the ZooKeeper of the view"""
    root: str = "/drover"
    """the path above each cluster's tree"""
    project: bool = False
    """whether every worker projects"""
    intake: bool = True
    """whether requests that operators write there are carried out"""
    username: str | None = None
    """the user of digest authentication"""
    password: str | None = field(default=None, repr=False)
    """the user's password"""
    readers: tuple[str, ...] = ()
    """ids that may read the tree, such as `digest:ops:HASH` or `world:anyone`"""
    allow_open_zookeeper: bool = False
    """whether a tree that anybody may write is meant"""
    use_tls: bool = False
    """whether the connection is encrypted"""
    ca_file: str | None = None
    """the authorities to trust, PEM"""
    cert_file: str | None = None
    """Drover's own certificate, PEM"""
    key_file: str | None = None
    """its key, PEM"""
    key_password: str | None = field(default=None, repr=False)
    """the password of an encrypted key"""
    session_timeout_ms: int = 10_000
    """how long a projector may be silent before its session ends"""
    listen: str = "127.0.0.1:8161"
    """where `drover zookeeper run` serves /livez, /readyz and /metrics"""

    def __post_init__(self) -> None:
        """Refuse unusable combinations, and a root that cannot belong to Drover."""
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
        """Whether ZooKeeper can authenticate the writer."""
        return self.username is not None or self.cert_file is not None

    @property
    def address(self) -> tuple[str, int]:
        """Host and port to listen on."""
        return parse_address(self.listen)

    def options(self) -> ZooKeeperOptions:
        """Return the options of the store. Raises `ConfigurationError` for unusable or unsafe settings."""
        if self.hosts is None:
            raise ConfigurationError("zookeeper.hosts is not set: set it to the ZooKeeper that shall show the state")
        if not self.has_credentials and not self.allow_open_zookeeper:
            raise ConfigurationError(
                "without credentials anybody could write the tree in ZooKeeper: set zookeeper.username and "
                "zookeeper.password (or cert_file and key_file), or allow_open_zookeeper = true if that is meant"
            )
        if self.cert_file is not None:
            names = SettingNames("zookeeper", "cert_file", "key_file", "key_password")
            password = None if self.key_password is None else Secret(self.key_password)
            # Checked here, because the client would ask for a missing password on the terminal.
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
class SparkSettings:
    """The Spark job: `directory` holds its tables and checkpoints; spark/README.md describes the settings.

    `master` is Spark's own; None means that of spark-submit, else two threads of this machine. `options` are Spark's
    own settings. `keeps_history` adds a Parquet history of everything that has ended; the other tables keep it for
    `keeps_days`.
    """

    directory: str = ".local/spark"
    """where the job keeps its tables and checkpoints"""
    master: str | None = None
    """Spark's master; default: that of spark-submit, else two threads"""
    trigger_ms: int = 2000
    """the pause between two batches"""
    max_records_per_batch: int = 100_000
    """the most records of a batch"""
    keeps_history: bool = False
    """whether everything that has ended is kept in Parquet files"""
    keeps_days: int = 90
    """for how many days the other tables keep what has ended"""
    # May contain passwords of stores and registries.
    options: dict[str, str] = field(default_factory=dict, repr=False)
    """Spark's own settings; they may hold passwords"""

    def __post_init__(self) -> None:
        """Refuse unusable values, and an empty directory, which would mean the working directory."""
        if not self.directory:
            raise ValueError("directory must not be empty")
        for name in ("trigger_ms", "max_records_per_batch", "keeps_days"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1")


@dataclass(frozen=True, slots=True)
class BandSettings:
    """How far from its fair share of a load a broker may be, as shares of it."""

    above: float = DEFAULT_BAND.above
    """how far above its fair share a broker may be"""
    below: float = DEFAULT_BAND.below
    """how far below"""

    def __post_init__(self) -> None:
        """Refuse invalid shares."""
        if not (self.above >= 0 and 0 <= self.below < 1):
            raise ValueError("above must be at least 0, and below at least 0 and less than 1")


@dataclass(frozen=True, slots=True)
class PlanningSettings:
    """Settings of `drover plan`; `disk_limit` is the share of a disk that may be used at any moment.

    `limits` and `bands` are by the names of loads; the band `all` is that of every load that is not named.
    """

    disk_limit: float = DEFAULT_LIMITS.disk_limit
    """the share of a disk that plans may use at any moment"""
    limits: dict[str, float] = field(default_factory=dict)
    """by load, the share of a capacity that plans may use; default: 0.8, of disks `disk_limit`"""
    bands: dict[str, BandSettings] = field(default_factory=dict)
    """by load, or for `all`, the bands in which plans keep brokers"""

    def __post_init__(self) -> None:
        """Refuse invalid shares, and names of no load."""
        if not 0 < self.disk_limit <= 1:
            raise ValueError("disk_limit must be above 0 and at most 1, such as 0.85")
        _ = self.planner_limits

    @property
    def planner_limits(self) -> PlannerLimits:
        """The limits and bands as the planner uses them. Raises `ValueError`."""
        bands = {name: Band(band.above, band.below) for name, band in self.bands.items()}
        return with_limits(PlannerLimits(disk_limit=self.disk_limit), self.limits, bands)


@dataclass(frozen=True, slots=True)
class WebSettings:
    """The page: `listen` is where it is served (port 0: any free one).

    `hosts` are further host names of the page, such as that of a proxy in front of it; requests for other hosts are
    refused, so that no page of another site can read this one.

    The page is read-only unless `writes` is true: then users may send commands whom an authenticating proxy names in
    the header `user_header`, such as X-Forwarded-User. The header is trusted only from the addresses in `proxies`, and
    becomes `by` of the commands.
    """

    listen: str = "127.0.0.1:8160"
    """where the page is served; port 0 takes any"""
    hosts: tuple[str, ...] = ()
    """further host names of the page, such as that of a proxy"""
    writes: bool = False
    """whether users may send commands"""
    user_header: str = ""
    """the header in which the proxy names the user"""
    proxies: tuple[str, ...] = ("127.0.0.1", "::1")
    """addresses of proxies that are trusted to name users"""

    def __post_init__(self) -> None:
        """Refuse an address that cannot be listened on, and writes without authenticated users."""
        parse_address(self.listen)
        if self.user_header and not re.fullmatch(r"[A-Za-z0-9-]+", self.user_header):
            raise ValueError(f"user_header must be the name of a header, and not {self.user_header!r}")
        if self.writes and not self.user_header:
            raise ValueError("writes needs user_header: the header in which the proxy before the page names the user")
        _ = self.networks

    @property
    def address(self) -> tuple[str, int]:
        """Host and port to listen on."""
        return parse_address(self.listen)

    @property
    def networks(self) -> tuple[ipaddress.IPv4Network | ipaddress.IPv6Network, ...]:
        """The addresses of the proxies; one address is a network of one."""
        return tuple(ipaddress.ip_network(proxy) for proxy in self.proxies)


@dataclass(frozen=True, slots=True)
class Settings:
    """All settings; `clusters` is by the operator's name for each, and `cluster` the one that commands are about."""

    log: LogSettings
    clusters: dict[str, ClusterSettings] = field(default_factory=dict)
    worker: WorkerSettings = WorkerSettings()
    zookeeper: ZooKeeperSettings = ZooKeeperSettings()
    spark: SparkSettings = field(default_factory=SparkSettings)
    planning: PlanningSettings = field(default_factory=PlanningSettings)
    web: WebSettings = field(default_factory=WebSettings)
    cluster: str | None = None
    """the cluster that commands are about unless --cluster says otherwise; needed with several only"""

    @property
    def group(self) -> str:
        """The workers' consumer group, which two installations on one Kafka must not share."""
        return self.worker.group or f"{self.log.prefix}-worker"

    @property
    def limits(self) -> dict[str, Limits]:
        """The limits of every managed cluster."""
        return {name: cluster.limits for name, cluster in self.clusters.items()}

    @property
    def rules(self) -> dict[str, Rules]:
        """The rules of plans and heals of every managed cluster."""
        limits = self.planning.planner_limits
        return {
            name: Rules(cluster.placement.placement, cluster.capacity.capacities, limits)
            for name, cluster in self.clusters.items()
        }

    @property
    def plaintext(self) -> tuple[str, ...]:
        """The connections that are not encrypted, and those that send a password in the clear."""
        named = {"log": self.log.security} | {
            f"clusters.{name}": settings.security for name, settings in self.clusters.items()
        }
        unencrypted = [name for name, security in named.items() if not security.uses_tls]
        if self.zookeeper.hosts is not None and self.zookeeper.username is not None and not self.zookeeper.use_tls:
            unencrypted.append("zookeeper (with its password)")
        return tuple(unencrypted)
