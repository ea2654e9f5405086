"""PURE: a proposal as rows and as a document for programs; tables and -o json share them."""

from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from drover.planner.disks import DiskRemark, disk_remarks
from drover.planner.judgement import REMARKS
from drover.planner.model import ClusterModel
from drover.planner.proposal import BalanceFigures, BrokerFigures, Move, Proposal, Unmet, UnmetCode
from drover.planner.racks import Racks

# Shortcomings that the operator asked for: reported, but never refused.
SOFT = frozenset(
    {
        UnmetCode.EXCLUDED,
        UnmetCode.BOUND_REACHED,
        UnmetCode.LEFT_OUT,
    }
)

# Where only replicas and bytes are known, being even is a wish: whole replicas of a small cluster may not allow it.
BY_COUNT = frozenset({UnmetCode.OVERLOADED, UnmetCode.UNDERLOADED})


@dataclass(frozen=True, slots=True)
class MoveRow:
    """A partition that gets a new list; `bytes` are copied, None if the size of a copy is unknown."""

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
    `filling` those that have joined and are being filled. `topics` are those that the goal names explicitly.
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
        """The brokers that the plan empties and fills, as fields of an alter or a plan file."""
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
    """Return the lower bound of any schedule at this rate per broker, in seconds; None without a throttle or copies."""
    return None if throttle is None or not proposal.copies else proposal.lower_bound_s(throttle)


def totals(proposal: Proposal, request: Request) -> dict[str, Any]:
    """Return the totals of a proposal."""
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
    """Return the partitions that will be in fewer racks than the remaining brokers allow, once `lists` are reached."""
    racks = Racks(model.brokers, leaving)
    wrong = [
        (partition, lists.get(partition.name, partition.replicas))
        for partition in model.partitions
        if racks.excess(lists.get(partition.name, partition.replicas), model.within(partition.topic))
    ]
    return [
        {
            "topic": partition.topic,
            "partition": partition.partition,
            "replicas": replicas,
            "racks": [racks.of(b) for b in replicas],
        }
        for partition, replicas in wrong
    ]


def proposal_document(proposal: Proposal, request: Request, model: ClusterModel) -> dict[str, Any]:
    """Return the proposal for programs; fields may be added and never changed."""
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
        "loads": [asdict(figures) for figures in proposal.loads],
        "unknown_loads": proposal.unknown_loads,
        "rack_violations": {
            "before": proposal.rack_violations_before,
            "after": proposal.rack_violations_after,
            "remaining": violations(model, lists, request.leaving),
        },
        "unmet": [asdict(unmet) for unmet in proposal.unmet],
        "log_directories": [asdict(remark) for remark in directory_remarks(proposal, model)],
    }


def directory_remarks(proposal: Proposal, model: ClusterModel) -> tuple[DiskRemark, ...]:
    """Return remarks about log directories: brokers that cannot receive because of them, and free space that counts."""
    return disk_remarks(model, [each.broker for each in proposal.brokers if each.copies_in])


def _balance(figures: BalanceFigures) -> dict[str, Any]:
    return {"replicas": asdict(figures.count), "bytes": asdict(figures.disk), "leaders": asdict(figures.leaders)}


def blocking(proposal: Proposal, request: Request, model: ClusterModel) -> list[Unmet]:
    """Return the obstacles between a proposal and its goal that the operator did not ask for; remarks are none.

    Topics that the operator excludes are no obstacle. Internal topics, which are excluded by default, are: an operator
    who empties a broker must say that they move too or may stay, and one who names such a topic that it may change.
    """
    keeping = brokers_that_keep_internal_topics(proposal, request, model)
    soft = SOFT | REMARKS | (frozenset() if proposal.loads else BY_COUNT)
    return [
        unmet
        for unmet in proposal.unmet
        if unmet.code not in soft or unmet.broker in keeping or _is_internal_and_named(unmet, request)
    ]


def _is_internal_and_named(unmet: Unmet, request: Request) -> bool:
    """Whether the goal names this topic, and only Drover's default excludes it."""
    is_named = unmet.topic in request.topics and unmet.topic not in request.excluded_topics
    return unmet.code is UnmetCode.EXCLUDED and is_named


def brokers_that_keep_internal_topics(proposal: Proposal, request: Request, model: ClusterModel) -> frozenset[int]:
    """Return the brokers to be emptied that keep replicas of internal topics that the operator has not excluded."""
    asked = {unmet.broker for unmet in proposal.unmet if unmet.code is UnmetCode.EXCLUDED and unmet.partition is None}
    lists = {(topic, number): replicas for topic, number, replicas in proposal.targets}
    internal = (
        partition
        for partition in model.partitions
        if partition.internal and partition.topic not in request.excluded_topics
    )
    return frozenset(
        broker for partition in internal for broker in lists.get(partition.name, partition.replicas) if broker in asked
    )


def changed_brokers(proposal: Proposal) -> tuple[BrokerFigures, ...]:
    """Return the brokers that a proposal affects."""
    return tuple(
        each
        for each in proposal.brokers
        if each.copies_in or each.copies_dropped or each.bytes_out or each.leaders_before != each.leaders_after
    )


def unmet_lines(proposal: Proposal, request: Request, model: ClusterModel) -> list[str]:
    """Return the unmet parts of the goal, obstacles first, and hints about options."""
    obstacles = frozenset(blocking(proposal, request, model))
    ordered = sorted(proposal.unmet, key=lambda unmet: unmet not in obstacles)
    hint = "add --include-internal to move internal topics too, or --partial to leave them where they are"
    hints = [hint] if brokers_that_keep_internal_topics(proposal, request, model) else []
    if any(_is_internal_and_named(unmet, request) for unmet in proposal.unmet):
        hints.append("add --include-internal to change internal topics too")
    return [*(f"{unmet.text} ({unmet.code.value})" for unmet in ordered), *hints]
