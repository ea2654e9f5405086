"""The behaviours of a Kafka cluster in which versions differ, as the log holds them; `drover.traits` derives them."""

from enum import StrEnum

from msgspec import Struct


class Completion(StrEnum):
    """Which replicas must be in the ISR before the controller ends a reassignment."""

    ADDED = "added"
    """Those that are added (3.7 with KRaft)."""

    ADDED_UNLESS_SHRINKING = "added-unless-shrinking"
    """Those that are added; of a target that is shorter than the original list all (4.3)."""

    TARGET = "target"
    """The whole target (3.8 to 4.2, and ZooKeeper mode; KAFKA-15665)."""


class Retarget(StrEnum):
    """What a new target for a moving partition is compared with."""

    MERGED = "merged"
    """The merged list of the move that runs: a broker may end up being both added and removed (KRaft)."""

    ORIGINAL = "original"
    """The list from before that move: it is as if that one had never begun (ZooKeeper mode)."""


class Traits(Struct, frozen=True, omit_defaults=True):
    """The behaviours of one cluster.

    `kafka` names the release for people, as in `4.3`. `is_known` says that its traits are known; otherwise the others
    are the careful readings. `with_elr` is KIP-966. `takes_dead_destinations` says that an alter may name a new replica
    on a broker that is not alive, and waits for it; else it is refused with code 39. `elects_unclean` says that a
    topic's `unclean.leader.election.enable` counts (KAFKA-12670). `migrates` says that the cluster is on its way from
    ZooKeeper mode to KRaft: nothing new is accepted meanwhile.
    """

    kafka: str
    completion: Completion = Completion.TARGET
    retarget: Retarget = Retarget.MERGED
    is_known: bool = False
    zookeeper_mode: bool = False
    with_elr: bool = False
    takes_dead_destinations: bool = False
    elects_unclean: bool = False
    migrates: bool = False

    def __str__(self) -> str:
        """The release, the mode, and the behaviour that an operator sees."""
        if self.migrates:
            return f"Kafka {self.kafka}, which is being migrated from ZooKeeper to KRaft: {MIGRATION}"
        mode = "in ZooKeeper mode" if self.zookeeper_mode else "with KRaft"
        doubt = "" if self.is_known else ", read with care"
        return f"Kafka {self.kafka} {mode}{doubt}: {_COMPLETION_IN_WORDS[self.completion]}"


MIGRATION = "Drover begins nothing before that is done"
_COMPLETION_IN_WORDS = {
    Completion.ADDED: "a reassignment ends when its added replicas are in sync",
    Completion.ADDED_UNLESS_SHRINKING: "a reassignment ends when its added replicas are in sync, one that shrinks when"
    " all that stay are",
    Completion.TARGET: "a reassignment ends when all replicas of its target are in sync, kept ones too",
}
