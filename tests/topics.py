"""Deletes the topics that tests leave on a cluster which others go on using."""

from collections.abc import Callable

from kafka.admin import KafkaAdminClient

from drover.cluster.sockets import DIRECT

TOPICS_PER_CALL = 50


def delete_topics(bootstrap: str, is_unwanted: Callable[[str], bool]) -> None:
    """Delete the topics whose name is unwanted; blocks until the controller has answered. Idempotent."""
    admin = KafkaAdminClient(bootstrap_servers=bootstrap.split(","), proxy_url=DIRECT)
    try:
        names = [name for name in admin.list_topics() if is_unwanted(name)]
        for first in range(0, len(names), TOPICS_PER_CALL):
            # One that is gone already, deleted by its test a moment ago, is still listed by brokers that lag.
            admin.delete_topics(names[first : first + TOPICS_PER_CALL], raise_errors=False)
    finally:
        admin.close()
