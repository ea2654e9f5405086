"""A chroot that is not there and may not be made; a stub answers as ZooKeeper does."""

from collections.abc import Callable
from typing import Any

import pytest
from kazoo.exceptions import NoAuthError, NodeExistsError, NoNodeError

from drover.projections import zookeeper
from drover.projections.store import ConflictError, Create, StoreDeniedError
from drover.projections.zookeeper import ZooKeeperStore
from drover.settings.settings import ZooKeeperOptions


class Result:
    """An answer of kazoo's that is there at once."""

    def __init__(self, value: Any = None) -> None:
        self.value, self.exception = value, None

    def rawlink(self, told: Callable[[Any], None]) -> None:
        told(self)


class Client:
    """Connected, with a chroot that is not there; each transaction gets the next answer."""

    chroot, connected, client_state = "/a/b", True, "CONNECTED"

    def __init__(self, *answers: Exception | None) -> None:
        self._answers = list(answers)
        self.handler = self

    def start_async(self) -> None: ...

    def stop(self) -> None: ...

    def close(self) -> None: ...

    def async_result(self) -> Result:
        return Result()

    def exists_async(self, _: str) -> Result:
        return Result()

    def _call(self, request: Any, result: Result) -> None:
        request._taken()
        answer = self._answers.pop(0)
        result.value = [] if answer is None else [answer]


async def write(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zookeeper, "made", lambda _: client)
    store = ZooKeeperStore(ZooKeeperOptions("zookeeper:2181/a/b"))
    try:
        await store.write([Create("/drover", b"")])
    finally:
        await store.close()


@pytest.mark.parametrize(
    "answers", [(NoAuthError(), NoNodeError()), (NodeExistsError(), NoAuthError())], ids=["its parent", "itself"]
)
async def test_a_chroot_that_may_not_be_made_is_named_with_the_remedy(
    answers: tuple[Exception, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(StoreDeniedError, match=r"the chroot /a/b is not there, and Drover may not make it .*: make it"):
        await write(Client(*answers, NoNodeError()), monkeypatch)


async def test_a_parent_that_may_not_be_made_and_is_there_prevents_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    await write(Client(NoAuthError(), None, None), monkeypatch)


async def test_a_chroot_that_another_one_makes_meanwhile_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConflictError, match="/drover"):
        await write(Client(NodeExistsError(), NodeExistsError(), NodeExistsError()), monkeypatch)
