"""Sizes, imports and error handling, over every Python file of the project."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.architecture.repository import FOLDERS, ROOT, TOP_LEVEL, python_files, text_of, tree_of

MAX_FUNCTION_LINES = 50
MAX_FILE_LINES = 400
# Supervisors: whatever their child raises ends the process, or is handed to the one who waits for it.
BROAD_EXCEPT_ALLOWED = {
    "agents/app.py": "Faust would go on half way through a rebalance",
    "agents/intake.py": "an agent that dies loses a command",
    "drover/cluster/wire.py": "a thread hands its fault to whoever waits",
    "drover/runtime/host.py": "the supervisor of every task of a worker",
    "drover/runtime/snapshots.py": "the supervisor of an optimisation: the shard goes on without it",
    "drover/runtime/worker.py": "Faust half started can only be ended with the process",
}

EACH_FILE = pytest.mark.parametrize("path", python_files(), ids=str)


def functions(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    return (node for node in ast.walk(tree_of(path)) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def lines_of(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    assert function.end_lineno is not None
    return function.end_lineno - function.lineno + 1


def names_a_reason(path: Path, line: int) -> bool:
    """Whether the line silences the linter with a reason beside it."""
    return re.search(r"# noqa: BLE001\s+(-|#) \w", text_of(path).splitlines()[line - 1]) is not None


def is_broad(handler: ast.ExceptHandler) -> bool:
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(kind is None or ast.unparse(kind) in {"Exception", "BaseException"} for kind in kinds)


@EACH_FILE
def test_a_file_is_short(path: Path) -> None:
    assert len(text_of(path).splitlines()) <= MAX_FILE_LINES


@EACH_FILE
def test_every_function_is_short(path: Path) -> None:
    long = {function.name: lines_of(function) for function in functions(path)}
    assert {name: lines for name, lines in long.items() if lines > MAX_FUNCTION_LINES} == {}


@EACH_FILE
def test_nothing_is_left_undone(path: Path) -> None:
    marks = ("TO" + "DO", "FIX" + "ME", "X" * 3)
    assert [line for line in text_of(path).splitlines() if any(mark in line for mark in marks)] == []


@EACH_FILE
def test_imports_are_absolute(path: Path) -> None:
    assert [node.lineno for node in ast.walk(tree_of(path)) if isinstance(node, ast.ImportFrom) and node.level] == []


@EACH_FILE
def test_no_fault_is_caught_blindly(path: Path) -> None:
    broad = [node.lineno for node in ast.walk(tree_of(path)) if isinstance(node, ast.ExceptHandler) and is_broad(node)]
    if str(path) in BROAD_EXCEPT_ALLOWED:
        assert broad, f"{path} catches nothing broadly any more: take it off the list"
        assert [line for line in broad if not names_a_reason(path, line)] == []
    else:
        assert broad == []


@EACH_FILE
def test_a_module_says_what_it_is(path: Path) -> None:
    assert ast.get_docstring(tree_of(path))


def test_every_folder_with_code_is_a_package() -> None:
    folders = {path.parent for path in python_files()}
    missing = [str(folder) for folder in sorted(folders) if not (ROOT / folder / "__init__.py").exists()]
    assert missing == []


def test_the_folders_hold_something() -> None:
    assert {path.parts[0] for path in python_files()} >= {*TOP_LEVEL, "tests"}
    assert set(FOLDERS) >= {*TOP_LEVEL, "tests"}
