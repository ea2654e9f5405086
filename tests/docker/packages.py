"""Wheels and sdists as `uv build` makes them, and environments that they are installed into."""

import subprocess
import sys
from pathlib import Path

from tests.architecture.repository import ROOT

UV = str(Path(sys.executable).with_name("uv"))


def uv(*arguments: str) -> None:
    done = subprocess.run([UV, *arguments], capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr


def build(source: Path, into: Path, *kinds: str) -> Path:
    """Build the wheel of `source`, by way of an sdist unless `kinds` says otherwise; return the wheel."""
    constraints = str(ROOT / ".ci" / "build.txt")
    uv("build", "--quiet", *kinds, "--build-constraints", constraints, "--out-dir", str(into), str(source))
    (wheel,) = into.glob("*.whl")
    return wheel


def install(wheel: Path, environment: Path) -> None:
    """Install a wheel without its dependencies."""
    uv("pip", "install", "--quiet", "--no-deps", "--python", str(environment / "bin" / "python"), str(wheel))


def uninstall(name: str, environment: Path) -> None:
    uv("pip", "uninstall", "--quiet", "--python", str(environment / "bin" / "python"), name)


def site_of(environment: Path) -> Path:
    """Return the folder of the packages that are installed."""
    (site,) = environment.glob("lib/python*/site-packages")
    return site
