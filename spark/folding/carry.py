"""What the fold carries from one batch of the stream to the next: only what has not ended.

Its size is bounded by the reassignments under way, the open plans, the throttled brokers and the partitions sampled in
the last twenty minutes; what has ended is in the tables and nowhere else. These are the fold's own working values and
change while it runs; between two batches they are bytes in the sink, under the same fence as the tables.
"""

from msgspec import Struct

from drover.reassignment.phase import Phase


class Move(Struct, kw_only=True):
    """One reassignment under way; names as in `drover.reassignment.state.Reassignment`."""

    plan: str
    original: tuple[int, ...]
    target: tuple[int, ...]
    began_ms: int
    current: tuple[int, ...]
    phase: str = Phase.PENDING.value
    since_ms: int = 0
    step: int | None = None
    expected: tuple[int, ...] = ()
    replicas: tuple[int, ...] = ()
    leader: int | None = None
    is_cancelled: bool = False
    reason: str | None = None
    detail: str | None = None
    bytes_copied: int = 0
    bytes_unknown: bool = False
    replacement: str | None = None


class Throttle(Struct, kw_only=True):
    """What Drover has on one broker, and what it intends to put there; all None for nothing of Drover's."""

    leader_rate: int | None = None
    follower_rate: int | None = None
    since_ms: int | None = None
    intended: tuple[int | None, int | None] | None = None


class OpenPlan(Struct, kw_only=True, omit_defaults=True):
    """A plan of which something may still come: who opened it, and how much of it moves or waits."""

    requester: str
    active: int = 0
    waiting: int = 0
    is_cancelled: bool = False


class ClusterCarry(Struct, kw_only=True, omit_defaults=True):
    """What is carried of a cluster as a whole: its open plans, loads and throttles by broker, the queue."""

    plans: dict[str, OpenPlan] = {}
    moves_in: dict[int, int] = {}
    moves_out: dict[int, int] = {}
    throttles: dict[int, Throttle] = {}
    queue: dict[str, str] = {}


class Point(Struct, array_like=True, frozen=True):
    """One earlier sample, as far as a rate needs it."""

    at_ms: int
    bytes_done: int
    bytes_total: int


class SampleCarry(Struct, kw_only=True):
    """The samples of one partition that rates and gains are made from."""

    epoch: int
    at_ms: int
    step: int
    held: dict[int, int]
    points: list[Point]
    grown_ms: int
