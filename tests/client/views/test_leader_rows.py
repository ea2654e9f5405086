"""What `drover leaders show` and the page say of a broker that is listed until it is in sync."""

import json

from rich.console import Console

from drover.cli.leaders import layout
from drover.client.transfers import Transfers
from drover.client.views.broker_rows import broker_rows
from drover.client.views.leader_rows import leaders_document
from tests.leadership.support import demote, world


async def test_a_listing_until_in_sync_says_so_wherever_it_is_shown() -> None:
    made = world(joins_by_itself=False)
    await made.run(1000)
    await made.send(demote(3, until_in_sync=True))
    await made.send(demote(4))
    document = json.loads(json.dumps(leaders_document(made.state)))
    said = {row["broker"]: (row["until_ms"], row["until_in_sync"]) for row in document["brokers"] if row["listed"]}
    assert said == {3: (None, True), 4: (None, False)}
    console = Console(width=160)
    with console.capture() as capture:
        console.print(layout(document))
    printed = capture.get()
    assert "it is in sync" in next(line for line in printed.splitlines() if line.strip().startswith("3 "))
    assert "a command ends it" in next(line for line in printed.splitlines() if line.strip().startswith("4 "))
    rows = {row.broker: (row.should_not_lead, row.until_in_sync) for row in broker_rows(made.state, Transfers())}
    assert (rows[3], rows[4]) == ((True, True), (True, False))


async def test_a_time_beside_it_is_shown_as_well() -> None:
    made = world()
    await made.send(demote(3, until_in_sync=True, for_ms=7_200_000))
    console = Console(width=200)
    with console.capture() as capture:
        console.print(layout(leaders_document(made.state)))
    assert " or it is in sync" in " ".join(capture.get().split())
