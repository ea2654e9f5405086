"""KIP-435's steps: the next list of a partition on its way to a target. Three pure rules, one per stepping.

`grow` adds replicas one after the other at the end of the list and drops all at once with the last step; `swap` brings
some in sync, then drops as many, and repeats (R435-7); `single` is one call, as Kafka does it. Below
min.insync.replicas every stepping only adds, because that is the repair, and all lacking replicas at once (R435-3).

Kafka refuses every list that names a broker without a registration, even the present one: all such brokers go with the
first step.
"""

from collections.abc import Collection, Mapping

from msgspec import Struct, field
from msgspec.structs import replace

from drover.decide.leader_order import deprioritise
from drover.decide.replica_sets import adding, only_appends, removing, without
from drover.events.plans import Stepping
from drover.events.traits import Completion
from drover.state.phase import Stage
from drover.state.reassignment import Reassignment, Step


class Situation(Struct, frozen=True, gc=False):
    """The inputs of a step: where the partition is and where it goes, who lives, and how much may be done at once.

    `original` is where the reassignment began. `is_short` says that fewer replicas are in sync than min.insync.replicas
    asks for of the present list. `drops_last` asks for steps that only add, and one at the end that drops. `listed` are
    the brokers that should not lead; `target` is in the order in which they come last (X8). `completion` is the
    trait of the cluster's version. `racks` are those of the brokers, as far as they are known. `unreachable` brokers
    live, and get no copy. `unregistered` are those of the present list that Kafka has no registration for; the target
    names none.
    """

    current: tuple[int, ...]
    target: tuple[int, ...]
    original: tuple[int, ...]
    live: Collection[int]
    isr: Collection[int]
    leader: int | None
    min_isr: int
    max_replicas_per_step: int
    is_short: bool = False
    drops_last: bool = False
    listed: Collection[int] = ()
    completion: Completion = Completion.ADDED_UNLESS_SHRINKING
    racks: Mapping[int, str | None] = field(default_factory=dict)
    unreachable: Collection[int] = ()
    unregistered: Collection[int] = ()

    @property
    def holds_up(self) -> tuple[int, ...]:
        """Return the replicas to be dropped that a step must not keep, because it would wait for them.

        They are out of sync, and the version waits for the whole target of a step. They go below min.insync.replicas as
        well: the repairing step would not end otherwise.
        """
        if self.completion is not Completion.TARGET:
            return ()
        return tuple(broker for broker in removing(self.current, self.target) if broker not in self.isr)

    @property
    def spare(self) -> int:
        """Return how many replicas the list has beyond the shorter end of the way (S2)."""
        return max(0, len(self.current) - min(len(self.original), len(self.target)))

    @property
    def missing(self) -> tuple[int, ...]:
        """Return the replicas that the list lacks, in the target's order."""
        return adding(self.current, self.target)

    @property
    def live_missing(self) -> tuple[int, ...]:
        """Return the missing replicas that can be copied now: their brokers are alive."""
        return tuple(broker for broker in self.missing if broker in self.live)

    @property
    def lacks(self) -> int:
        """Return how many replicas in sync min.insync.replicas asks for beyond those that there are (R435-3)."""
        return max(0, self.min_isr - self.in_sync(self.current))

    @property
    def shortfall(self) -> int:
        """Return how many replicas the shorter end of the way lacks because unregistered brokers leave the list."""
        short = max(0, min(len(self.original), len(self.target)) - len(self.current))
        return min(short, len(self.unregistered))

    @property
    def most(self) -> int:
        """Return how many replicas one step may bring in sync: as many as allowed, or as the list is too short (S2)."""
        return max(self.max_replicas_per_step, self.shortfall)

    def in_sync(self, brokers: Collection[int]) -> int:
        """Count the replicas that are in sync and alive."""
        return sum(map(self.is_in_sync, brokers))

    def is_in_sync(self, broker: int) -> bool:
        """Whether a replica is in sync and its broker lives, within reach or not."""
        return broker in self.isr and (broker in self.live or broker in self.unreachable)


def next_step(reassignment: Reassignment, stepping: Stepping, now: Situation) -> Step | None:
    """Plan the alter call that comes next; None if only replicas on dead brokers are left to add.

    A prepared step that is planned anew keeps its number.
    """
    before = reassignment.step
    number = 1 if before is None else before.number + (reassignment.stage is not Stage.PREPARED)
    ahead = next_list(stepping, now)
    return None if ahead is None else Step(number, ahead == now.target, now.current, ahead, now.leader)


def next_list(stepping: Stepping, now: Situation) -> tuple[int, ...] | None:
    """Return the list of the next step; None if only replicas on dead brokers are left to add.

    It names no broker without a registration: the step is planned as if these had left the present list before.
    """
    assert not set(now.unregistered) & set(now.target), f"{now.target} names a broker without a registration"
    now = replace(now, current=without(now.current, now.unregistered))
    match stepping:
        case Stepping.GROW:
            return grow(now)
        case Stepping.SWAP:
            return swap(now)
        case Stepping.SINGLE:
            return single(now)


def grow(now: Situation) -> tuple[int, ...] | None:
    """Append some live added replicas in the target's order, and drop the others at the end.

    At the end of the list, because with the target's order Kafka's own rebalance would move leadership early. A target
    that adds at most `max_replicas_per_step` replicas is one step. Replicas that would hold a step up go with it.
    """
    missing, live, most = now.missing, now.live_missing, max(now.most, now.lacks)
    appends_first = (now.is_short or now.drops_last) and not only_appends(now.current, now.target)
    # On the way back the list may lack more originals than the way to the target added replicas.
    at_once = max(len(missing), len(adding(now.original, now.target))) <= most
    if not missing or (at_once and live == missing and not appends_first):
        return now.target
    return _appended(now, most) if live else None


def _appended(now: Situation, most: int) -> tuple[int, ...]:
    """Append live added replicas; those that would hold the step up go with it.

    At least as many come as must go: otherwise the list would be shorter than both ends, or the step would never end.
    """
    added = now.live_missing[: max(most, len(now.holds_up) - now.spare)]
    gone = now.holds_up[: len(added) + now.spare]
    return tuple(broker for broker in now.current if broker not in gone) + added


def single(now: Situation) -> tuple[int, ...] | None:
    """Send the target; below min.insync.replicas, append the replicas that it adds first."""
    if not now.is_short or not now.missing or only_appends(now.current, now.target):
        return now.target
    return _appended(now, len(now.missing)) if now.live_missing else None


def swap(now: Situation) -> tuple[int, ...] | None:
    """Bring a few replicas in sync and drop as many (R435-7).

    The replicas that min.insync.replicas lacks are added first. Then the target's first replica is brought in sync, so
    that it can lead before the present leader goes. Then at most `max_replicas_per_step` are added and dropped at a
    time: dead and out-of-sync replicas go first, then those that are not alone in their rack, the leader last; one
    whose drop would leave too few racks goes even after the leader (S4). The list is never shorter than the shorter end
    of the way, and never has fewer replicas in sync than min.insync.replicas asks for. A dead member of the target
    takes no room: another one is copied meanwhile. The last step sends exactly the target. A gate in
    `drover.reconcile.moves.start` keeps a drop from handing leadership to a listed broker.
    """
    missing, live, most, lacks = now.missing, now.live_missing, now.most, now.lacks
    extra, needed = removing(now.current, now.target), max(1, lacks, now.shortfall)
    if now.is_short and live:
        # At the end of the list: no leader moves below min.insync.replicas.
        return _appended(now, needed)
    if live == missing and most >= max(len(missing), len(extra)) and _keeps_enough(now, live, extra):
        return now.target
    has_room = len(now.current) <= max(len(now.original), len(now.target))
    if (now.target[0] in live and has_room) or (live and lacks):
        added = live[:needed]
        return _ordered(now, added, now.holds_up[: len(added) + now.spare])
    over = len(now.current) - len(now.target)
    lagging = len(now.current) - len(extra) - now.in_sync([broker for broker in now.current if broker in now.target])
    added = live[: max(0, most - max(0, over - lagging))]
    drops = _drop_order(now, added)[: max(0, min(len(added) + over, max(most, over)))]
    while drops and not _keeps_enough(now, added, drops):
        drops = drops[:-1]
    stays_behind = any(broker not in drops and broker not in now.isr for broker in extra)
    if not added and (not drops or stays_behind):
        # The replicas to drop are needed until another one is in sync, or a step that only drops would wait for them.
        added = live[:1]
    ahead = _ordered(now, added, drops)
    if ahead != now.current and {*ahead} != {*now.target}:
        return ahead
    return None if missing and ahead == now.current else now.target


def _drop_order(now: Situation, added: Collection[int]) -> tuple[int, ...]:
    """List the replicas to drop: dead and out-of-sync ones first, the leader last, the only one of a rack late.

    One whose drop would leave fewer racks than either end of the way has goes even after the leader (S4).
    """
    order: list[int] = []
    stay = [*now.current, *added]
    least = min(_racks(now, now.original), _racks(now, now.target))

    def goes_late(broker: int) -> tuple[bool, bool, bool, bool]:
        rack, others = now.racks.get(broker), [other for other in stay if other != broker]
        is_good = now.is_in_sync(broker)
        is_alone = rack is not None and all(now.racks.get(other) != rack for other in others)
        is_needed = is_good and is_alone and _racks(now, others) < least
        return is_needed, broker == now.leader, is_good, is_alone

    left = list(removing(now.current, now.target))
    while left:
        first = min(left, key=goes_late)
        left.remove(first)
        stay.remove(first)
        order.append(first)
    return tuple(order)


def _racks(now: Situation, brokers: Collection[int]) -> int:
    """Count the known racks of brokers."""
    return len({now.racks.get(broker) for broker in brokers} - {None})


def _keeps_enough(now: Situation, added: Collection[int], drops: Collection[int]) -> bool:
    """Whether enough replicas stay in sync: min.insync.replicas, or all present or target ones if fewer.

    Added replicas count: Kafka waits until they are in sync before it drops any.
    """
    stay = now.in_sync([broker for broker in now.current if broker not in drops]) + len(added)
    return stay >= min(now.min_isr, now.in_sync(now.current), len(now.target))


def _ordered(now: Situation, added: Collection[int], drops: Collection[int]) -> tuple[int, ...]:
    """Order a list: members of the target as the target has them, then the rest as they are; the listed last."""
    members = {*now.current, *added}
    rest = tuple(broker for broker in removing(now.current, now.target) if broker not in drops)
    return deprioritise(tuple(broker for broker in now.target if broker in members) + rest, now.listed)
