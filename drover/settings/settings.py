"""The settings as values: the structure of drover.toml and of the `DROVER_*` variables, and the checks of each section.

`drover.settings.sources` reads them.
"""

import ipaddress
import os
import re
import socket
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from drover.errors import ConfigurationError
from drover.events.clusters import Budgets
from drover.events.healing import HealingLimits
from drover.events.plans import Stepping
from drover.events.topics import DEFAULT_PREFIX, TopicNames
from drover.journal.connection import LogConnection
from drover.settings.addresses import check_addresses, check_session_timeout, parse_address
from drover.settings.credentials import (
    ClientCertificate,
    Secret,
    SettingNames,
    check_authorities,
    read_secret,
    unusable,
)
from drover.state.limit_names import check, check_healing
from drover.state.scheduling import Limits

if TYPE_CHECKING:
    from ssl import SSLContext

LogFormat = Literal["auto", "json", "text"]
Protocol = Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"]
Mechanism = Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]
_HEALING = HealingLimits()


@dataclass(frozen=True, slots=True)
class Security:
    """How to reach one Kafka; the names are those of the Kafka clients, except for the file that holds the password.

    The authorities are PEM; Drover's own certificate and key are PEM or PKCS #12, and an encrypted key needs its
    password. A broker's certificate must match its host name. SASL without TLS sends the password in the clear, so it
    must be allowed explicitly.
    """

    security_protocol: Protocol = "PLAINTEXT"
    sasl_mechanism: Mechanism | None = None
    sasl_plain_username: str | None = None
    sasl_plain_password: str | None = field(default=None, repr=False)
    sasl_plain_password_file: str | None = None
    ssl_cafile: str | None = None
    ssl_certfile: str | None = None
    ssl_keyfile: str | None = None
    ssl_key_password: str | None = field(default=None, repr=False)
    ssl_key_password_file: str | None = None
    allow_plaintext_sasl: bool = False

    def __post_init__(self) -> None:
        """Refuse combinations that are unusable, or that expose a password."""
        if self.security_protocol == "SASL_PLAINTEXT" and not self.allow_plaintext_sasl:
            raise ValueError(
                "SASL without TLS sends the password in the clear; "
                "use security_protocol = SASL_SSL, or set allow_plaintext_sasl = true"
            )
        password = self.sasl_plain_password or self.sasl_plain_password_file
        if self.uses_sasl and None in {self.sasl_mechanism, self.sasl_plain_username, password}:
            raise ValueError(
                f"{self.security_protocol} needs sasl_mechanism, sasl_plain_username and sasl_plain_password "
                "(or sasl_plain_password_file)"
            )
        for setting in ("sasl_plain_password", "ssl_key_password"):
            if getattr(self, setting) and getattr(self, f"{setting}_file"):
                raise ValueError(f"{setting} and {setting}_file are both set: choose one")
        if not self.uses_sasl and (self.sasl_mechanism or self.sasl_plain_username or password):
            raise ValueError(f"SASL settings have no effect with security_protocol = {self.security_protocol}")
        key_password = self.ssl_key_password or self.ssl_key_password_file
        if not self.uses_tls and (self.ssl_cafile or self.ssl_certfile or self.ssl_keyfile or key_password):
            raise ValueError(f"TLS files have no effect with security_protocol = {self.security_protocol}")
        if self.ssl_keyfile and not self.ssl_certfile:
            raise ValueError("ssl_keyfile has no effect without ssl_certfile")
        if key_password and not self.ssl_certfile:
            raise ValueError("ssl_key_password has no effect without ssl_certfile")

    @property
    def uses_sasl(self) -> bool:
        """Whether the client authenticates with a name and a password."""
        return self.security_protocol.startswith("SASL_")

    @property
    def uses_tls(self) -> bool:
        """Whether the connection is encrypted."""
        return self.security_protocol.endswith("SSL")

    def client_options(self, section: str) -> dict[str, Any]:
        """Return the keyword arguments for both clients, aiokafka and kafka-python; reads the files.

        Raises `ConfigurationError` for an unusable file; `section` names these settings in the message.
        """
        options: dict[str, Any] = {"security_protocol": self.security_protocol}
        if self.uses_sasl:
            options |= {
                "sasl_mechanism": self.sasl_mechanism,
                "sasl_plain_username": self.sasl_plain_username,
                "sasl_plain_password": self.sasl_password(section),
            }
        if self.uses_tls:
            options["ssl_context"] = self._tls_context(section)
        return options

    def sasl_password(self, section: str) -> Secret:
        """Return the password, from its setting or its file. Raises `ConfigurationError`."""
        password = read_secret(section, "sasl_plain_password", self.sasl_plain_password, self.sasl_plain_password_file)
        assert password is not None, "checked when the settings were made"
        return password

    def client_certificate(self, section: str) -> ClientCertificate | None:
        """Return Drover's own certificate, if it has one. Raises `ConfigurationError` for an unusable password file."""
        if self.ssl_certfile is None:
            return None
        password = read_secret(section, "ssl_key_password", self.ssl_key_password, self.ssl_key_password_file)
        return ClientCertificate(SettingNames(section), self.ssl_certfile, self.ssl_keyfile, password)

    def _tls_context(self, section: str) -> "SSLContext":
        import ssl  # noqa: PLC0415 - costs start-up time and few need it

        if self.ssl_cafile is not None:
            check_authorities(section, "ssl_cafile", self.ssl_cafile)
        try:
            # Checks the certificate and the host name. Only the file's authorities are trusted, not those of this
            # machine.
            context = ssl.create_default_context(cafile=self.ssl_cafile)
        except OSError as error:  # what ssl raises for unreadable and for senseless files
            raise unusable(section, "ssl_cafile", str(self.ssl_cafile), str(error)) from error
        certificate = self.client_certificate(section)
        if certificate is not None:
            certificate.load_into(context)
        return context


@dataclass(frozen=True, slots=True)
class LogSettings:
    """The Kafka that holds the log: `bootstrap` is `host:port[,host:port...]`; `prefix` begins every topic's name."""

    bootstrap: str
    prefix: str = DEFAULT_PREFIX
    security: Security = field(default_factory=Security)

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
class ClusterSettings:
    """A managed cluster, its limits, and the automatic actions on it; see `drover.state.scheduling.Limits`.

    The limits are defaults, which commands may change. The names of KIP-435 and Cruise Control are accepted, too
    (`drover.state.limit_names`).
    """

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
    windows: str | None = None

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
    none. `log_format` is text, json, or auto: text on a terminal and JSON elsewhere; it holds for `drover project` too.
    `allow_drover_topics` lets commands move Drover's own topics: whoever may send one decides then where the log lies.
    """

    name: str | None = None
    group: str | None = None
    instance_id: str | None = None
    session_timeout_ms: int = 10_000
    listen: str = "127.0.0.1:8150"
    snapshot_every_records: int = 10_000
    log_format: LogFormat = "auto"
    allow_drover_topics: bool = False

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
    `drover project` serves /livez, /readyz and /metrics.
    """

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
    master: str | None = None
    trigger_ms: int = 2000
    max_records_per_batch: int = 100_000
    keeps_history: bool = False
    keeps_days: int = 90
    # May contain passwords of stores and registries.
    options: dict[str, str] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        """Refuse unusable values, and an empty directory, which would mean the working directory."""
        if not self.directory:
            raise ValueError("directory must not be empty")
        for name in ("trigger_ms", "max_records_per_batch", "keeps_days"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1")


@dataclass(frozen=True, slots=True)
class PlanningSettings:
    """Settings of `drover plan`; `disk_limit` is the share of a disk that may be used at any moment."""

    disk_limit: float = 0.85

    def __post_init__(self) -> None:
        """Refuse an invalid share."""
        if not 0 < self.disk_limit <= 1:
            raise ValueError("disk_limit must be above 0 and at most 1, such as 0.85")


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
    hosts: tuple[str, ...] = ()
    writes: bool = False
    user_header: str = ""
    proxies: tuple[str, ...] = ("127.0.0.1", "::1")

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
    """All settings; `clusters` is by the operator's name for each."""

    log: LogSettings
    clusters: dict[str, ClusterSettings] = field(default_factory=dict)
    worker: WorkerSettings = WorkerSettings()
    zookeeper: ZooKeeperSettings = ZooKeeperSettings()
    spark: SparkSettings = field(default_factory=SparkSettings)
    planning: PlanningSettings = field(default_factory=PlanningSettings)
    web: WebSettings = field(default_factory=WebSettings)

    @property
    def group(self) -> str:
        """The workers' consumer group, which two installations on one Kafka must not share."""
        return self.worker.group or f"{self.log.prefix}-worker"

    @property
    def limits(self) -> dict[str, Limits]:
        """The limits of every managed cluster."""
        return {name: cluster.limits for name, cluster in self.clusters.items()}

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
