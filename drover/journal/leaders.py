"""Let a consumer fetch a topic's leaders before it reads the topic's offsets."""

from contextlib import suppress
from typing import Any

from drover.time_limits import time_limit

# After this time the offset request itself waits, with its own deadline.
AT_MOST_S = 1.0


async def learn_leaders(consumer: Any, topic: str) -> None:
    """Let a consumer fetch the metadata of a topic that it does not track yet; give up after `AT_MOST_S`.

    aiokafka 0.14 fails the first ListOffsets for a topic that is not in its metadata, and retries after 100 ms.
    Idempotent. Raises no exception if no broker answers.
    """
    with suppress(TimeoutError):
        async with time_limit(AT_MOST_S):
            await consumer._client.add_topic(topic)  # noqa: SLF001 - no public method fetches metadata
