"""Tell a consumer who leads a topic before it is asked for the topic's offsets."""

from contextlib import suppress
from typing import Any

from drover.time_limits import time_limit

# What takes longer is waited for by the question itself, which has its own deadline.
AT_MOST_S = 1.0


async def learn_leaders(consumer: Any, topic: str) -> None:
    """Have a consumer fetch the metadata of a topic that it does not track yet; gives up after `AT_MOST_S`.

    aiokafka 0.14 fails the first ListOffsets for a topic that is not in its metadata, and retries after 100 ms.
    Idempotent. Raises nothing when no broker answers.
    """
    with suppress(TimeoutError):
        async with time_limit(AT_MOST_S):
            await consumer._client.add_topic(topic)  # noqa: SLF001 - no public method fetches metadata
