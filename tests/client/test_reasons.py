"""No message names a class of a client."""

import errno

import pytest
from aiokafka import errors as of_aiokafka
from kafka import errors as of_kafka_python

from drover.reasons import reason_of


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (of_aiokafka.GroupAuthorizationFailedError("workers"), "GROUP_AUTHORIZATION_FAILED: workers"),
        (of_aiokafka.KafkaConnectionError("Connection at a:1 closed"), "Connection at a:1 closed"),
        (of_kafka_python.TopicAuthorizationFailedError(), "TOPIC_AUTHORIZATION_FAILED"),
        (of_kafka_python.KafkaTimeoutError("Unable to bootstrap"), "Unable to bootstrap"),
        (of_kafka_python.NodeNotReadyError(), "node not ready"),
        (ConnectionRefusedError(errno.ECONNREFUSED, "Connection refused"), "Connection refused"),
        (TimeoutError(), "no answer in time"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_an_error_is_said_in_words(error: Exception, said: str) -> None:
    assert reason_of(error) == said
