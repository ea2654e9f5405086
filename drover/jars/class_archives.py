"""Class data archives: what a JVM has loaded, kept so that the next ones start in about half the time.

Owns their place in the cache, their flags, their making and their check. Only ever an advantage: where one is missing,
cannot be made or fails its check, the JVMs start without. A broken archive would end a JVM, so none takes its place
before the JVM itself has verified it.
"""

import contextlib
import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from drover.jars import cache_directory
from drover.jars.cache import is_foreign

RECORD_FLAG = "-XX:ArchiveClassesAtExit="
CHECK_TIMEOUT_S = 60
# An archive that does not fit is passed over by the JVM; its log need not say so at every start.
_QUIET = ("-Xlog:cds=off", "-Xlog:cds+dynamic=off")


@dataclass(frozen=True, slots=True)
class Archives:
    """The archives of one Java with one class path and these JVM flags.

    `base` holds Java's own classes, for a runtime that comes without (None: it has its own, or `classes` has them).
    `classes` is what a JVM loads on top of it, and is not there before one has recorded it, or it was made of a list.
    """

    java: Path
    flags: tuple[str, ...]
    class_path: str
    base: Path | None
    classes: Path

    @property
    def use_flags(self) -> tuple[str, ...]:
        """The flags that make a JVM use what is there."""
        files = [str(file) for file in (self.base, self.classes) if file is not None and file.exists()]
        return (f"-XX:SharedArchiveFile={os.pathsep.join(files)}", *_QUIET) if files else ()

    def record_flags(self, target: Path) -> tuple[str, ...]:
        """The flags that make a JVM use the base, and write what it has loaded to `target` when it ends by SIGTERM."""
        base = () if self.base is None else (f"-XX:SharedArchiveFile={self.base}",)
        return (*base, f"{RECORD_FLAG}{target}")

    def keep(self, recorded: Path) -> bool:
        """Take a recorded archive into the cache, if the JVM says that it is whole; True if it was."""
        if self.classes.exists() or not recorded.exists():
            return False
        with _temporary(self.classes) as temporary:
            shutil.copyfile(recorded, temporary)
            return self._settle(temporary, self.classes, before=self.base)

    def make_base(self) -> bool:
        """Make the base where it is missing; False if that did not work."""
        if self.base is None or self.base.exists():
            return True
        with _temporary(self.base) as temporary:
            temporary.unlink()
            return self._runs("-Xshare:dump", f"-XX:SharedArchiveFile={temporary}") and self._settle(
                temporary, self.base
            )

    def _settle(self, temporary: Path, place: Path, *, before: Path | None = None) -> bool:
        """Verify a temporary file and give it its name, durable first: a cut file would end every JVM that maps it."""
        files = os.pathsep.join(str(file) for file in (before, temporary) if file is not None)
        if not self._runs("-Xshare:on", "-XX:+VerifySharedSpaces", f"-XX:SharedArchiveFile={files}", "-version"):
            return False
        with temporary.open("rb") as stream:
            os.fsync(stream.fileno())
        temporary.replace(place)
        return True

    def _runs(self, *arguments: str) -> bool:
        """Run the JVM and tell whether it ended well; what it says is about archives and of no interest."""
        command = [str(self.java), *self.flags, "-XX:-CreateCoredumpOnCrash", f"-XX:ErrorFile={os.devnull}", *arguments]
        environment = {**os.environ, "CLASSPATH": self.class_path}
        try:
            done = subprocess.run(command, env=environment, capture_output=True, timeout=CHECK_TIMEOUT_S, check=False)  # noqa: S603 - the Java that runs the brokers
        except (OSError, subprocess.TimeoutExpired):
            return False
        return done.returncode == 0


def archives_for(
    java: Path, flags: Sequence[str], class_path: str, *, kind: str = "", is_whole: bool = False
) -> Archives | None:
    """Name the archives of a Java and what it is run with; makes a missing base. None where there can be none.

    A directory into which others can write is no place for them, since a JVM runs what is in an archive.
    An archive that `is_whole` has Java's own classes, too, and needs no base. Names begin with `kind`.
    """
    home = java.resolve().parent.parent
    library = next((home / "lib" / "server").glob("libjvm.*"), None)
    directory = cache_directory() / "class-archives"
    # What a JVM maps from an archive it runs.
    if library is None or os.pathsep in str(directory) or is_foreign(directory):
        return None
    state = library.stat()
    identity = "\0".join((str(library), str(state.st_size), str(state.st_mtime_ns), *flags, class_path))
    name = kind + hashlib.sha256(identity.encode()).hexdigest()[:32]
    has_base = is_whole or (home / "lib" / "server" / "classes.jsa").exists()
    base = None if has_base else directory / f"{name}-base.jsa"
    archives = Archives(java, tuple(flags), class_path, base, directory / f"{name}.jsa")
    try:
        directory.mkdir(parents=True, exist_ok=True)
        return archives if archives.make_base() else None
    except OSError:
        return None  # a cache that cannot be written costs time and nothing else


@contextlib.contextmanager
def _temporary(place: Path) -> Iterator[Path]:
    """Yield a file beside `place` that is gone afterwards, unless it was given its name."""
    place.parent.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(dir=place.parent, prefix=f"{place.name}.", suffix=".part")
    os.close(descriptor)
    try:
        yield Path(name)
    finally:
        Path(name).unlink(missing_ok=True)
