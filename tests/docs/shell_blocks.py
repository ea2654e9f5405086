"""What the documentation tells people to type: the `drover ...` and `make ...` of every code block and inline code."""

import html
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True, slots=True)
class Typed:
    """One command line, split into words, and the document it is in."""

    file: str
    words: tuple[str, ...]

    def __str__(self) -> str:
        """The form in test ids."""
        return f"{self.file}: {' '.join(self.words)}"


def documents() -> tuple[Path, ...]:
    """List every Markdown file of the project."""
    packages = [path for package in ("events", "projections", "spark") for path in (ROOT / package).glob("*.md")]
    found = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *packages]
    return tuple(sorted(path.relative_to(ROOT) for path in found))


def typed(program: str) -> tuple[Typed, ...]:
    """Return every call of a program, in fenced shell blocks and in inline code."""
    return tuple(Typed(str(document), words) for document in documents() for words in _calls(document, program))


def pictured(program: str) -> tuple[tuple[str, ...], ...]:
    """Return every call of a program that the picture in the README shows being typed."""
    picture = (ROOT / "docs" / "pictures" / "rollback.svg").read_text(encoding="utf-8").replace("\xa0", " ")
    lines = re.findall(r">\$ ([^<]*)</text>", picture)
    return tuple(words for line in lines for words in _call(html.unescape(line), program))


def _calls(document: Path, program: str) -> Iterator[tuple[str, ...]]:
    text = (ROOT / document).read_text(encoding="utf-8")
    for block in re.findall(r"^```sh\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL):
        for line in re.sub(r"<<'END'\n.*?\nEND\n", "\n", block, flags=re.DOTALL).splitlines():
            for part in re.split(r"&&|\|", line):
                yield from _call(part, program)
    prose = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    for code in re.findall(r"`([^`\n]+)`", prose):
        yield from _call(code, program)


def _call(text: str, program: str) -> Iterator[tuple[str, ...]]:
    words = shlex.split(text, comments=True)
    if words[:1] == [program] and len(words) > 1 and words[1] != "...":
        yield tuple(_without_redirections(words))


def _without_redirections(words: list[str]) -> Iterator[str]:
    rest = iter(words)
    for word in rest:
        if re.fullmatch(r"\d?>", word):
            next(rest)
        elif word != "&":
            yield word
