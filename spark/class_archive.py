"""The class data archive of Spark's Java: with it a start takes two thirds of the processor time.

The first job on a machine has its Java write down which classes it loads. Two minutes after its first batch a second
Java makes the archive of that list, behind everything else that the machine does. Only ever an advantage: without one,
or with one that does not fit, Java loads its classes itself.
"""

import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil
from filelock import FileLock, Timeout

from drover.jars import cache_directory
from drover.jars.class_archives import Archives, archives_for
from drover.spark.java_home import own_java

KIND = "spark-"
LIST_FLAG = "-XX:DumpLoadedClassList="
MEMORY_FLAG = "-Xmx512m"
NICENESS = 19
PAUSE_S = 120.0
# Another Java or Spark has an archive of its own, of some 170 MB; those that nothing made anew for so long are removed.
KEEPS_S = 30 * 86_400
LIST_SUFFIX = ".classes"


def java_options(class_path: str, scratch: Path) -> tuple[str, ...]:
    """Return the options with which Java uses the archive, or writes down what one should hold; none if it cannot.

    `class_path` is everything that tells one Spark from another; the list of classes is written below `scratch`.
    """
    archives = archives_for(own_java(), (), class_path, kind=KIND, is_whole=True)
    if archives is None:
        return ()
    if archives.classes.exists():
        return archives.use_flags
    return (f"{LIST_FLAG}{scratch / archives.classes.with_suffix(LIST_SUFFIX).name}",)


@dataclass
class ArchiveMaker:
    """Makes the archive of a Java that wrote down what it has loaded, in a thread, when it is told to; at most once.

    `command` is the command line of that Java. It begins after a pause, so that it does not slow down a job that is
    catching up. A job that ends before that makes no archive.
    """

    command: Sequence[str]
    pause_s: float = PAUSE_S
    _thread: threading.Thread | None = None
    _process: "subprocess.Popen[bytes] | None" = None
    _closed: threading.Event = field(default_factory=threading.Event)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def begin(self) -> None:
        """Begin, unless it has begun; returns at once."""
        with self._lock:
            if self._thread is None and not self._closed.is_set():
                self._thread = threading.Thread(target=self._make, name="class-archive", daemon=True)
                self._thread.start()

    def close(self) -> None:
        """Give up what is not made yet."""
        with self._lock:
            self._closed.set()
            if self._process is not None:
                self._process.kill()
        if self._thread is not None:
            self._thread.join()

    def _make(self) -> None:
        found = _recorded(self.command)
        if found is None or self._closed.wait(self.pause_s):
            return
        with suppress(OSError, Timeout):  # a full disk, or another job that makes it
            archives, class_list = found
            with FileLock(archives.classes.with_suffix(".lock"), timeout=0):
                made = class_list.with_suffix(".jsa")
                if self._runs(_making(archives, _whole_lines(class_list), made)) and archives.keep(made):
                    _remove_old(archives.classes)
                made.unlink(missing_ok=True)

    def _runs(self, command: list[str]) -> bool:
        with self._lock:
            if self._closed.is_set():
                return False
            self._process = subprocess.Popen(  # noqa: S603 - the Java that runs Spark
                command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            )
        with suppress(psutil.Error):
            psutil.Process(self._process.pid).nice(NICENESS)
        return self._process.wait() == 0 and not self._closed.is_set()


@contextmanager
def archive_maker(command: Sequence[str]) -> Iterator[Callable[[], None]]:
    """Give what begins to make the archive, if a Java of this command line wants one; it is given up at the end."""
    maker = ArchiveMaker(command)
    try:
        yield maker.begin
    finally:
        maker.close()


def _recorded(command: Sequence[str]) -> tuple[Archives, Path] | None:
    """Return what a Java writes down, by its command line, and where the archive of it belongs; None if it does not."""
    lists = [Path(one.removeprefix(LIST_FLAG)) for one in command if one.startswith(LIST_FLAG)]
    if not lists or "-cp" not in command:
        return None
    place = cache_directory() / "class-archives" / lists[0].with_suffix(".jsa").name
    return Archives(Path(command[0]), (), command[command.index("-cp") + 1], None, place), lists[0]


def _whole_lines(class_list: Path) -> Path:
    """Copy a list that is still written to, up to the end of a line."""
    written = class_list.read_bytes()
    copied = class_list.with_suffix(f"{LIST_SUFFIX}.part")
    copied.write_bytes(written[: written.rfind(b"\n") + 1])
    return copied


def _making(archives: Archives, class_list: Path, target: Path) -> list[str]:
    files = (f"-XX:SharedClassListFile={class_list}", f"-XX:SharedArchiveFile={target}")
    return [str(archives.java), "-Xshare:dump", MEMORY_FLAG, *files, "-cp", archives.class_path]


def _remove_old(kept: Path) -> None:
    for other in kept.parent.glob(f"{KIND}*.jsa"):
        if other != kept and other.stat().st_mtime < time.time() - KEEPS_S:
            other.unlink(missing_ok=True)
