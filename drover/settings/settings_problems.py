"""Problems of the settings in words: which key, in which line of the file or in which variable, and the remedy."""

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from drover.settings.settings_variables import hint, keys_at, variable_of

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

CONFIG_VARIABLE = "DROVER_CONFIG"
FILE_NAME = "drover.toml"


@dataclass(frozen=True, slots=True)
class SettingsFile:
    """The settings file and its text; `path` is None if there is none."""

    path: Path | None
    text: str = ""

    @property
    def place(self) -> str:
        """What a message calls it."""
        return f"the settings file {self.path}" if self.path is not None else f"no {FILE_NAME} (none was found)"


def problem_of(detail: "ErrorDetails", file: SettingsFile) -> str:
    """Say in one sentence what the validation has found, where it stands and what to do."""
    path = [str(part) for part in detail["loc"]]
    key = ".".join(path)
    where = _origin(path, file)
    match detail["type"]:
        case "missing" | "missing_argument":
            said = f"{key} is not set; {_remedy(path, file)}"
        case "extra_forbidden" | "unexpected_keyword_argument":
            said = f"{key} is no setting{hint(path[-1], keys_at(path[:-1]))}"
        case "value_error":
            complaint = detail["msg"].removeprefix("Value error, ")
            said = f"{key}: {complaint}"
            # A section is checked as a whole, and says first which of its settings is meant.
            meant = complaint.split(maxsplit=1)[0]
            where = _origin([*path, meant], file) if meant in keys_at(path) else where
        case _:
            said = f"{key}: {detail['msg'][:1].lower()}{detail['msg'][1:]}"
    return f"{where}: {said}"


def _origin(path: Sequence[str], file: SettingsFile) -> str:
    variable = variable_of(path)
    named = next((name for name in os.environ if re.sub(r"[.-]", "_", name).upper() == variable), None)
    if named is not None:
        return f"environment variable {named}"
    if file.path is None:
        return f"settings (no {FILE_NAME} was found)"
    line = _line_of(path, file.text)
    return f"settings file {file.path}" if line is None else f"settings file {file.path}, line {line}"


def _line_of(path: Sequence[str], text: str) -> int | None:
    """Find the line that says what is at this path, or else that of its section; None if no line does."""
    section: list[str] = []
    found: int | None = None
    for number, line in enumerate(text.splitlines(), start=1):
        heading = re.match(r"\s*\[([^\[\]]+)\]", line)
        if heading is not None:
            section = [part.strip(" \"'") for part in re.findall(r"\"[^\"]*\"|'[^']*'|[^.\s]+", heading[1])]
            if section and section == list(path[: len(section)]):
                found = number
        key = re.match(r"\s*([A-Za-z0-9_-]+|\"[^\"]*\")\s*=", line)
        if key is not None and [*section, key[1].strip('"')] == list(path[: len(section) + 1]):
            return number
    return found


def _remedy(path: Sequence[str], file: SettingsFile) -> str:
    if "bootstrap" in keys_at(path):
        # A section is not a value: what it must hold is.
        path = [*path, "bootstrap"]
    variable = variable_of(path)
    if file.path is None:
        return f"name a settings file with --config or {CONFIG_VARIABLE}, or set {variable}"
    return f"add it to the file or set {variable}"
