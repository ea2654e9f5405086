"""A broker that is slow to show a throttle change must not cost the connection."""

from typing import Any

import pytest

from drover.cluster import configs, messages
from drover.cluster.messages import DescribedConfigs
from drover.cluster.port import AddThrottledReplicas, SetBrokerRates, ThrottleChange
from drover.cluster.throttle_lists import FOLLOWER_RATE, LEADER_REPLICAS
from drover.cluster.wire import Connection, Deadline
from drover.facts import NONE, BrokerRates, CallResult, ThrottledReplicas

CALL_MS = 60_000
DONE = CallResult(NONE)


@pytest.mark.parametrize(
    ("change", "resource", "shown"),
    [
        (AddThrottledReplicas("orders", ThrottledReplicas(("0:1",), ())), "orders", {LEADER_REPLICAS: "0:1"}),
        (SetBrokerRates(1, BrokerRates(None, 5_000)), "1", {FOLLOWER_RATE: "5000"}),
    ],
)
async def test_a_look_has_as_long_as_the_call_that_it_belongs_to(
    monkeypatch: pytest.MonkeyPatch, change: ThrottleChange, resource: str, shown: dict[str, str]
) -> None:
    """A look was given up after a second, and the connection with it: alters under way there had no known outcome.

    The broker accepts the change, and shows it in its fourth answer.
    """
    given_ms: list[int] = []

    async def send(_connection: Connection, _request: Any, deadline: Deadline, **_how: Any) -> int:
        given_ms.append(deadline.left_ms())
        return len(given_ms)

    def described(asked: int) -> dict[str, DescribedConfigs]:
        own = shown if asked > 3 else {}
        return {resource: DescribedConfigs(DONE, own, own)}

    monkeypatch.setattr(messages, "read_configs", described)
    monkeypatch.setattr(messages, "read_alter_configs", lambda _asked: {resource: DONE})
    monkeypatch.setattr(Connection, "send", send)
    connection = Connection("test", "localhost:1", {}, CALL_MS)
    results = await configs.change_throttles(connection, [change], {1}, Deadline.after_ms(CALL_MS))
    assert results == {change: DONE}
    assert len(given_ms) == 4
    assert min(given_ms) > CALL_MS / 2
