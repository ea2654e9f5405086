"""Which answers say that a broker was not the controller, so that nothing was done."""

from types import SimpleNamespace
from typing import Any

import pytest

from drover.cluster.wire import _came_from_another


def item(code: int) -> SimpleNamespace:
    return SimpleNamespace(error_code=code)


def elections(*partitions: SimpleNamespace) -> SimpleNamespace:
    """As a broker in ZooKeeper mode answers that is not the controller: 0 for the whole, 41 for each partition."""
    topics = [SimpleNamespace(topic=f"t{number}", partition_result=[one]) for number, one in enumerate(partitions)]
    return SimpleNamespace(error_code=0, replica_election_results=topics)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (SimpleNamespace(error_code=41, responses=[]), True),
        (SimpleNamespace(error_code=0, responses=[item(41)]), False),
        (elections(item(41), item(41)), True),
        (elections(item(41), item(0)), False),
        (SimpleNamespace(error_code=41, replica_election_results=[]), True),
        (SimpleNamespace(topics=[item(41), item(41)]), True),
        (SimpleNamespace(results=[item(41)]), True),
        (SimpleNamespace(responses=[item(41)]), True),
        (SimpleNamespace(responses=[item(41), item(0)]), False),
        (SimpleNamespace(topics=[]), False),
        (SimpleNamespace(topics=[SimpleNamespace(name="without a code")]), False),
    ],
)
def test_only_an_answer_that_refuses_everything_was_another_brokers(answer: Any, expected: bool) -> None:
    assert _came_from_another(answer) is expected
