"""Named stories, each short enough that a worker can be made to die at every single boundary of it."""

from dataclasses import dataclass, field
from typing import Any

from drover.events.healing import HealingLimits
from tests.simulation.cluster import Loss
from tests.simulation.settings import Settings

Actions = tuple[tuple[Any, ...], ...]

_PLAIN = Settings()
# So slow that nothing is ever in sync by itself: whenever the worker dies, the move is still under way.
_ENDLESS = Settings(copy_bytes_per_second=1)
# A broker is healed as soon as it is missed, in three chunks; in the end it is still dead.
_HEALED = Settings(healing=HealingLimits(failure_interval_ms=0, alarm_ms=-1, chunk_partitions=2), heals_brokers=False)
_HEALED_SLOWLY = Settings(
    healing=HealingLimits(failure_interval_ms=0, alarm_ms=-1, chunk_partitions=2), copy_bytes_per_second=200_000
)
_WHEN = "what was healed when the broker came back depends on when the worker died"


@dataclass(frozen=True, slots=True)
class Scenario:
    """What happens, in which world. `differs` names what the end may have otherwise than undisturbed, and why."""

    name: str
    settings: Settings
    actions: Actions
    differs: dict[str, str] = field(default_factory=dict)


def _alter(name: str, *targets: tuple[str, int, list[int]], cluster: str = "east", **fields: Any) -> tuple[Any, ...]:
    return "alter", [list(target) for target in targets], _by_ana(name, cluster, fields), False, None


def _cancel(name: str, cluster: str = "east", **fields: Any) -> tuple[Any, ...]:
    return "cancel", _by_ana(name, cluster, {"mode": "rollback", **fields})


def _by_ana(name: str, cluster: str, fields: dict[str, Any]) -> dict[str, Any]:
    return {"id": name, "cluster": cluster, "by": "ana", "reason": "because", **fields}


_RUN = ("run", 1000)
# Longer than a takeover: what was sent before is decided. Cancels go before alters that wait, so people wait for these.
_DECIDED = ("run", 20_000)

SCENARIOS = (
    Scenario("one-step", _PLAIN, (_alter("move", ("orders", 0, [5, 2, 3])), _RUN)),
    Scenario("every-replica-is-new", _PLAIN, (_alter("move", ("orders", 0, [5, 6, 4])), _RUN)),
    Scenario("fewer-replicas", _PLAIN, (_alter("move", ("orders", 1, [4, 2])), _RUN)),
    Scenario("another-order", _PLAIN, (_alter("move", ("orders", 1, [4, 3, 2])), _RUN)),
    Scenario(
        "throttled",
        _PLAIN,
        (_alter("move", ("orders", 0, [5, 6, 3]), throttle_bytes_per_second=100_000), _RUN),
    ),
    Scenario(
        "two-throttles",
        _PLAIN,
        (
            _alter("fast", ("orders", 0, [5, 2, 3]), throttle_bytes_per_second=250_000),
            _alter("slow", ("payments", 0, [5, 2, 3]), throttle_bytes_per_second=100_000),
            _RUN,
        ),
    ),
    Scenario(
        "rolled-back-while-copying",
        _ENDLESS,
        (_alter("move", ("orders", 0, [5, 2, 3])), _DECIDED, _cancel("back", all=True), _RUN),
    ),
    Scenario(
        "rolled-back-behind-a-throttle",
        _ENDLESS,
        (
            _alter("move", ("orders", 0, [5, 6, 3]), throttle_bytes_per_second=100_000),
            _DECIDED,
            _cancel("back", plan="move"),
            _RUN,
        ),
    ),
    Scenario(
        "rolled-back-after-a-step",
        Settings(copy_bytes_per_second=20_000, partition_bytes=300_000),
        (_alter("move", ("orders", 0, [5, 6, 4])), _DECIDED, _cancel("back", topics=["orders"]), _RUN),
    ),
    Scenario(
        "one-at-a-time",
        Settings(max_partitions_in_flight=1),
        (
            _alter("move", ("orders", 0, [5, 2, 3]), ("orders", 1, [6, 3, 4]), ("payments", 0, [4, 2, 3])),
            _RUN,
        ),
    ),
    Scenario(
        "cancelled-in-the-queue",
        Settings(max_partitions_in_flight=1, copy_bytes_per_second=1),
        (
            _alter("first", ("orders", 0, [5, 2, 3])),
            _alter("second", ("orders", 1, [6, 3, 4])),
            _DECIDED,
            _cancel("back", plan="second"),
            _cancel("both", plan="first"),
            _RUN,
        ),
    ),
    Scenario(
        "frozen",
        _PLAIN,
        (
            ("freeze", _by_ana("freeze", "east", {})),
            _alter("move", ("orders", 0, [5, 2, 3])),
            _RUN,
            ("unfreeze", _by_ana("unfreeze", "east", {})),
            _RUN,
        ),
    ),
    Scenario(
        "destination-dies-and-returns",
        Settings(copy_bytes_per_second=200_000),
        (
            _alter("move", ("orders", 0, [5, 2, 3])),
            ("run", 500),
            ("stop-broker", "east", 5),
            ("run", 3000),
            ("start-broker", "east", 5),
            _RUN,
        ),
    ),
    Scenario(
        "rolled-back-to-an-unregistered-broker",
        Settings(copy_bytes_per_second=1, heals_brokers=False),
        (
            _alter("move", ("orders", 0, [5, 2, 3])),
            _DECIDED,
            ("stop-broker", "east", 1),
            ("run", 3000),
            ("unregister", "east", 1),
            _cancel("back", plan="move"),
            _RUN,
        ),
        differs={"replicas": "where the step was never sent, there was no cancel of Kafka's that loses the order"},
    ),
    Scenario(
        "answer-lost",
        _PLAIN,
        (("lose", "east", Loss.UNANSWERED.value), _alter("move", ("orders", 0, [5, 2, 3])), _RUN),
    ),
    Scenario(
        "request-lost",
        _PLAIN,
        (("lose", "east", Loss.UNSENT.value), _alter("move", ("orders", 0, [5, 2, 3])), _RUN),
    ),
    Scenario(
        "cancel-lost",
        _ENDLESS,
        (
            _alter("move", ("orders", 0, [5, 2, 3])),
            _DECIDED,
            ("lose", "east", Loss.UNANSWERED.value),
            _cancel("back", all=True),
            _RUN,
        ),
    ),
    Scenario(
        "misplaced-malformed-and-doubled",
        Settings(shards=2, clusters=2),
        (
            ("alter", [["orders", 0, [5, 2, 3]]], _by_ana("west", "west", {}), False, 0),
            ("malformed", 0, 0, "c1"),
            _alter("east", ("orders", 1, [5, 3, 4])),
            ("duplicate", 1, 0),
            _RUN,
        ),
    ),
    Scenario("healed", _HEALED, (_RUN, ("stop-broker", "east", 3), ("run", 40_000))),
    Scenario(
        "healed-until-it-returns",
        _HEALED_SLOWLY,
        (_RUN, ("stop-broker", "east", 3), ("run", 16_500), ("start-broker", "east", 3), _RUN),
        differs={"replicas": _WHEN, "plans": _WHEN},
    ),
    Scenario(
        "topic-deleted",
        _ENDLESS,
        (_alter("move", ("orders", 0, [5, 2, 3])), _RUN, ("delete", "east", "orders"), ("run", 3000)),
        differs={
            "plans": "a worker that stood still may decide the command only after the topic was deleted",
            "verdicts": "the same: it is refused then, since there is nothing to move",
        },
    ),
)
