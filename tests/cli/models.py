"""Small clusters in files, for the commands that plan without a live one."""

import json
from pathlib import Path
from typing import Any

GIGABYTE = 1_000_000_000


def broker(number: int, rack: str | None, **more: Any) -> dict[str, Any]:
    """A broker with a disk of 1,000 GB that is half empty."""
    disk = {"path": "/data", "total_bytes": 1000 * GIGABYTE, "free_bytes": 500 * GIGABYTE}
    return {"id": number, "rack": rack, "log_dirs": [disk], **more}


def partition(topic: str, number: int, *replicas: int, **more: Any) -> dict[str, Any]:
    """A partition of one gigabyte."""
    known = {
        "topic": topic,
        "partition": number,
        "replicas": replicas,
        "size_bytes": GIGABYTE,
        "topic_id": f"{topic}-1",
    }
    return {**known, **more}


BROKERS = (broker(1, "a"), broker(2, "b"), broker(3, "c"), broker(4, "a"), broker(5, "b"), broker(6, "c"))
ORDERS = tuple(
    partition("orders", number, 1 + number % 3, 1 + (number + 1) % 3, 1 + (number + 2) % 3) for number in range(6)
)
OFFSETS = partition("__consumer_offsets", 0, 1, 2, 3, internal=True)


def write_model(
    file: Path, *partitions: dict[str, Any], brokers: tuple[dict[str, Any], ...] = BROKERS, cluster_id: str = "kafka-1"
) -> str:
    """Write a cluster, by default six brokers in three racks of which three are empty, and return the file's name."""
    document = {
        "version": 1,
        "cluster_id": cluster_id,
        "brokers": brokers,
        "partitions": partitions or (*ORDERS, OFFSETS),
    }
    file.write_text(json.dumps(document), encoding="utf-8")
    return str(file)
