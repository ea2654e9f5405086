"""The size and kind of cluster that `up` asks for: checks, comparison with an existing cluster, and the new spec."""

from dataclasses import dataclass
from pathlib import Path

from drover.errors import ConfigurationError
from drover.jars import KAFKA_VERSION
from drover.local.layout import ClusterSpec, Layout, check_size, check_version, new_spec, ports_needed
from drover.local.ports import reserve

DEFAULT_BROKERS = 4
DEFAULT_RACKS = 3


@dataclass(frozen=True, slots=True)
class Wanted:
    """The size and the kind of a cluster; None means that of the existing cluster, else the default.

    No controllers mean ZooKeeper mode.
    """

    brokers: int | None = None
    racks: int | None = None
    secure: bool = False
    kafka: str | None = None
    controllers: int | None = None

    def check(self) -> None:
        """Raise `ConfigurationError` for an impossible cluster."""
        check_size(*self._size())
        check_version(self.kafka or KAFKA_VERSION, self._controllers(), secure=self.secure)

    def check_same(self, spec: ClusterSpec, directory: Path) -> None:
        """Raise `ConfigurationError` if the existing cluster has another size or kind."""
        count = len(spec.controllers)
        holds = None
        if self.brokers not in {None, len(spec.brokers)} or self.racks not in {None, spec.racks}:
            holds = f"a cluster of {len(spec.brokers)} brokers in {spec.racks} racks"
        elif self.secure and not spec.secure:
            holds = "a cluster that is not secure"
        elif self.kafka not in {None, spec.kafka} or self.controllers not in {None, count}:
            kind = f"with {count} controller{'' if count == 1 else 's'}" if count else "in ZooKeeper mode"
            holds = f"a cluster of Kafka {spec.kafka} {kind}"
        if holds is not None:
            remedy = f"take it down first (drover local down --dir {directory}) or choose another --dir"
            raise ConfigurationError(f"{directory} holds {holds}; {remedy}")

    def reserve(self, layout: Layout) -> ClusterSpec:
        """Choose free ports for a new cluster, and store its spec."""
        brokers, racks = self._size()
        kafka, controllers, secure = self.kafka or KAFKA_VERSION, self._controllers(), self.secure
        return reserve(
            layout,
            ports_needed(brokers, secure=secure, controllers=controllers),
            lambda ports: new_spec(brokers, racks, ports, secure=secure, kafka=kafka, controllers=controllers),
        )

    def _size(self) -> tuple[int, int]:
        brokers = DEFAULT_BROKERS if self.brokers is None else self.brokers
        return brokers, min(DEFAULT_RACKS, brokers) if self.racks is None else self.racks

    def _controllers(self) -> int:
        return 1 if self.controllers is None else self.controllers
