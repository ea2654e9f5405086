"""The settings of healing: `[clusters.NAME.healing]` in drover.toml."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

from drover.events.healing import HealingLimits
from drover.state.limit_names import check_healing

_DEFAULTS = HealingLimits()


@dataclass(frozen=True, slots=True)
class HealingSettings:
    """Settings of healing (KIP-46); see `drover.events.healing.HealingLimits`, whose fields and defaults these are.

    That there is such a section lets absent brokers be noted and alarmed about; nothing moves by itself unless
    `failure_interval_ms` is 0 or more.
    """

    __pydantic_config__: ClassVar[Mapping[str, Any]] = {"extra": "forbid"}

    failure_interval_ms: int = _DEFAULTS.failure_interval_ms
    alarm_ms: int = _DEFAULTS.alarm_ms
    chunk_partitions: int = _DEFAULTS.chunk_partitions
    mass_failure_brokers: int = _DEFAULTS.mass_failure_brokers
    mass_failure_percent: int = _DEFAULTS.mass_failure_percent
    max_bytes_per_day: int | None = _DEFAULTS.max_bytes_per_day
    flapping_returns: int = _DEFAULTS.flapping_returns
    flapping_window_ms: int = _DEFAULTS.flapping_window_ms
    rolls_back_on_return: bool = _DEFAULTS.rolls_back_on_return
    throttle_bytes_per_second: int | None = _DEFAULTS.throttle_bytes_per_second
    disk_limit_percent: int = _DEFAULTS.disk_limit_percent

    def __post_init__(self) -> None:
        """Refuse limits that have no meaning (R46-8)."""
        check_healing(self.limits)

    @property
    def limits(self) -> HealingLimits:
        """The limits as decisions use them."""
        return HealingLimits(**asdict(self))
