"""Requests that stand for longer than what became of them is remembered: they hold up nothing, and are not repeated."""

from collections.abc import Callable, Sequence

import pytest

from drover.events.commands import AnyCommand
from drover.local import wait_until
from drover.projections import intake
from drover.projections.commands import CANCEL, ERROR_SUFFIX
from drover.projections.memory import MemoryStore
from drover.projections.ownership import REQUESTS
from drover.projections.store import Create, Delete, Operation, StoreDeniedError, nothing
from tests.projections.office import Office

FIRST, SECOND, THIRD = (f"{REQUESTS}/request_000000000{number}" for number in range(3))


class Guarded(MemoryStore):
    """A store in which somebody has a node that nobody else may remove."""

    async def write(self, operations: Sequence[Operation], meanwhile: Callable[[], None] = nothing) -> None:
        for operation in operations:
            if isinstance(operation, Delete) and operation.path.endswith("/mine"):
                raise StoreDeniedError("only its owner removes it", operation.path)
        await super().write(operations, meanwhile)


def move_of(partition: int, *replicas: int) -> bytes:
    return b'{"assignment":{"orders":{"%d":%b}}}' % (partition, str(list(replicas)).encode())


async def until_decided(made: Office, *types: str) -> None:
    await wait_until(lambda: [each.type for each in made.decided()] == list(types), what=f"{types} to be decided")


async def standing_forgotten_request(made: Office, data: bytes) -> None:
    """Write a request that is decided and cannot be removed, and another one, at which it is forgotten."""
    first = f"{made.base}{FIRST}"
    await made.store.write([Create(first, data), Create(f"{first}/mine", b"")])
    await until_decided(made, "alter")
    await wait_until(lambda: bool(made.notes.errors), what="the request not to be removed")
    await made.write(SECOND, move_of(1, 2, 3, 4))
    await made.until_gone(SECOND)


@pytest.fixture
async def made(monkeypatch: pytest.MonkeyPatch) -> Office:
    monkeypatch.setattr(intake, "MOST_OUTCOMES", 1)
    office = Office(Guarded(), "/drover")
    await office.world.run(300)
    office.feed()
    return office


async def test_a_request_that_cannot_be_removed_is_not_sent_again_when_its_outcome_is_forgotten(made: Office) -> None:
    async with made.open():
        await standing_forgotten_request(made, move_of(0, 4, 2, 3))
        await made.write(CANCEL)
        await until_decided(made, "alter", "alter", "cancel")
    assert len(made.submitted) == 3


async def test_after_a_restart_it_is_sent_once_more_and_holds_up_no_cancel(made: Office) -> None:
    async with made.open():
        await standing_forgotten_request(made, move_of(0, 4, 9, 3))
        refused = await made.document(f"{FIRST}{ERROR_SUFFIX}")
    made.restart()
    made.feed()
    async with made.open():
        await made.write(CANCEL)
        await until_decided(made, "alter", "alter", "cancel")
    assert [each.id for each in made.submitted].count(made.submitted[0].id) == 2
    assert await made.document(f"{FIRST}{ERROR_SUFFIX}") == refused
    assert refused is not None


async def test_an_outcome_that_comes_before_its_command_is_acknowledged_is_not_waited_for(made: Office) -> None:
    submit = made._submit

    async def acknowledged_late(command: AnyCommand) -> None:
        await submit(command)
        await made.world.run(300)
        made.feed()

    made.intake._submit = acknowledged_late
    async with made.open():
        await made.write(THIRD, move_of(1, 2, 3, 4))
        await made.until_gone(THIRD)
    assert made.intake._asked == set()
