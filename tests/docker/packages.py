"""Wheels and sdists as `uv build` makes them, and environments that they are installed into."""

import subprocess
import sys
import venv
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


def environment_of_wheel(home: Path, *extras: str) -> Path:
    """Make an environment that holds Drover's wheel with its dependencies, in the versions of the lock.

    The core's byte code is there from the start, as pip leaves it. Spark's would take half a minute of all processors.
    """
    environment, locked = home / "environment", str(home / "locked.txt")
    venv.create(environment, with_pip=False)
    chosen = [word for extra in extras for word in ("--extra", extra)]
    uv("export", "--quiet", "--frozen", "--no-dev", "--no-emit-project", *chosen, "--output-file", locked)
    python = str(environment / "bin" / "python")
    how = ("--require-hashes", *(() if extras else ("--compile-bytecode",)))
    uv("pip", "install", "--quiet", "--python", python, *how, "-r", locked)
    install(build(ROOT, home / "dist", "--wheel"), environment)
    return environment


def uninstall(name: str, environment: Path) -> None:
    uv("pip", "uninstall", "--quiet", "--python", str(environment / "bin" / "python"), name)


def site_of(environment: Path) -> Path:
    """Return the folder of the packages that are installed."""
    (site,) = environment.glob("lib/python*/site-packages")
    return site
