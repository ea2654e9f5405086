"""What the image holds is enough to run: its files, installed into an empty environment, start and can be imported."""

import os
import re
import shutil
import subprocess
import sysconfig
import venv
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.architecture.repository import ROOT
from tests.architecture.test_tooling import toml
from tests.docker.packages import build, install, site_of

# Runs in the environment: imports every module of every package that was installed.
IMPORT_ALL = """
import importlib, pathlib, sys
root = pathlib.Path(sys.argv[1])
files = [file.relative_to(root).with_suffix("") for file in root.rglob("*.py")]
names = [".".join(file.parts).removesuffix(".__init__") for file in files]
for name in sorted(names):
    if not name.endswith("__main__"):
        importlib.import_module(name)
print(len(names))
"""


def files_of_the_image() -> Iterator[Path]:
    """Return what Docker would copy: what the first stage names, without what .dockerignore leaves out."""
    dockerfile = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    ignored = (ROOT / ".dockerignore").read_text(encoding="utf-8").split()
    assert ignored[0] == "*", "everything is left out but what is named"
    kept = {line.removeprefix("!") for line in ignored if line.startswith("!")}
    for line in re.findall(r"^COPY (?!--)(.*)$", dockerfile, re.MULTILINE):
        for name in line.split()[:-1]:
            assert name in kept, f"{name} is copied, and .dockerignore leaves it out"
            found = ROOT / name
            everything = found.rglob("*") if found.is_dir() else (found,)
            yield from (file for file in everything if file.is_symlink() or file.is_file())


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty environment with the wheel that the image's files make, and the installed dependencies."""
    home = tmp_path_factory.mktemp("image")
    source, where = home / "source", home / "environment"
    for file in files_of_the_image():
        target = source / file.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(file, target, follow_symlinks=False)
    venv.create(where, with_pip=False)
    install(build(source, home / "dist", "--wheel"), where)
    # Their files alone: this checkout, which is installed beside them, is not seen.
    (site_of(where) / "dependencies.pth").write_text(sysconfig.get_paths()["purelib"] + "\n", encoding="utf-8")
    return where


def run(environment: Path, *arguments: str) -> str:
    python = environment / "bin" / "python"
    said = {"PATH": os.environ["PATH"], "HOME": str(environment)}
    done = subprocess.run(
        [str(python), *arguments], cwd=environment, env=said, capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("arguments", [["--help"], ["worker", "--help"]], ids=" ".join)
def test_the_image_starts(environment: Path, arguments: list[str]) -> None:
    entry = toml("pyproject.toml")["project"]["scripts"]["drover"]
    module, _, name = entry.partition(":")
    said = run(environment, "-c", f"import sys; from {module} import {name}; sys.exit({name}())", *arguments)
    assert said.startswith("Usage: drover")


def test_everything_in_the_image_can_be_imported(environment: Path) -> None:
    assert int(run(environment, "-c", IMPORT_ALL, str(site_of(environment)))) > 300
    where = run(environment, "-c", "import drover; print(drover.__file__)")
    assert Path(where.strip()).is_relative_to(environment), "the checkout was imported instead"
