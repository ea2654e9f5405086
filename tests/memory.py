"""Where tests and benchmarks keep what brokers and Spark write: in memory where there is plenty, else on the disk.

A broker replaces a file for each partition that gets another leader or a new replica. A disk takes half a millisecond
for each of these thousands of small files, and nothing that is tested or measured here is about disks.
"""

import shutil
from pathlib import Path

import psutil

MEMORY = Path("/dev") / "shm"
PLENTY_BYTES = 8 * 2**30


def memory_directory() -> Path | None:
    """Return the directory that lies in memory; None where there is none, or little room."""
    if not MEMORY.is_dir() or min(shutil.disk_usage(MEMORY).free, psutil.virtual_memory().available) < PLENTY_BYTES:
        return None
    return MEMORY
