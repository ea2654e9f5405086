"""Events of the throttle ledger: the values from before, those that Drover set, and those that it put back."""

from msgspec import Struct

from drover.events.base import Event


class Rates(Struct, frozen=True):
    """Dynamic throttle rates of one broker in bytes per second; None where none is set."""

    leader: int | None
    follower: int | None


NO_RATES = Rates(None, None)


class Entries(Struct, frozen=True):
    """Entries `partition:broker` of a topic's throttled replica lists."""

    leader: tuple[str, ...] = ()
    follower: tuple[str, ...] = ()


NO_ENTRIES = Entries()


class BrokerThrottleIntended(Event, frozen=True, kw_only=True, omit_defaults=True, tag="broker-throttle-intended"):
    """A broker's rates will be set to `rates`; `found` is what was read just before.

    With `release` the rates are those that were set before Drover first set any.
    """

    broker: int
    rates: Rates
    found: Rates
    release: bool = False


class BrokerThrottleSet(Event, frozen=True, kw_only=True, omit_defaults=True, tag="broker-throttle-set"):
    """The intended rates are in force; after a release the broker has left the ledger."""

    broker: int


class BrokerThrottleRefused(Event, frozen=True, kw_only=True, omit_defaults=True, tag="broker-throttle-refused"):
    """Kafka refuses to set the intended rates, with its own code and words; they are tried again every 10 s."""

    broker: int
    code: int
    message: str | None = None


class BrokerThrottleLeft(Event, frozen=True, kw_only=True, omit_defaults=True, tag="broker-throttle-left"):
    """Nothing of Drover's is set on the broker, which leaves the ledger: `found` stays.

    Somebody else has changed the rates that Drover had set (S10), or Kafka has refused to set any.
    With `unregistered` Kafka has no registration for the broker, so that nothing can be written there any more. `found`
    is then what Drover had set last, which may be in force again once such a broker registers.
    """

    broker: int
    found: Rates
    unregistered: bool = False


class BrokerThrottleChanged(Event, frozen=True, kw_only=True, omit_defaults=True, tag="broker-throttle-changed"):
    """Somebody else has changed rates that Drover had set, and moves still need `bytes_per_second` there.

    `found` is what is there now. A rate that is gone is put back. One of another value is theirs: it stays until they
    delete it.
    """

    broker: int
    found: Rates
    bytes_per_second: int


class TopicThrottleIntended(Event, frozen=True, kw_only=True, omit_defaults=True, tag="topic-throttle-intended"):
    """Entries will be added to and removed from a topic's lists; never entries that were there before Drover.

    `topic_id` is the topic's incarnation that they are meant for: what was added to an earlier one is not in force.
    """

    topic: str
    add: Entries = NO_ENTRIES
    remove: Entries = NO_ENTRIES
    topic_id: str = ""


class TopicThrottleSet(Event, frozen=True, kw_only=True, omit_defaults=True, tag="topic-throttle-set"):
    """The intended entries are in force."""

    topic: str


class TopicThrottleRefused(Event, frozen=True, kw_only=True, omit_defaults=True, tag="topic-throttle-refused"):
    """Kafka refuses to change a topic's lists as intended, with its own code and words; tried again every 10 s."""

    topic: str
    code: int
    message: str | None = None


class TopicThrottleLeft(Event, frozen=True, kw_only=True, omit_defaults=True, tag="topic-throttle-left"):
    """The topic is gone, or throttles every replica by somebody else's `*`: Drover does not touch its lists.

    That holds for the incarnation `topic_id`. With `refused` Kafka has refused a change of the lists: what Drover had
    put there before stays in the ledger, and is removed when no move needs the topic any more.
    """

    topic: str
    detail: str
    topic_id: str = ""
    refused: bool = False


class TopicThrottleChanged(Event, frozen=True, kw_only=True, omit_defaults=True, tag="topic-throttle-changed"):
    """Somebody else has deleted entries that Drover had put on a topic and moves still need: they are put back."""

    topic: str
    gone: Entries


class BrokerThrottleAdopted(Event, frozen=True, kw_only=True, omit_defaults=True, tag="broker-throttle-adopted"):
    """Somebody asked to delete rates that another tool has left on a broker; `found` is what they saw there."""

    broker: int
    found: Rates
    by: str
    reason: str


class TopicThrottleAdopted(Event, frozen=True, kw_only=True, omit_defaults=True, tag="topic-throttle-adopted"):
    """Somebody asked to delete entries that another tool has left in a topic's lists."""

    topic: str
    found: Entries
    by: str
    reason: str
