"""The least that anybody could do with a backlog of commands: read, decode, produce one record for each, nothing else.

`python -m bench.bare_loop BOOTSTRAP TARGET COUNT TOPIC...` prints its figures as JSON.
"""

import asyncio
import json
import sys
import time
from collections.abc import Sequence

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

from drover.events.codec import Malformed, decode_command, encode_command
from drover.events.topics import DEFAULT_SHARDS

MAX_POLL_RECORDS = 1000


async def run(bootstrap: str, target: str, count: int, topics: Sequence[str]) -> dict[str, float]:
    """Go through so many commands; the clock runs from the first ones read to the last acknowledgement."""
    consumer = AIOKafkaConsumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest", enable_auto_commit=False)
    producer = AIOKafkaProducer(bootstrap_servers=bootstrap, enable_idempotence=True, acks="all")
    await consumer.start()
    await producer.start()
    try:
        partitions = [TopicPartition(topic, shard) for topic in topics for shard in range(DEFAULT_SHARDS)]
        consumer.assign(partitions)
        await consumer.seek_to_beginning(*partitions)
        done, began, busy_s = 0, 0.0, time.process_time()
        while done < count:
            found = await consumer.getmany(timeout_ms=1000, max_records=MAX_POLL_RECORDS)
            began = began or time.monotonic()
            sent = []
            for partition, records in found.items():
                for record in records:
                    command = decode_command(record.value)
                    assert not isinstance(command, Malformed), "the backlog holds nothing but commands"
                    sent.append(await producer.send(target, encode_command(command), partition=partition.partition))
            await asyncio.gather(*sent)
            done += len(sent)
        return {"seconds": time.monotonic() - began, "busy_s": time.process_time() - busy_s, "count": done}
    finally:
        await consumer.stop()
        await producer.stop()


if __name__ == "__main__":
    print(json.dumps(asyncio.run(run(sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4:]))))
