"""The settings of healing: `[clusters.NAME.healing]` in drover.toml."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from drover.scheduling.limit_names import check_healing
from events.healing import HealingLimits


@dataclass(frozen=True, slots=True)
class HealingSettings:
    """Settings of healing (KIP-46); see `events.healing.HealingLimits`.

    That there is such a section lets absent brokers be noted and alarmed about; nothing moves by itself unless
    `failure_interval_ms` is 0 or more. `kafka_heal_failure_interval` and `kafka_heal_chunk_size` are KIP-46's names.
    """

    __pydantic_config__: ClassVar[Mapping[str, Any]] = {"extra": "forbid"}

    failure_interval_ms: int = -1
    alarm_ms: int = 900_000
    chunk_partitions: int = 10
    mass_failure_brokers: int = 3
    mass_failure_percent: int = 20
    max_bytes_per_day: int | None = None
    flapping_returns: int = 3
    flapping_window_ms: int = 3_600_000
    rolls_back_on_return: bool = False
    throttle_bytes_per_second: int | None = None
    kafka_heal_failure_interval: int | None = None
    kafka_heal_chunk_size: int | None = None

    def __post_init__(self) -> None:
        """Refuse what R46-8 gives no meaning, and a setting that is given under both of its names."""
        for name, alias, default in (
            ("failure_interval_ms", "kafka_heal_failure_interval", -1),
            ("chunk_partitions", "kafka_heal_chunk_size", 10),
        ):
            if getattr(self, alias) is not None and getattr(self, name) != default:
                raise ValueError(f"{name} and {alias} are the same setting: choose one")
        check_healing(self.limits)

    @property
    def limits(self) -> HealingLimits:
        """The limits as decisions use them."""
        interval_ms, chunk = self.kafka_heal_failure_interval, self.kafka_heal_chunk_size
        return HealingLimits(
            failure_interval_ms=self.failure_interval_ms if interval_ms is None else interval_ms,
            alarm_ms=self.alarm_ms,
            chunk_partitions=self.chunk_partitions if chunk is None else chunk,
            mass_failure_brokers=self.mass_failure_brokers,
            mass_failure_percent=self.mass_failure_percent,
            max_bytes_per_day=self.max_bytes_per_day,
            flapping_returns=self.flapping_returns,
            flapping_window_ms=self.flapping_window_ms,
            rolls_back_on_return=self.rolls_back_on_return,
            throttle_bytes_per_second=self.throttle_bytes_per_second,
        )
