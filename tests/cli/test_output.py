"""What is quoted cannot act on a terminal: one function for everything that people read."""

import json
import re
from pathlib import Path

import pytest
import yaml

from drover.cli.exits import Failure
from drover.cli.output import console, print_document, print_line, say, styled, table
from drover.events.bounds import visible
from tests.architecture.repository import ROOT

HOSTILE = "\x1b[2Jclear \x9b1m \u202etxt.exe \u2066 \x7f \x07 \r end"
ACTS = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def test_what_nobody_sees_is_written_as_its_escape() -> None:
    assert (
        visible("\x1b[2J\u202ea\nb \U0001f469\u200d\U0001f4bb größe")
        == "\\x1b[2J\\u202ea\nb \U0001f469\u200d\U0001f4bb größe"
    )
    assert visible("\udc80") == "\\udc80"


def test_no_way_of_printing_lets_it_through(capsys: pytest.CaptureFixture[str]) -> None:
    say(HOSTILE)
    console().print(table(("reason",), [(HOSTILE,)]))
    console().print(styled(HOSTILE + "\nshard 0 is owned by nobody"))
    print_line({"reason": HOSTILE})
    for output in ("json", "jsonl", "yaml"):
        print_document({"rows": [{"reason": HOSTILE}]}, [{"reason": HOSTILE}], output)
    Failure(f"refused: {HOSTILE}").show()
    said = capsys.readouterr()
    assert said.out.count("clear") == 7
    assert not ACTS.search(said.out + said.err)
    assert "\nshard 0" not in said.out


@pytest.mark.parametrize("output", ["json", "yaml"])
def test_programs_read_what_was_written(output: str, capsys: pytest.CaptureFixture[str]) -> None:
    print_document({"reason": HOSTILE}, [], output)
    said = capsys.readouterr().out
    assert (json.loads(said) if output == "json" else yaml.safe_load(said)) == {"reason": HOSTILE}


@pytest.mark.parametrize("module", sorted((ROOT / "drover" / "cli").glob("*.py")), ids=lambda file: file.name)
def test_every_module_prints_by_that_function(module: Path) -> None:
    text = module.read_text(encoding="utf-8")
    if module.name != "output.py":
        assert "click.echo" not in text
        assert "rich.text" not in text
