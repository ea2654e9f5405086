"""The one door to jars: after `ensure` a named set lies verified in the user's cache."""

import os
import threading
from collections.abc import Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from pathlib import Path

from filelock import FileLock

from drover.jars.cache import jars_directory, mark_verified, untrusted, verify_present, writable_directory
from drover.jars.download import DownloadCancelledError, download, mirror_base
from drover.jars.lock import Jar, jar_set
from drover.jars.progress import Advance, ProgressFactory, stderr_progress

PARALLEL_DOWNLOADS = 8


def ensure(set_name: str, progress: ProgressFactory = stderr_progress, mirror: str | None = None) -> tuple[Path, ...]:
    """Return the files of a jar set in class path order, fetching in parallel what the cache lacks.

    With everything verified before, it uses no network and takes milliseconds. One process per user downloads at a
    time, the others wait for it. Faults are ConfigurationErrors that name the file.
    """
    jars = jar_set(set_name)
    directory = jars_directory()
    ensure_jars(jars, directory, title=set_name, progress=progress, mirror=mirror)
    return tuple(directory / jar.path for jar in jars)


def class_path(files: Sequence[Path]) -> str:
    """Join files for Java's `CLASSPATH`."""
    return os.pathsep.join(str(file) for file in files)


def ensure_jars(
    jars: Sequence[Jar], directory: Path, *, title: str, progress: ProgressFactory, mirror: str | None = None
) -> None:
    """Bring the jars below `directory`, verified; does nothing where they are."""
    if not untrusted(directory, jars):
        return
    base = mirror_base(mirror)
    with FileLock(writable_directory(directory) / ".lock"):
        # Looked at again under the lock: another process may have fetched them meanwhile.
        unconfirmed = untrusted(directory, jars)
        absent = tuple(jar for jar in unconfirmed if not verify_present(directory, jar))
        if absent:
            with progress(f"{title}: {len(absent)} jars", sum(jar.size_bytes for jar in absent)) as advance:
                _download_all(absent, directory, base, advance)
        mark_verified(directory, unconfirmed)


def _download_all(jars: Sequence[Jar], directory: Path, base: str, advance: Advance) -> None:
    """Fetch in parallel, largest first; the first failure stops the others and is raised."""
    cancelled = threading.Event()
    with ThreadPoolExecutor(PARALLEL_DOWNLOADS, thread_name_prefix="jars") as pool:
        try:
            largest_first = sorted(jars, key=lambda jar: jar.size_bytes, reverse=True)
            futures = [pool.submit(download, jar, directory, base, advance, cancelled) for jar in largest_first]
            done, _ = wait(futures, return_when=FIRST_EXCEPTION)
        finally:
            # Also on Ctrl-C: leaving the pool waits for its threads, which must then end soon.
            cancelled.set()
            pool.shutdown(wait=False, cancel_futures=True)
    faults = [fault for future in done if (fault := future.exception()) is not None]
    for fault in sorted(faults, key=lambda fault: isinstance(fault, DownloadCancelledError)):
        raise fault
