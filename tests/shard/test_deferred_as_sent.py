"""A command that waits for others is kept in the log as its client sent it."""

from drover.events.codec import decode_command
from drover.events.commands import Unfreeze
from drover.events.waiting import CommandHeld
from drover.shard.messages import Arrival
from tests.shard.sound import sound
from tests.shard.world import CLUSTER, World


async def test_a_deferred_command_is_kept_as_its_client_sent_it_and_decided_by_a_successor() -> None:
    made = World()
    text = b' {"type": "freeze", "id": "f", "cluster": "local", "by": "ana",\n "reason": "r", "after": ["first"]}'
    headers = (("content-type", b"application/json"), ("signature", b"\x01\x02"))
    arrival = Arrival(1, made.offsets[1], made.now.wall_ms, text, decode_command(text), headers=headers)
    made.offsets[1] += 1
    made.inbox.add(arrival)
    await made.turn()
    (held,) = [event for event in made.events() if isinstance(event, CommandHeld)]
    assert (held.payload, held.headers) == (text, headers)
    made.crash()
    kept = made.state.deferred["f"]
    assert (kept.payload, kept.headers, kept.size) == (text, headers, len(text) + 12 + 16 + 9 + 2)
    await made.send(Unfreeze(id="first", cluster=CLUSTER, by="ana", reason="r"))
    await made.settle()
    assert [outcome.verdict for outcome in made.outcomes() if outcome.id == "f"] == ["held", "accepted"]
    sound(made)
