"""How a ZooKeeper is reached, as a value; apart from the client, which few commands need."""

from dataclasses import dataclass, field


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
        """Whether the server can know who is writing."""
        return self.username is not None or self.cert_file is not None
