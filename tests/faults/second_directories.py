"""A second log directory of a broker, on a small disk of its own."""

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from drover.local import LocalCluster
from drover.local.layout import Layout, random_id
from drover.local.settings import format_marker

SECOND_BYTES = 64 * 2**20


@dataclass(frozen=True)
class SecondDirectory:
    """The second log directory of a broker, below `mount`; `is_mount` says whether that is a tmpfs."""

    path: Path
    mount: Path
    is_mount: bool

    def spoil(self) -> None:
        """Let new replicas fail there: the small disk fills by itself, elsewhere a file takes the directory's place."""
        if not self.is_mount:
            self.path.rename(self._aside)
            self.path.touch()

    def repair(self) -> None:
        """Make room, or bring the directory back; the broker must be restarted."""
        if self.is_mount:
            assert _mount("-o", "remount,size=1g", self.mount)
        else:
            self.path.unlink()
            self._aside.rename(self.path)

    @property
    def _aside(self) -> Path:
        return self.mount / "aside"


@contextmanager
def second_directory(cluster: LocalCluster, broker: int, mount: Path) -> Iterator[SecondDirectory]:
    """Give a broker that is down a second log directory, on a tmpfs where one can be mounted; unmounted afterwards.

    The broker must be down again then.
    """
    mount.mkdir()
    is_mount = _mount("-t", "tmpfs", "-o", f"size={SECOND_BYTES}", "tmpfs", mount)
    path = mount / "data"
    path.mkdir()
    marker = format_marker(cluster.spec, str(broker), random_id())
    (path / "meta.properties").write_text(marker, encoding="utf-8")
    settings = Layout(cluster.directory).settings_file(str(broker))
    before = settings.read_text(encoding="utf-8")
    lines = [f"{line},{path}" if line.startswith("log.dirs=") else line for line in before.splitlines()]
    settings.write_text("\n".join(lines) + "\n", encoding="utf-8")
    try:
        yield SecondDirectory(path, mount, is_mount)
    finally:
        settings.write_text(before, encoding="utf-8")
        if is_mount:
            # A broker that was killed a moment ago may still hold files there.
            subprocess.run(("umount", "-l", str(mount)), capture_output=True, check=True)
        shutil.rmtree(mount)


def _mount(*arguments: str | Path) -> bool:
    if shutil.which("mount") is None:
        return False
    return subprocess.run(("mount", *map(str, arguments)), capture_output=True, check=False).returncode == 0
