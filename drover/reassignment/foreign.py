"""What is remembered of moves that are not Drover's, or are no longer: others' moves, and calls that may be late."""

from msgspec import Struct

# A call of Drover's ends within 4 s; what is in the network's buffers even then is given a minute.
LATE_MS = 60_000


class ForeignMove(Struct, frozen=True, omit_defaults=True):
    """A move of somebody else's, as last seen."""

    replicas: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]
    since_ms: int

    @property
    def never_ends(self) -> tuple[int, ...]:
        """The brokers that are being both added and removed: with one of them Kafka lists the move for ever."""
        return tuple(broker for broker in self.adding if broker in self.removing)


class GivenUp(Struct, frozen=True, omit_defaults=True):
    """What is remembered of a reassignment that ended with calls of unknown outcome, for `LATE_MS` of log time.

    `sent` are the lists of those calls; `replicas` is the list at the end, which a late effect would disturb.
    """

    topic_id: str
    plan: str
    sent: tuple[tuple[int, ...], ...]
    replicas: tuple[int, ...]
    ended_ms: int
