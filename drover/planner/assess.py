"""The figures of a plan, whoever made it, and the hash that holds the cluster to what it was made for."""

import hashlib
import json
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence

from drover.planner.figures import balance_of, broker_figures, largest_room_of, loads_of
from drover.planner.goals import DEFAULT_LIMITS, Limits
from drover.planner.judgement import arriving, changed_factors, crowded_racks, reservation, situation, unreachable
from drover.planner.load_figures import load_figures
from drover.planner.loads import measures_of
from drover.planner.model import Broker, ClusterModel, Partition
from drover.planner.overloads import broken_limits
from drover.planner.placement import outside_of_sets, too_few_leaders
from drover.planner.proposal import Basis, Move, Proposal, Reason, Targets, Unmet, UnmetCode
from drover.planner.racks import Racks
from drover.unreachable import unreachable_in_words


def assess(model: ClusterModel, targets: Targets, limits: Limits = DEFAULT_LIMITS) -> Proposal:
    """Judge new replica lists that somebody else has chosen, by the same figures as a proposal.

    `unmet` names every constraint that they break: lists that Kafka would refuse, unknown partitions and brokers,
    copies to brokers that may not receive any, capacities above their limits, copies that no disk has room for, fewer
    racks than before, and moves that cannot end as the cluster is (`drover.planner.judgement`), which also remarks what
    changes. Lists that are as they should be already are left out of the moves.
    """
    partitions = model.partition_by_name
    unmet: list[Unmet] = []
    moves: list[Move] = []
    for name, after in sorted(targets.items()):
        partition = partitions.get(name)
        if partition is None:
            text = f"{name[0]}:{name[1]} does not exist"
            unmet.append(Unmet(UnmetCode.UNKNOWN_PARTITION, text, topic=name[0], partition=name[1]))
        elif not after or len(set(after)) != len(after):
            text = f"{name[0]}:{name[1]}: {list(after)} is not a list of different brokers"
            unmet.append(Unmet(UnmetCode.WRONG_LIST, text, topic=name[0], partition=name[1]))
        elif after != partition.replicas:
            moves.append(move_of(partition, after, (Reason.GIVEN,)))
    unmet += (*situation(model, moves), *_broken(model, moves), *_too_large(model, moves, limits))
    unmet += (*outside_of_sets(model, moves), *too_few_leaders(model, moves, only_fewer=True))
    unmet += broken_limits(model, moves, limits)
    unmet += (*changed_factors(model, moves), *crowded_racks(model, moves), *unreachable(model.brokers))
    return proposal_of(model, moves, limits, unmet=unmet)


def proposal_of(
    model: ClusterModel,
    moves: Sequence[Move],
    limits: Limits,
    *,
    leaving: Collection[int] = (),
    unmet: Sequence[Unmet] = (),
    interrupted: bool = False,
) -> Proposal:
    """Add to moves all that people want to know before they say yes.

    `leaving` are brokers that are being emptied: they do not count in the balance, and neither do those that another
    plan empties.
    """
    counting = [
        broker.id for broker in model.brokers if broker.alive and broker.id not in leaving and broker.emptied_by is None
    ]
    racks = Racks(model.brokers, leaving)
    targets = {(move.topic, move.partition): move.after for move in moves}
    before, after = loads_of(model, {}), loads_of(model, targets)
    brokers = broker_figures(model, moves, limits, before, after)
    violations = [
        partition.name
        for partition in model.partitions
        if racks.excess(partition.replicas, model.within(partition.topic))
    ]
    changed = sum(racks.excess(move.after, model.within(move.topic)) > 0 for move in moves)
    basis = basis_of(model, targets)
    measures = measures_of(model)
    return Proposal(
        moves=tuple(moves),
        brokers=brokers,
        before=balance_of(before, counting),
        after=balance_of(after, counting),
        rack_violations_before=len(violations),
        rack_violations_after=sum(name not in targets for name in violations) + changed,
        unmet=(
            *unmet,
            *arriving(model.brokers, leaving),
            *(_overfull(each.broker) for each in brokers if _is_overfull(each.peak_extra_bytes, each.room_bytes)),
        ),
        basis=basis,
        digest=digest_of(basis, targets),
        refused=False,
        interrupted=interrupted,
        unknown_sizes=sum(move.size_bytes is None for move in moves if move.adding),
        unknown_disks=tuple(each.broker for each in brokers if each.copies_in and each.room_bytes is None),
        loads=load_figures(model, targets, limits, measures, leaving)
        if measures.compares_more or limits.asks_for_bands
        else (),
        unknown_loads=measures.left_out,
    )


def move_of(partition: Partition, after: tuple[int, ...], reasons: tuple[Reason, ...]) -> Move:
    """Make the move of a partition to a new list."""
    return Move(partition.topic, partition.partition, partition.replicas, after, reasons, partition.size_bytes)


def basis_of(model: ClusterModel, targets: Targets) -> Basis:
    """Collect what these targets depend on in this cluster: the present lists and the brokers of both."""
    partitions = model.partition_by_name
    moving = tuple(_place(name, partitions.get(name)) for name in sorted(targets))
    ids = {broker for _, _, _, replicas in moving for broker in replicas}
    ids.update(broker for after in targets.values() for broker in after)
    counts = Counter(broker for partition in model.partitions for broker in partition.replicas)
    known = model.broker_by_id
    return Basis(
        model.cluster_id, moving, tuple(_life(known.get(broker), broker, counts[broker]) for broker in sorted(ids))
    )


def digest_of(basis: Basis, targets: Targets) -> str:
    """Hash what a plan depends on and what it does; the same in any process, 16 hexadecimal digits.

    `alter --plan-hash` computes it again from the cluster and the file: it differs if the cluster is another one, or if
    a topic was made anew, a list has changed, or a broker has died, come back, gone to another rack, or has more or
    fewer replicas. Sizes, leaders and ISRs change all the time and are left out.
    """
    moves = sorted((*name, after) for name, after in targets.items())
    content = [basis.cluster_id, basis.partitions, basis.brokers, moves]
    encoded = json.dumps(content, separators=(",", ":"), ensure_ascii=True).encode()
    return hashlib.sha256(encoded).hexdigest()[:16]


def changes(before: Basis, after: Basis) -> tuple[str, ...]:
    """Say in words what differs between the cluster that a proposal was made for and the present one."""
    if before.cluster_id != after.cluster_id:
        was, now = before.cluster_id or "one of unknown id", after.cluster_id or "one of unknown id"
        return (f"the plan was made for Kafka cluster {was}, and this is {now}",)
    return (*_changed_topics(before, after), *_changed_lists(before, after), *_changed_brokers(before, after))


def _changed_topics(before: Basis, after: Basis) -> Iterable[str]:
    old, new = ({topic: topic_id for topic, _, topic_id, _ in basis.partitions} for basis in (before, after))
    known = {topic for topic, _, _, replicas in before.partitions if replicas}
    for topic in sorted(old):
        # Without an id it does not exist any more, which its lists tell.
        if old[topic] and new.get(topic) and new[topic] != old[topic]:
            yield f"topic {topic} was deleted and made anew"
        elif new.get(topic) and not old[topic] and topic in known:
            yield f"the id of topic {topic} was unknown, and now is {new[topic]}"


def _changed_lists(before: Basis, after: Basis) -> Iterable[str]:
    old, new = ({(topic, number): lists for topic, number, _, lists in basis.partitions} for basis in (before, after))
    for name in sorted(old.keys() | new.keys()):
        was, now = old.get(name, ()), new.get(name, ())
        if was != now:
            yield f"{name[0]}:{name[1]} was on {_said(was)}, and now is on {_said(now)}"


def _changed_brokers(before: Basis, after: Basis) -> Iterable[str]:
    old, new = ({broker: facts for broker, *facts in basis.brokers} for basis in (before, after))
    for broker in sorted(old.keys() & new.keys()):
        (rack, alive, count), (rack_now, alive_now, count_now) = old[broker], new[broker]
        if alive != alive_now:
            yield f"broker {broker} {'has come back' if alive_now else 'is not alive any more'}"
        if rack != rack_now:
            was, now = ("no rack" if name is None else f"rack {name}" for name in (rack, rack_now))
            yield f"broker {broker} was in {was}, and now is in {now}"
        if count != count_now:
            yield f"broker {broker} had {count} replicas, and now has {count_now}"


def _said(replicas: tuple[int, ...]) -> str:
    return str(list(replicas)) if replicas else "no broker"


def _place(name: tuple[str, int], partition: Partition | None) -> tuple[str, int, str, tuple[int, ...]]:
    return (*name, "", ()) if partition is None else (*name, partition.topic_id, partition.replicas)


def _life(broker: Broker | None, number: int, count: int) -> tuple[int, str | None, bool, int]:
    return (number, None, False, count) if broker is None else (number, broker.rack, broker.alive, count)


def _broken(model: ClusterModel, moves: Sequence[Move]) -> Iterable[Unmet]:
    """Name the constraints that moves break, except those of disks."""
    brokers = model.broker_by_id
    racks = Racks(model.brokers)
    for move in moves:
        name = f"{move.topic}:{move.partition}"
        for added in move.adding:
            refusal = why_not(brokers, added)
            if refusal is not None:
                yield Unmet(refusal[0], f"{name}: {refusal[1]}", move.topic, move.partition, added)
        within = model.within(move.topic)
        if racks.excess(move.after, within) > racks.excess(move.before, within):
            text = f"{name}: {_said(move.after)} is on fewer racks than the brokers allow"
            yield Unmet(UnmetCode.RACK_SPREAD, text, move.topic, move.partition)


def _too_large(model: ClusterModel, moves: Sequence[Move], limits: Limits) -> Iterable[Unmet]:
    """Name the copies that no single disk has room for; of a broker with one disk, the sum of all says so."""
    rooms = {
        broker.id: room
        for broker in model.brokers
        if len(broker.receiving_volumes) > 1 and (room := largest_room_of(broker, limits.disk_limit)) is not None
    }
    for move in moves:
        size = move.size_bytes or 0
        for added in move.adding:
            if size > rooms.get(added, size):
                where = f"{move.topic}:{move.partition}: no disk of broker {added}"
                text = f"{where} has room for {size:,} bytes below the disk limit"
                yield Unmet(UnmetCode.NO_ROOM, text, move.topic, move.partition, added)


def why_not(brokers: Mapping[int, Broker], number: int) -> tuple[UnmetCode, str] | None:
    """Say why a broker may not receive replicas; None if it may."""
    broker = brokers.get(number)
    if broker is None:
        return (UnmetCode.UNKNOWN_BROKER, f"there is no broker {number}")
    if not broker.alive:
        return (UnmetCode.DEAD_BROKER, f"broker {number} is not alive")
    if broker.unreachable:
        return (UnmetCode.UNREACHABLE_BROKER, unreachable_in_words((number,)))
    if broker.excluded:
        return (UnmetCode.EXCLUDED, f"broker {number} is excluded")
    if broker.held:
        return (UnmetCode.EXCLUDED, f"broker {number} is held")
    if broker.failing:
        return (UnmetCode.EXCLUDED, f"broker {number} is failing")
    if broker.is_cordoned:
        return (UnmetCode.EXCLUDED, f"broker {number} is cordoned: cordoned.log.dirs names all of its log directories")
    if broker.is_reserved:
        return (UnmetCode.RESERVED, f"broker {number} gets nothing from others while {reservation(broker)}")
    return None


def _is_overfull(extra: int, room: int | None) -> bool:
    return room is not None and extra > room


def _overfull(broker: int) -> Unmet:
    text = f"broker {broker} would hold more than the disk limit allows while copies arrive"
    return Unmet(UnmetCode.NO_ROOM, text, broker=broker)
