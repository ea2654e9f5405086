"""What is published is one package, `drover`: packages of others called `events` or `agents` are left alone."""

import importlib.metadata
import subprocess
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

import drover
from tests.architecture.repository import ROOT, TOP_LEVEL
from tests.architecture.test_tooling import toml
from tests.docker.packages import build, install, site_of, uninstall

LINKED = tuple(name for name in TOP_LEVEL if name != "drover")
NAME = "kafka-drover"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel that comes from the sdist, with the sdist beside it."""
    return build(ROOT, tmp_path_factory.mktemp("packages"))


def files_of(folder: Path) -> dict[Path, str]:
    return {file: file.read_text(encoding="utf-8") for file in folder.rglob("*.py")}


def test_the_wheel_holds_one_package_with_every_module_once(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.split("/")[0] for name in names} == {"drover", f"kafka_drover-{drover.__version__}.dist-info"}
    assert "drover/py.typed" in names
    ours = [path for name in TOP_LEVEL for path in (ROOT / name).rglob("*.py")]
    places = [path.relative_to(ROOT).as_posix() for path in ours]
    expected = {place if place.startswith("drover/") else f"drover/{place}" for place in places}
    assert {name for name in names if name.endswith(".py")} == expected
    assert len(names) == len({*names})


def test_the_sdist_holds_what_the_wheel_is_built_from_and_nothing_else(wheel: Path) -> None:
    (sdist,) = wheel.parent.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {name.split("/")[1] for name in archive.getnames()}
    # Hatchling adds the last two.
    assert names == {*TOP_LEVEL, "LICENSE", "NOTICE", "README.md", "pyproject.toml", ".gitignore", "PKG-INFO"}


def test_packages_of_others_stay_as_they_are(wheel: Path, tmp_path: Path) -> None:
    where = tmp_path / "environment"
    venv.create(where, with_pip=False)
    for name in LINKED:
        (site_of(where) / name).mkdir()
        (site_of(where) / name / "__init__.py").write_text(f"WHOSE = 'theirs: {name}'\n", encoding="utf-8")
    before = files_of(site_of(where))
    install(wheel, where)
    code = f"import drover.events, drover.agents; {'; '.join(f'import {name}; print({name}.WHOSE)' for name in LINKED)}"
    done = subprocess.run(
        [where / "bin" / "python", "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60
    )
    assert done.stdout.splitlines() == [f"theirs: {name}" for name in LINKED], done.stderr
    assert before.items() <= files_of(site_of(where)).items()
    uninstall(NAME, where)
    assert files_of(site_of(where)) == before
    assert not (site_of(where) / "drover").exists()


def test_the_links_of_the_checkout_lead_to_the_folders_at_the_top() -> None:
    assert {path.name for path in (ROOT / "drover").iterdir() if path.is_symlink()} == {*LINKED}
    for name in LINKED:
        assert (ROOT / "drover" / name).resolve() == ROOT / name


def test_the_version_is_written_alike_everywhere() -> None:
    assert drover.__version__ == toml("pyproject.toml")["project"]["version"] == importlib.metadata.version(NAME)
