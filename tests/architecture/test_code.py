"""Sizes, imports and error handling, over every Python file of the project."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tests.architecture.repository import FOLDERS, ROOT, TOP_LEVEL, nodes_of, python_files, text_of, tree_of

MAX_FUNCTION_LINES = 60
MAX_FILE_LINES = 800
# Supervisors: whatever their child raises ends the process, or is handed to the one who waits for it.
BROAD_EXCEPT_ALLOWED = {
    "agents/app.py": "Faust would go on half way through a rebalance",
    "agents/intake.py": "an agent that dies loses a command",
    "drover/threads.py": "a thread hands its fault to whoever waits",
    "agents/host.py": "the supervisor of every task of a worker",
    "projections/projection.py": "the supervisor of a view: the worker goes on, and says that it has ended",
    "agents/snapshots.py": "the supervisor of an optimisation: the shard goes on without it",
    "agents/worker.py": "Faust half started can only be ended with the process",
    "drover/web/sources.py": "the supervisor of what the page shows: it says so, and tries again",
}


def functions(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    return (node for node in nodes_of(path) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def lines_of(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    assert function.end_lineno is not None
    return function.end_lineno - function.lineno + 1


def names_a_reason(path: Path, line: int) -> bool:
    """Whether the line silences the linter with a reason beside it."""
    return re.search(r"# noqa: BLE001\s+(-|#) \w", text_of(path).splitlines()[line - 1]) is not None


def is_broad(handler: ast.ExceptHandler) -> bool:
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(kind is None or ast.unparse(kind) in {"Exception", "BaseException"} for kind in kinds)


def blind_excepts(path: Path) -> list[int]:
    """Lines that catch broadly, or without a reason where that is allowed."""
    broad = [node.lineno for node in nodes_of(path) if isinstance(node, ast.ExceptHandler) and is_broad(node)]
    allowed = str(path) in BROAD_EXCEPT_ALLOWED
    return [line for line in broad if not (allowed and names_a_reason(path, line))]


def test_every_file_is_short() -> None:
    lines = {str(path): len(text_of(path).splitlines()) for path in python_files()}
    assert {path: count for path, count in lines.items() if count > MAX_FILE_LINES} == {}


def test_every_function_is_short() -> None:
    lines = {(str(path), function.name): lines_of(function) for path in python_files() for function in functions(path)}
    assert {name: count for name, count in lines.items() if count > MAX_FUNCTION_LINES} == {}


def test_nothing_is_left_undone() -> None:
    marks = ("TO" + "DO", "FIX" + "ME", "X" * 3)
    lines = ((str(path), line) for path in python_files() for line in text_of(path).splitlines())
    assert [found for found in lines if any(mark in found[1] for mark in marks)] == []


def test_imports_are_absolute() -> None:
    nodes = ((path, node) for path in python_files() for node in nodes_of(path))
    relative = [f"{path}:{node.lineno}" for path, node in nodes if isinstance(node, ast.ImportFrom) and node.level]
    assert relative == []


def test_no_fault_is_caught_blindly() -> None:
    assert [f"{path}:{line}" for path in python_files() for line in blind_excepts(path)] == []


def test_every_file_that_may_catch_broadly_does() -> None:
    idle = [
        allowed
        for allowed in BROAD_EXCEPT_ALLOWED
        if not any(isinstance(node, ast.ExceptHandler) and is_broad(node) for node in nodes_of(Path(allowed)))
    ]
    assert idle == [], "take them off the list"


def caught(handler: ast.ExceptHandler) -> set[str]:
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return {ast.unparse(kind).removeprefix("*").rpartition(".")[2] for kind in kinds if kind is not None}


def is_half_caught(attempt: ast.Try) -> bool:
    """Whether only some of what a decoder of msgspec raises is caught around it."""
    kinds = set[str]().union(*map(caught, attempt.handlers))
    calls = (node.func for part in attempt.body for node in ast.walk(part) if isinstance(node, ast.Call))
    decodes = any(isinstance(called, ast.Attribute) and called.attr == "decode" for called in calls)
    return "DecodeError" in kinds or (decodes and "ValidationError" in kinds and "UNDECODABLE" not in kinds)


def test_whoever_catches_what_a_decoder_raises_catches_all_of_it() -> None:
    tries = ((path, node) for path in python_files() for node in nodes_of(path) if isinstance(node, ast.Try))
    half = [f"{path}:{node.lineno}" for path, node in tries if path.parts[0] in TOP_LEVEL and is_half_caught(node)]
    assert half == [], "catch events.undecodable.UNDECODABLE"


def test_consumers_of_kafka_are_made_in_one_place_only() -> None:
    # `AIOKafkaConsumer` itself stops at a header whose name is not UTF-8.
    ours = [path for path in python_files() if path.parts[0] in TOP_LEVEL]
    calls = ((path, node) for path in ours for node in nodes_of(path) if isinstance(node, ast.Call))
    makers = {str(path) for path, call in calls if ast.unparse(call.func).endswith("AIOKafkaConsumer")}
    assert makers == {"drover/journal/consumer.py"}


def test_every_module_has_a_docstring() -> None:
    assert [str(path) for path in python_files() if not ast.get_docstring(tree_of(path))] == []


def test_every_folder_with_code_is_a_package() -> None:
    folders = {path.parent for path in python_files()}
    missing = [str(folder) for folder in sorted(folders) if not (ROOT / folder / "__init__.py").exists()]
    assert missing == []


def test_the_folders_hold_something() -> None:
    assert {path.parts[0] for path in python_files()} >= {*TOP_LEVEL, "tests"}
    assert set(FOLDERS) >= {*TOP_LEVEL, "tests"}
