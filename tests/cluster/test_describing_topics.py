"""Describing Drover's own topics without the ACLs for it."""

from collections.abc import Mapping

import pytest

from drover.cluster import messages, topics, wire
from drover.cluster.messages import DescribedTopic, Metadata
from drover.errors import ClusterAccessError, ClusterUnavailableError


def answer(monkeypatch: pytest.MonkeyPatch, codes: Mapping[str, int]) -> None:
    """Let a broker answer with these codes, without one."""

    async def send(*_arguments: object, **_more: object) -> None: ...

    shown = {name: DescribedTopic(code, "id", {}) for name, code in codes.items()}
    monkeypatch.setattr(wire.Connection, "send", send)
    monkeypatch.setattr(messages, "read_metadata", lambda _: Metadata("kafka", {1: None}, shown))


async def test_a_missing_acl_is_told_with_its_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    """It was \"cannot be described: Kafka error 29\", with the exit code of a Kafka that does not answer."""
    answer(monkeypatch, {"drover.alter": 29})
    with pytest.raises(ClusterAccessError, match=r"may not see topic drover\.alter .*`drover acls`"):
        await topics.describe_topics("localhost:1", ["drover.alter"])


async def test_what_is_not_there_is_none_and_any_other_answer_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    answer(monkeypatch, {"drover.alter": 3})
    assert await topics.describe_topics("localhost:1", ["drover.alter"]) == {"drover.alter": None}
    answer(monkeypatch, {"drover.alter": 17})
    with pytest.raises(ClusterUnavailableError, match="Kafka error 17"):
        await topics.describe_topics("localhost:1", ["drover.alter"])
