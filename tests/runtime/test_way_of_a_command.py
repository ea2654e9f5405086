"""Tests that the walk in docs/architecture.md, "The way of a command", is the way that a command takes."""

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from aiokafka.structs import ConsumerRecord
from faust.types import TP

from drover.agents.intake import Intake
from drover.agents.records import Delivered, delivered
from drover.events.codec import encode_command
from drover.events.commands import Freeze
from drover.events.records import Batch, Outcome
from drover.shard.messages import Arrival, ProposedBatch
from drover.shard.pipeline import Decided
from tests.runtime.world import World, cluster_in

ARCHITECTURE = Path(__file__).parents[2] / "docs" / "architecture.md"
# Whoever knows this id knows the command, in whatever form.
IDENTITY = "the-command-on-its-way"
# The forms that a command takes between its topic and the log, beside bytes and sequences of these.
FORMS = (Arrival, Batch, ConsumerRecord, Decided, Delivered, Freeze, Outcome, ProposedBatch)
PACKAGES = ("drover.agents.", "drover.shard.", "drover.decide.", "drover.reconcile.")


def carries(value: object) -> bool:
    """Whether a value is the command, in one of its forms, or holds it."""
    if isinstance(value, bytes):
        return IDENTITY.encode() in value
    if isinstance(value, list | tuple) and not isinstance(value, ConsumerRecord):
        return any(carries(part) for part in value)
    return isinstance(value, FORMS) and IDENTITY in (
        repr(value.records) if isinstance(value, Delivered) else repr(value)
    )


class Walk:
    """The modules that the command enters, in the order of their first sight of it."""

    def __init__(self) -> None:
        self.modules: dict[str, None] = {}

    def see(self, frame: FrameType, event: str, value: Any) -> None:
        """Note a module that is passed the command, or gets it back from another one."""
        code = frame.f_code
        if code.co_name.startswith(("__", "<")):
            return
        if event == "call":
            arguments = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
            if any(carries(frame.f_locals.get(name)) for name in arguments):
                self._enter(frame)
        elif event == "return" and frame.f_back is not None and carries(value):
            self._enter(frame.f_back)

    def _enter(self, frame: FrameType) -> None:
        module = frame.f_globals.get("__name__", "")
        if module.startswith(PACKAGES):
            self.modules.setdefault(module)

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Watch every call of this thread."""
        before = sys.getprofile()
        sys.setprofile(self.see)
        try:
            yield
        finally:
            sys.setprofile(before)


def documented() -> list[str]:
    """The modules that the documented way names, in the order in which it names them first."""
    text = ARCHITECTURE.read_text(encoding="utf-8").split("## The way of a command")[1].split("\n## ")[0]
    paths = re.findall(r"`(?:drover/)?([a-z_/]+)\.py`", text)
    return list(dict.fromkeys(f"drover.{path.replace('/', '.')}" for path in paths))


async def test_a_command_enters_the_modules_that_the_architecture_names_in_that_order() -> None:
    world, walk = World(), Walk()
    host, group, _ = await world.serving_host()
    command = Freeze(id=IDENTITY, cluster=cluster_in(0), by="me", reason="test")
    topic = world.broker.topics.commands[1]
    record: ConsumerRecord[bytes, bytes] = ConsumerRecord(
        topic, 0, world.command(command), 1000, 0, None, encode_command(command), None, 0, 1, ()
    )
    with walk.watching():
        Intake(1, host).take(delivered(TP(topic, 0), (record,), group.generation))
        await world.until(world.outcomes, "the command is decided")
    await world.close()
    assert list(walk.modules) == documented()
