"""PURE: what is told of a proposal, as rows and as one document for programs; tables and -o json share them."""

from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from drover.planner.disks import DiskRemark, disk_remarks
from drover.planner.judgement import REMARKS
from drover.planner.model import ClusterModel
from drover.planner.proposal import BalanceFigures, BrokerFigures, Move, Proposal, Unmet, UnmetCode
from drover.planner.racks import Racks

# What the operator asked for, or a bound on how good a plan is: worth a line, and no reason to refuse.
SOFT = frozenset(
    {
        UnmetCode.EXCLUDED,
        UnmetCode.OVERLOADED,
        UnmetCode.UNDERLOADED,
        UnmetCode.BOUND_REACHED,
        UnmetCode.LEFT_OUT,
    }
)


@dataclass(frozen=True, slots=True)
class MoveRow:
    """A partition that gets another list; `bytes` are copied, None if the size of a copy is unknown."""

    topic: str
    partition: int
    before: tuple[int, ...]
    after: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]
    bytes: int | None
    moves_leader: bool
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Request:
    """The request behind a proposal: its words, the cluster's name, and the throttle for the estimate.

    `excluded_topics` are those that the operator has excluded by name, `leaving` the brokers that are being emptied,
    `filling` those that have joined and are being filled. `topics` are those that the goal names one by one.
    """

    asked: str
    cluster: str | None
    throttle_bytes_per_second: int | None = None
    excluded_topics: frozenset[str] = frozenset()
    leaving: frozenset[int] = frozenset()
    filling: frozenset[int] = frozenset()
    topics: frozenset[str] = frozenset()

    @property
    def goal(self) -> dict[str, tuple[int, ...]]:
        """The brokers that the plan empties and fills, as an alter and a plan file say it."""
        return {"empties": tuple(sorted(self.leaving)), "fills": tuple(sorted(self.filling))}


def move_rows(proposal: Proposal) -> list[MoveRow]:
    """Return the moves in the order in which they should be done."""
    return [_move_row(move) for move in proposal.moves]


def _move_row(move: Move) -> MoveRow:
    return MoveRow(
        topic=move.topic,
        partition=move.partition,
        before=move.before,
        after=move.after,
        adding=move.adding,
        removing=move.removing,
        bytes=None if move.size_bytes is None and move.adding else move.copied_bytes,
        moves_leader=move.moves_leader,
        reasons=tuple(reason.value for reason in move.reasons),
    )


def least_time_s(proposal: Proposal, throttle: int | None) -> float | None:
    """Return the seconds that no schedule can beat at this rate per broker; None without a throttle or copies."""
    return None if throttle is None or not proposal.copies else proposal.lower_bound_s(throttle)


def totals(proposal: Proposal, request: Request) -> dict[str, Any]:
    """Return a proposal in sum."""
    return {
        "partitions": len(proposal.moves),
        "copies": proposal.copies,
        "bytes": proposal.copied_bytes,
        "leaders_moved": proposal.leaders_moved,
        "unknown_sizes": proposal.unknown_sizes,
        "throttle_bytes_per_second": request.throttle_bytes_per_second,
        "least_time_s": least_time_s(proposal, request.throttle_bytes_per_second),
    }


def violations(
    model: ClusterModel, lists: Mapping[tuple[str, int], tuple[int, ...]], leaving: Collection[int]
) -> list[dict[str, Any]]:
    """Name the partitions that are in fewer racks than the brokers that stay allow, once `lists` are reached."""
    racks = Racks(model.brokers, leaving)
    wrong = [
        (one, lists.get(one.name, one.replicas))
        for one in model.partitions
        if racks.excess(lists.get(one.name, one.replicas))
    ]
    return [
        {"topic": one.topic, "partition": one.partition, "replicas": replicas, "racks": [racks.of(b) for b in replicas]}
        for one, replicas in wrong
    ]


def proposal_document(proposal: Proposal, request: Request, model: ClusterModel) -> dict[str, Any]:
    """Return everything for programs; fields may be added and never changed."""
    lists = {(topic, number): replicas for topic, number, replicas in proposal.targets}
    return {
        "asked": request.asked,
        **request.goal,
        "cluster": request.cluster,
        "hash": proposal.digest,
        "refused": proposal.refused,
        "interrupted": proposal.interrupted,
        "totals": totals(proposal, request),
        "moves": [asdict(row) for row in move_rows(proposal)],
        "brokers": [asdict(figures) for figures in proposal.brokers],
        "unknown_disks": proposal.unknown_disks,
        "balance": {"before": _balance(proposal.before), "after": _balance(proposal.after)},
        "rack_violations": {
            "before": proposal.rack_violations_before,
            "after": proposal.rack_violations_after,
            "remaining": violations(model, lists, request.leaving),
        },
        "unmet": [asdict(one) for one in proposal.unmet],
        "log_directories": [asdict(remark) for remark in directory_remarks(proposal, model)],
    }


def directory_remarks(proposal: Proposal, model: ClusterModel) -> tuple[DiskRemark, ...]:
    """Say which brokers receive nothing because of their log directories, and what counts of those that receive."""
    return disk_remarks(model, [each.broker for each in proposal.brokers if each.copies_in])


def _balance(figures: BalanceFigures) -> dict[str, Any]:
    return {"replicas": asdict(figures.count), "bytes": asdict(figures.disk), "leaders": asdict(figures.leaders)}


def blocking(proposal: Proposal, request: Request, model: ClusterModel) -> list[Unmet]:
    """Return what keeps a proposal from its goal, and nobody asked for; a remark keeps it from nothing.

    What stays because the operator excludes it is no obstacle. Internal topics are excluded by themselves: who empties
    a broker has to say that they move too, or that they may stay; who names one has to say that it may change.
    """
    keeping = brokers_that_keep_internal_topics(proposal, request, model)
    return [
        one
        for one in proposal.unmet
        if one.code not in SOFT | REMARKS or one.broker in keeping or _is_internal_and_named(one, request)
    ]


def _is_internal_and_named(one: Unmet, request: Request) -> bool:
    """Whether the goal names this very topic, and nobody but Drover excludes it."""
    is_named = one.topic in request.topics and one.topic not in request.excluded_topics
    return one.code is UnmetCode.EXCLUDED and is_named


def brokers_that_keep_internal_topics(proposal: Proposal, request: Request, model: ClusterModel) -> frozenset[int]:
    """Return the brokers that were to lose replicas of internal topics, which nobody has excluded, and keep them."""
    asked = {one.broker for one in proposal.unmet if one.code is UnmetCode.EXCLUDED and one.partition is None}
    lists = {(topic, number): replicas for topic, number, replicas in proposal.targets}
    internal = (one for one in model.partitions if one.internal and one.topic not in request.excluded_topics)
    return frozenset(broker for one in internal for broker in lists.get(one.name, one.replicas) if broker in asked)


def changed_brokers(proposal: Proposal) -> tuple[BrokerFigures, ...]:
    """Return the brokers for which a proposal means anything."""
    return tuple(
        each
        for each in proposal.brokers
        if each.copies_in or each.copies_dropped or each.bytes_out or each.leaders_before != each.leaders_after
    )


def unmet_lines(proposal: Proposal, request: Request, model: ClusterModel) -> list[str]:
    """Say what is not met, what keeps the proposal from its goal first."""
    obstacles = frozenset(blocking(proposal, request, model))
    ordered = sorted(proposal.unmet, key=lambda one: one not in obstacles)
    hint = "--include-internal moves internal topics too, --partial leaves them where they are"
    hints = [hint] if brokers_that_keep_internal_topics(proposal, request, model) else []
    if any(_is_internal_and_named(one, request) for one in proposal.unmet):
        hints.append("--include-internal changes internal topics too")
    return [*(f"{one.text} ({one.code.value})" for one in ordered), *hints]
