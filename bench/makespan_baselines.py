"""What operators do without Drover, on the same model: all at once, waves, an incremental tool, Cruise Control."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from bench.ports_model import Instance, Network, Place, Shift, ports_of
from drover.events.partitions import TopicPartition

# From the decision to the first byte: the call, and the follower's first fetch; the same for everybody.
CALL_S = 0.05

# What may start now: of what waits, beside what moves.
Choose = Callable[[Sequence[Shift], Sequence[Shift]], list[Shift]]


@dataclass(frozen=True, slots=True)
class Outcome:
    """How long everything took until the last byte, and the most extra replicas that were there at a time."""

    seconds: float
    peak_extra: int


@dataclass(frozen=True, slots=True)
class Policy:
    """A way to move everything: what starts, and how often it looks whether something has ended."""

    choose: Choose
    poll_s: float


def play(instance: Instance, policy: Policy) -> Outcome:
    """Play a policy until everything has moved; the seconds are infinite if that never happens."""
    network, waiting = Network(instance), list(instance.shifts)
    moving: dict[TopicPartition, Shift] = {}
    left: Counter[TopicPartition] = Counter()
    peak, last_s = 0, 0.0
    while waiting or moving:
        for shift in policy.choose(waiting, tuple(moving.values())):
            moving[shift.key] = shift
            left[shift.key] = len(shift.added)
            network.start(shift, shift.added, network.now_s + CALL_S)
        waiting = [shift for shift in waiting if shift.key not in moving]
        peak = max(peak, sum(len(shift.added) for shift in moving.values()))
        ended = _until_something_ends(network, policy.poll_s)
        if ended is None:
            return Outcome(math.inf, peak)
        last_s, copies = ended
        for key in copies:
            left[key] -= 1
            if not left[key]:
                del moving[key]
    return Outcome(last_s, peak)


def _until_something_ends(network: Network, poll_s: float) -> tuple[float, list[TopicPartition]] | None:
    """Go on to the first look that finds something ended; None if nothing ever does."""
    ended: list[TopicPartition] = []
    last_s = network.now_s
    while not ended:
        event_s = network.next_event_s
        if math.isinf(event_s):
            return None
        ended = [key for key, _ in network.advance(event_s)]
        last_s = network.now_s
    look_s = math.ceil(network.now_s / poll_s) * poll_s if poll_s else network.now_s
    while (event_s := network.next_event_s) <= look_s:
        more = [key for key, _ in network.advance(event_s)]
        last_s = network.now_s if more else last_s
        ended += more
    network.advance(look_s)
    return last_s, ended


def all_at_once() -> Policy:
    """Submit everything in one request, as `kafka-reassign-partitions` does."""
    return Policy(lambda waiting, _: list(waiting), poll_s=0)


def waves(size: int) -> Policy:
    """Split the plan by hand: the next part when everything of the one before has ended (`--verify` every second)."""
    return Policy(lambda waiting, moving: [] if moving else list(waiting[:size]), poll_s=1)


def incremental(size: int) -> Policy:
    """Keep so many partitions moving, in the order of their names, looking every second (KIP-1335)."""
    return Policy(lambda waiting, moving: sorted(waiting, key=_name)[: size - len(moving)], poll_s=1)


def cruise_control(instance: Instance, cap: int = 5, at_most: int = 1250) -> Policy:
    """Fill each broker up to its cap in the order of the plan, and look again every ten seconds."""

    def choose(waiting: Sequence[Shift], moving: Sequence[Shift]) -> list[Shift]:
        loads = _loads(instance, moving)
        chosen: list[Shift] = []
        for shift in waiting:
            needs = set(ports_of(instance, shift))
            if all(loads[place] < cap for place in needs) and len(moving) + len(chosen) < at_most:
                loads.update(needs)
                chosen.append(shift)
        return chosen

    return Policy(choose, poll_s=10)


def _loads(instance: Instance, moving: Iterable[Shift]) -> Counter[Place]:
    """Count the tasks at each port: a partition is one, however many replicas it gets."""
    return Counter(place for shift in moving for place in set(ports_of(instance, shift)))


def _name(shift: Shift) -> TopicPartition:
    return shift.key
