"""Results of the rule `drover.reconcile.moves.route.next_call`: the next call on the way to a destination."""

from dataclasses import dataclass

from drover.events.reassignments import SkipReason
from drover.state.reassignment import Block, Step


@dataclass(frozen=True, slots=True)
class SendStep:
    """The alter call of a step; budgets and throttles come first."""

    step: Step


@dataclass(frozen=True, slots=True)
class SendCancel:
    """Kafka's cancel of the move that it lists."""


@dataclass(frozen=True, slots=True)
class SendOrder:
    """The list in its order, once Kafka lists no move: it drops replicas and reorders, and copies nothing."""

    replicas: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class GoBySteps:
    """The destination needs copies: ordinary steps lead to it from the present list."""

    destination: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Arrived:
    """The list is as close to the destination as the guards allow; `missing` names what it lacks."""

    missing: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Wait:
    """A gate or a guard is closed; the block says what opens it."""

    block: Block


@dataclass(frozen=True, slots=True)
class HoldOff:
    """KIP-236's guards forbid the cancel now: the reassignment goes on to its target meanwhile."""

    why: SkipReason


@dataclass(frozen=True, slots=True)
class ObserveAgain:
    """Observe again: the observation does not fit, and may be outdated."""


NextCall = SendStep | SendCancel | SendOrder | GoBySteps | Arrived | Wait | HoldOff | ObserveAgain
