"""The settings of docs/testing-your-tools.md, and runs of pytest in projects outside the repository.

The page's examples run from the installed wheel: tests/install/test_documented_programs.py.
"""

import os
import subprocess
import sys
from pathlib import Path

import drover.testing
from tests.testing.pages import programs


def run_pytest(directory: Path, *, conftest: str = "", options: tuple[str, ...] = ()) -> str:
    """Run the tests in a directory, and return what pytest prints."""
    (directory / "conftest.py").write_text(conftest, encoding="utf-8")
    done = subprocess.run(
        (sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *options),
        cwd=directory,
        # Before everything else, so that a project may have a `sitecustomize`.
        env={**os.environ, "PYTHONPATH": str(directory)},
        capture_output=True,
        text=True,
        check=False,
        timeout=250,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_settings_are_those_that_a_project_overrides(tmp_path: Path) -> None:
    settings = programs("testing-your-tools.md")["conftest.py"]
    (tmp_path / "test_settings.py").write_text(
        "async def test_settings(drover_model, drover_local_settings, drover_local_cluster_settings):\n"
        "    assert sorted(drover_model.cluster.brokers) == [1, 2, 3, 4, 5, 6]\n"
        "    assert drover_model.settings.clusters['local'].max_moves_per_broker == 2\n"
        "    assert drover_local_settings.limits == {'max_moves_per_broker': 2}\n"
        "    assert drover_local_cluster_settings.racks == 2\n"
    )
    assert "1 passed" in run_pytest(tmp_path, conftest=settings, options=("-o", "asyncio_mode=auto"))


def test_a_run_of_pytest_that_uses_no_fixture_imports_none_of_what_they_need(tmp_path: Path) -> None:
    (tmp_path / "test_nothing.py").write_text(
        "import sys\n\n"
        "def test_nothing(pytestconfig):\n"
        "    assert pytestconfig.pluginmanager.has_plugin('drover.testing.fixtures')\n"
        "    ours = {'drover', 'aiokafka', 'kafka', 'msgspec'}\n"
        "    names = {name for name in sys.modules if name.split('.')[0] in ours}\n"
        "    assert names == {'drover', 'drover.testing', 'drover.testing.plugin', 'drover.testing.fixtures'}\n"
    )
    run_pytest(tmp_path)


def test_a_project_without_pytest_asyncio_has_no_fixtures_and_no_trouble(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        "import importlib.util\n"
        "find = importlib.util.find_spec\n"
        "importlib.util.find_spec = lambda name, *more: None if name == 'pytest_asyncio' else find(name, *more)\n"
    )
    (tmp_path / "test_nothing.py").write_text(
        "def test_nothing(pytestconfig):\n"
        "    assert pytestconfig.pluginmanager.has_plugin('drover')\n"
        "    assert not pytestconfig.pluginmanager.has_plugin('drover.testing.fixtures')\n"
    )
    run_pytest(tmp_path, options=("-p", "no:asyncio"))


def test_the_public_names_are_those_of_their_modules() -> None:
    for name in drover.testing.__all__:
        assert getattr(drover.testing, name).__name__ == name
    assert not hasattr(drover.testing, "nonsense")
