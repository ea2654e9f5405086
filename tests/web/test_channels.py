"""One channel serves all who look at the same; a viewer that was cut off gets what it missed, once."""

import json
from contextlib import ExitStack
from typing import Any

import pytest

from drover.web.changes import Document, apply
from drover.web.channels import (
    IDLE_S,
    KEPT_BYTES,
    KEPT_CHANGES,
    MAX_CHANNELS,
    Channel,
    Channels,
)
from drover.web.query import Query, ViewName

NOW = Query(ViewName.NOW)


def events(payload: bytes) -> list[tuple[str, str, Any]]:
    """Read server-sent events as (id, name, data)."""
    found = []
    for block in payload.decode().split("\n\n")[:-1]:
        fields = dict(line.split(": ", 1) for line in block.split("\n"))
        found.append((fields.get("id", ""), fields["event"], json.loads(fields["data"])))
    return found


def test_a_viewer_gets_the_whole_and_then_what_changed() -> None:
    channel = Channel("boot", {"n": 0})
    ((first, name, data),) = events(channel.since(None))
    assert (first, name, data) == ("boot-0", "snapshot", {"n": 0})
    assert channel.publish({"n": 1})
    assert channel.publish({"n": 2})
    assert not channel.publish({"n": 2})
    assert [(id_, name) for id_, name, _ in events(channel.since(0))] == [("boot-1", "change"), ("boot-2", "change")]
    assert channel.since(2) == b""


def test_who_comes_back_misses_nothing_and_sees_nothing_twice() -> None:
    channel = Channel("boot", {"n": 0})
    seen: dict[str, Any] = {"n": 0}
    version = channel.version_of("boot-0")
    for number in range(1, 6):
        channel.publish({"n": number, "odd": number % 2})
        if number in {2, 5}:
            for id_, _, change in events(channel.since(version)):
                seen = apply(seen, change)
                version = channel.version_of(id_)
    assert seen == {"n": 5, "odd": 1}


@pytest.mark.parametrize(
    "event_id", [None, "", "other-0", "boot-x", "boot-99", "boot--1", "boot-²", "boot-" + "9" * 5000]
)
def test_an_id_that_means_nothing_here_gets_the_whole(event_id: str | None) -> None:
    channel = Channel("boot", {"n": 0})
    assert channel.version_of(event_id) is None


def test_who_missed_too_much_gets_the_whole() -> None:
    channel = Channel("boot", {"n": 0})
    for number in range(1, KEPT_CHANGES + 2):
        channel.publish({"n": number})
    assert channel.version_of("boot-0") is None
    assert channel.version_of("boot-1") == 1
    assert events(channel.since(0))[0][1] == "snapshot"


ROWS = [{"key": str(number), "text": "x" * 100} for number in range(100)]


def churn(channel: Channel, times: int) -> None:
    """Let every row of a table change so often."""
    for number in range(times):
        channel.publish({"n": number, "rows": [{**row, "done": number} for row in ROWS]})


def test_what_is_kept_for_viewers_that_were_cut_off_has_a_bound_in_bytes() -> None:
    channel = Channel("boot", {"n": -1, "rows": ROWS})
    churn(channel, KEPT_CHANGES)
    kept = sum(len(event) for _, event in channel.changes)
    assert KEPT_BYTES / 2 < kept <= KEPT_BYTES
    oldest = channel.changes[0][0]
    assert channel.version_of(f"boot-{oldest - 1}") == oldest - 1
    assert channel.version_of(f"boot-{oldest - 2}") is None


def test_a_change_that_is_larger_than_all_that_is_kept_still_reaches_who_looks() -> None:
    channel = Channel("boot", {"text": "", "n": 0})
    for number in range(1, 4):
        channel.publish({"text": str(number) * 2 * KEPT_BYTES, "n": number})
        ((_, name, _),) = events(channel.since(number - 1))
        assert name == "change"
    assert len(channel.changes) == 1


def test_a_slow_viewer_gets_no_more_than_the_whole() -> None:
    channel = Channel("boot", {"n": -1, "rows": ROWS})
    churn(channel, 12)
    ((_, name, data),) = events(channel.since(0))
    assert (name, data["n"]) == ("snapshot", 11)
    assert [one for _, one, _ in events(channel.since(11))] == ["change"]


class Counting:
    """Builds documents and counts how often."""

    def __init__(self) -> None:
        self.builds = 0

    def __call__(self, query: Query) -> Document:
        self.builds += 1
        return {"view": query.view, "n": self.builds}


def test_equal_queries_share_one_channel_and_its_work() -> None:
    counting = Counting()
    channels = Channels("boot", counting)
    first = channels.channel(NOW)
    assert channels.channel(Query(ViewName.NOW)) is first
    with first.viewer(), first.viewer():
        channels.refresh(1.0)
        assert (counting.builds, first.viewers) == (2, 2)


def test_a_channel_is_forgotten_when_nobody_has_looked_for_a_while() -> None:
    counting = Counting()
    channels = Channels("boot", counting)
    channel = channels.channel(NOW)
    with channel.viewer():
        channels.refresh(1.0)
    channels.refresh(1.0 + IDLE_S)
    assert channels.channel(NOW) is channel
    channels.refresh(2.0 + IDLE_S)
    again = channels.channel(NOW)
    assert again is not channel
    # Ids of the forgotten one mean nothing to its successor.
    assert again.version_of(f"{channel.boot}-{channel.version}") is None


def filtered(number: int) -> Query:
    return Query(ViewName.PLAN, text=str(number))


def test_where_all_queries_have_viewers_the_one_that_was_opened_first_ends_for_a_new_one() -> None:
    channels = Channels("boot", Counting())
    with ExitStack() as stack:
        plain = channels.channel(NOW)
        stack.enter_context(plain.viewer())
        followed = [channels.channel(filtered(number)) for number in range(MAX_CHANNELS)]
        for channel in followed:
            stack.enter_context(channel.viewer())
        channels.channel(filtered(MAX_CHANNELS))
        assert [channel for channel in (plain, *followed) if channel.is_ended] == [followed[0]]
        # Its viewers notice at once, and may ask for the same again.
        assert followed[0].fresh.is_set()
        assert channels.channel(filtered(0)) is not followed[0]


def test_the_channel_that_has_been_idle_longest_gives_way_to_a_new_query() -> None:
    channels = Channels("boot", Counting())
    followed = [channels.channel(filtered(number)) for number in range(MAX_CHANNELS)]
    with followed[0].viewer():
        channels.refresh(1.0)
        with followed[1].viewer():
            channels.refresh(2.0)
        channels.channel(filtered(MAX_CHANNELS))
        assert channels.channel(filtered(0)) is followed[0]
        assert channels.channel(filtered(1)) is followed[1]
        assert channels.channel(filtered(2)) is not followed[2]
