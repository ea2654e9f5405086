"""The shapes of the sections that one command uses each, as values: `[spark]` and `[planning]`."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

_STRICT: Mapping[str, Any] = {"extra": "forbid"}


@dataclass(frozen=True, slots=True)
class SparkSettings:
    """The Spark job: `directory` holds its tables and checkpoints; spark/README.md tells what each setting means.

    `master` is Spark's own; None means what spark-submit said, else two threads of this machine. `options` are Spark's
    own settings. `keeps_history` adds a Parquet history of everything that has ended; the other tables keep it for
    `keeps_days`.
    """

    __pydantic_config__: ClassVar[Mapping[str, Any]] = _STRICT

    directory: str = ".local/spark"
    master: str | None = None
    trigger_ms: int = 2000
    max_records_per_batch: int = 100_000
    keeps_history: bool = False
    keeps_days: int = 90
    # Passwords of stores and registries stand among them.
    options: dict[str, str] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        """Refuse what no query could run with, and a directory that would be the working one by mistake."""
        if not self.directory:
            raise ValueError("directory must not be empty")
        for name in ("trigger_ms", "max_records_per_batch", "keeps_days"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1")


@dataclass(frozen=True, slots=True)
class PlanningSettings:
    """Settings of `drover plan`; `disk_limit` is the share of a disk that may be used at any moment."""

    __pydantic_config__: ClassVar[Mapping[str, Any]] = _STRICT

    disk_limit: float = 0.85

    def __post_init__(self) -> None:
        """Refuse what is no share."""
        if not 0 < self.disk_limit <= 1:
            raise ValueError("disk_limit must be above 0 and at most 1, such as 0.85")
