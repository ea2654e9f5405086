"""A broker's disk that is full, and one that is not any more.

Where a tmpfs can be mounted the broker's data lies on a small one of its own, and a file that takes the rest of it
makes it full: writes fail with ENOSPC, as on any disk. Elsewhere the broker's process is forbidden to make any file
longer (RLIMIT_FSIZE): writes fail with EFBIG, which is as near as an ordinary user comes.
"""

import contextlib
import errno
import os
import resource
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

from drover.errors import ConfigurationError
from drover.local import LocalCluster
from drover.local.layout import Layout

DISK_BYTES = 512 * 2**20
# Less than this is left free of a full disk.
LEFT_BYTES = 128 * 2**10


@dataclass(frozen=True)
class Disk:
    """The disk of one broker; `mount` is its tmpfs, None where there is none; `process` finds who writes there."""

    broker: int
    mount: Path | None
    process: Callable[[], int]

    @property
    def kind(self) -> str:
        return "tmpfs" if self.mount else "simulated by RLIMIT_FSIZE"

    def fill(self) -> None:
        """Leave no room from here on."""
        if self.mount is None:
            self._limit(1)
            return
        with self._filler(self.mount).open("wb") as file:
            taken, piece = 0, DISK_BYTES
            # Others write as well: what is free is found out by taking it.
            while piece >= LEFT_BYTES:
                try:
                    os.posix_fallocate(file.fileno(), taken, piece)
                    taken += piece
                except OSError as error:
                    if error.errno != errno.ENOSPC:
                        raise
                    piece //= 2

    def empty(self) -> None:
        """Make room again. Idempotent."""
        if self.mount is None:
            self._limit(resource.getrlimit(resource.RLIMIT_FSIZE)[1])
        else:
            self._filler(self.mount).unlink(missing_ok=True)

    def _limit(self, size: int) -> None:
        with contextlib.suppress(psutil.NoSuchProcess, ConfigurationError):  # it may be dead by now
            process = psutil.Process(self.process())
            _, hard = process.rlimit(psutil.RLIMIT_FSIZE)
            process.rlimit(psutil.RLIMIT_FSIZE, (size, hard))

    @staticmethod
    def _filler(mount: Path) -> Path:
        return mount / "filler"


@contextmanager
def small_disk(cluster: LocalCluster, broker: int, *, simulated: bool = False) -> Iterator[Disk]:
    """Give a broker a disk of its own before the cluster is up for the first time; unmounted after it is down."""
    mount = cluster.directory / f"disk-{broker}"
    mount.mkdir(parents=True)
    mounting = ("mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "tmpfs", str(mount))
    can_mount = not simulated and shutil.which(mounting[0]) is not None
    mounted = can_mount and subprocess.run(mounting, capture_output=True, check=False).returncode == 0
    if mounted:
        data = Layout(cluster.directory).data_directory(str(broker))
        data.parent.mkdir(parents=True)
        data.symlink_to(mount / "data")
        (mount / "data").mkdir()
    try:
        yield Disk(broker, mount if mounted else None, lambda: cluster.pid(broker))
    finally:
        if mounted:
            subprocess.run(("umount", str(mount)), capture_output=True, check=True)
        mount.rmdir()
