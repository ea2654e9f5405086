"""Where the checked-in files are, and their syntax trees."""

import ast
import functools
from pathlib import Path

ROOT = Path(__file__).parents[2]
TOP_LEVEL = ("agents", "drover", "events", "projections", "spark")
FOLDERS = (*TOP_LEVEL, "tests", "bench")


@functools.cache
def python_files() -> tuple[Path, ...]:
    """List every Python file of the project, as paths from its root."""
    found = (path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py"))
    return tuple(sorted(path.relative_to(ROOT) for path in found))


@functools.cache
def text_of(path: Path) -> str:
    """Read one file."""
    return (ROOT / path).read_text(encoding="utf-8")


@functools.cache
def tree_of(path: Path) -> ast.Module:
    """Parse one file."""
    return ast.parse(text_of(path), filename=str(path))


@functools.cache
def nodes_of(path: Path) -> tuple[ast.AST, ...]:
    """List every node of one file's syntax tree."""
    return tuple(ast.walk(tree_of(path)))
