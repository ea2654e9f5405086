"""What the page on adding a capability says is done to a copy of the source, and works there."""

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.shell_blocks import ROOT

PAGE = (ROOT / "docs" / "adding-a-capability.md").read_text(encoding="utf-8")
# A file's name on a line of its own, then blocks that make it or change it.
BLOCK = re.compile(r"^`(?P<file>[\w./-]+)`:$|^```(?P<kind>python|diff)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
# A deadline only ends a hang: to check all types anew takes half a minute on a quiet machine.
DEADLINE_S = 1200
pytestmark = pytest.mark.timeout(DEADLINE_S + 60)
COPIED = (
    *("agents", "drover", "events", "projections", "spark", "pyproject.toml"),
    *("tests/__init__.py", "tests/shard", "tests/events", "tests/simulation"),
)


def blocks() -> Iterator[tuple[str, str, str]]:
    """Every block as its file, its kind and its text."""
    file = ""
    for found in BLOCK.finditer(PAGE):
        if found["file"]:
            file = found["file"]
        else:
            yield file, found["kind"], found["text"]


def changed(text: str, hunk: str, file: str) -> str:
    """Replace what a hunk finds; it must find one place."""
    lines = hunk.splitlines(keepends=True)
    before = "".join(line[1:] for line in lines if line[0] in " -")
    after = "".join(line[1:] for line in lines if line[0] in " +")
    assert text.count(before) == 1, f"{file} has {text.count(before)} places like this one:\n{before}"
    return text.replace(before, after)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The source with the capability of the page."""
    root = tmp_path_factory.mktemp("capability")
    for name in COPIED:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).is_dir():
            # With its byte code, which is made again for what is changed, and with the links to the folders at the top.
            shutil.copytree(ROOT / name, root / name, symlinks=True)
        else:
            shutil.copy(ROOT / name, root / name)
    for file, kind, text in blocks():
        path = root / file
        if kind == "diff":
            path.write_text(changed(path.read_text(encoding="utf-8"), text, file), encoding="utf-8")
        else:
            assert not path.exists(), f"{file} exists already"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
    return root


def run(root: Path, *arguments: str) -> str:
    """Run a Python module in the copy, which comes first on the path; returns what it printed."""
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=root,
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_its_own_tests_pass(built: Path) -> None:
    passed = run(built, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/notes")
    assert re.search(rf"^{PAGE.count('async def test_')} passed", passed, re.MULTILINE)


def test_every_log_from_before_it_keeps_its_hashes(built: Path) -> None:
    """Nothing of it is in these logs: they replay to the very hashes that they carry, and snapshots are restored."""
    run(built, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/simulation/test_golden.py")


def test_the_command_line_lists_it(built: Path) -> None:
    code = "from drover.cli.main import main; main()"
    assert re.search(r"^ +note +Leave a note", run(built, "-c", code, "--help"), re.MULTILINE)
    assert "--reason" in run(built, "-c", code, "note", "--help")


def test_the_types_of_its_files_are_right(built: Path) -> None:
    made = [file for file, kind, _ in blocks() if kind == "python"]
    run(built, "-m", "mypy", "--no-incremental", *made)


def test_it_keeps_the_import_contracts_and_the_style(built: Path) -> None:
    program = Path(sys.executable).parent / "lint-imports"
    assert "0 broken" in run(built, str(program), "--no-cache")
    run(built, "-m", "ruff", "check", "--no-cache", "drover", "events", "tests/notes")
    run(built, "-m", "ruff", "format", "--no-cache", "--check", "drover", "events", "tests/notes")


def test_the_page_names_a_list_for_every_part() -> None:
    files = {file for file, kind, _ in blocks() if kind == "diff"}
    (table,) = re.findall(r"^\| part .*?\n\n", PAGE, flags=re.MULTILINE | re.DOTALL)
    assert files == {*re.findall(r"`([\w/]+\.py)`", table)}
