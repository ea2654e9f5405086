"""Every setting with its value, and where that comes from: a flag, a variable, a line of the file, or the default."""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from drover.settings.sources import ReadSettings, SettingsFile, by_own_limit_names, line_of
from drover.settings.variables import LOG, variable_in_force

FLAG = "flag"
DEFAULT = "default"
HIDDEN = "***"


@dataclass(frozen=True, slots=True)
class SettingRow:
    """One setting: its path joined by dots, its value as in the file, and the origin of that in words."""

    setting: str
    value: Any
    origin: str


def setting_rows(read: ReadSettings) -> list[SettingRow]:
    """Return every setting, those of the log first; passwords and whatever may hold one are hidden."""
    content = by_own_limit_names(read.content)
    return [
        SettingRow(".".join(path), value, _origin(path, read, content)) for path, value in _leaves(read.settings, ())
    ]


def _leaves(section: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield the settings below a section, by path; one that is left out is a setting with the value None."""
    for declared in dataclasses.fields(section):
        value, place = getattr(section, declared.name), (*path, declared.name)
        if isinstance(value, Mapping) and declared.repr:
            for name, item in sorted(value.items()):
                if dataclasses.is_dataclass(item):
                    yield from _leaves(item, (*place, name))
                else:
                    yield (*place, name), item
        elif dataclasses.is_dataclass(value):
            yield from _leaves(value, place)
        elif not declared.repr:
            yield place, HIDDEN if value else value
        else:
            yield place, _plain(value)


def _plain(value: Any) -> Any:
    if isinstance(value, Enum):
        return value.value
    return list(value) if isinstance(value, tuple) else value


def _origin(path: Sequence[str], read: ReadSettings, content: Mapping[str, Any]) -> str:
    if _has(read.flags, path):
        return FLAG
    if _has(read.variables, path):
        return f"variable {variable_in_force(path)}"
    if _has(content, path):
        return _place(path, read.file)
    if not read.has_own_log and path[0] == LOG and path[1] in {"bootstrap", "security"}:
        return "the only cluster"
    return DEFAULT


def _place(path: Sequence[str], file: SettingsFile) -> str:
    line = line_of(path, file.text)
    return str(file.path) if line is None else f"{file.path}:{line}"


def _has(source: Mapping[str, Any], path: Sequence[str]) -> bool:
    section: Any = source
    for part in path:
        if not isinstance(section, Mapping) or part not in section:
            return False
        section = section[part]
    return True
