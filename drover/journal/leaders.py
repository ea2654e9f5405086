"""Tell a consumer who leads a topic before it is asked for the topic's offsets."""

import asyncio
from contextlib import suppress
from typing import Any

# What takes longer is waited for by the question itself, which has its own deadline.
AT_MOST_S = 1.0


async def learn_leaders(consumer: Any, topic: str) -> None:
    """Have a consumer look up the leaders of a topic, unless it keeps them up to date already; never fails.

    aiokafka 0.14 fails its first question for offsets of a topic that it does not know, and asks again after 100 ms.
    """
    with suppress(TimeoutError):
        async with asyncio.timeout(AT_MOST_S):
            await consumer._client.add_topic(topic)  # noqa: SLF001 - it has no public way
