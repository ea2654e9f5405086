"""Load the settings: flags override `DROVER_*` variables, and these override drover.toml; every problem has a remedy.

The three are merged first. Then each value is checked against its type in `drover.settings.settings`, and all problems
are reported at once.
"""

import dataclasses
import enum
import os
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

import msgspec

from drover.errors import ConfigurationError
from drover.events.commands import is_cluster_name
from drover.settings.contexts import file_of_context_in_use, users_directory
from drover.settings.settings import Settings
from drover.settings.trusted_files import read_trusted
from drover.settings.variables import (
    CLUSTERS,
    LOG,
    PREFIX,
    alternatives,
    hint,
    keys_at,
    read_variables,
    section_shape,
    variable_in_force,
    variable_of,
)
from drover.state.limit_names import HEALING, find, of_section
from drover.text_files import decode_text

CONFIG_VARIABLE = "DROVER_CONFIG"
FILE_NAME = "drover.toml"
# The tables that TOML makes of unquoted names with dots, such as those of KIP-435 and Cruise Control.
_DOTTED = frozenset({"broker", "kafka", "max", "num", "reassignment"})
_EXPECTED = {str: "text, in quotes", bool: "true or false", int: "an integer", float: "a number"}


@dataclass(frozen=True, slots=True)
class SettingsFile:
    """The settings file and its text; `path` is None if there is none."""

    path: Path | None
    text: str = ""

    @property
    def place(self) -> str:
        """The name of the file in messages."""
        return f"the settings file {self.path}" if self.path is not None else f"no {FILE_NAME} (none was found)"


@dataclass(frozen=True, slots=True)
class ReadSettings:
    """The settings, and the three sources of their values, each in the structure of the file.

    `has_own_log` is false where the only cluster also holds the log because nothing else is said.
    """

    settings: Settings
    file: SettingsFile
    content: Mapping[str, Any]
    variables: Mapping[str, Any]
    flags: Mapping[str, Any]
    has_own_log: bool


def load_settings(
    config: Path | None = None, overrides: Mapping[str, Any] | None = None, *, reads_file: bool = True
) -> Settings:
    """Read the settings; see `read_settings`."""
    return read_settings(config, overrides, reads_file=reads_file).settings


def read_settings(
    config: Path | None = None, overrides: Mapping[str, Any] | None = None, *, reads_file: bool = True
) -> ReadSettings:
    """Read the settings.

    `config` is the file of a flag; without it, the first existing one of `DROVER_CONFIG`, the context in use,
    ./drover.toml and the file in the user's configuration directory is used; no file at all without `reads_file`.
    `overrides` holds flags in the structure of the file. Raises `ConfigurationError` that names key, place and remedy.
    """
    path = find_file(config) if reads_file else None
    file, content = _parsed(path, b"" if path is None else _content(path))
    try:
        return _checked(file, content, overrides or {})
    except RecursionError as error:
        raise ConfigurationError(f"{file.place}, a variable or a flag is nested too deeply") from error


def find_file(config: Path | None) -> Path | None:
    """Return the drover.toml to use, if there is one. Raises `ConfigurationError` for a context that is gone."""
    named = config or (Path(os.environ[CONFIG_VARIABLE]) if os.environ.get(CONFIG_VARIABLE) else None)
    named = named or file_of_context_in_use()
    if named is not None:
        return named
    here = Path(FILE_NAME)
    if here.is_file():
        return here
    directory = users_directory()
    users = None if directory is None else directory / FILE_NAME
    return users if users is not None and users.is_file() else None


def _content(file: Path) -> bytes:
    try:
        return read_trusted(file, "the settings file")
    except OSError as error:
        raise ConfigurationError(
            f"the settings file {file} cannot be read ({error.strerror}); "
            f"name another with --config or {CONFIG_VARIABLE}"
        ) from error


def _parsed(path: Path | None, content: bytes) -> tuple[SettingsFile, dict[str, Any]]:
    try:
        file = SettingsFile(path, decode_text(content))
        return file, tomllib.loads(file.text)
    except (ValueError, RecursionError) as error:  # what the text decoder and tomllib raise
        reason = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise ConfigurationError(f"{SettingsFile(path).place} is not valid TOML: {reason}") from error


def _checked(file: SettingsFile, content: Mapping[str, Any], flags: Mapping[str, Any]) -> ReadSettings:
    clusters = {name for source in (content, flags) for name in _section(source, CLUSTERS)}
    variables = read_variables(clusters)
    merged = _merged(_merged(content, variables), flags)
    _check_texts(merged, file.place)
    host = None if _has_bootstrap(merged.get(LOG)) else _only_cluster(merged)
    if host is not None:
        # Its security is taken over as checked, so that what is wrong there is said once.
        place = {"bootstrap": merged[CLUSTERS][host]["bootstrap"]}
        merged = {**merged, LOG: {**place, **_section(merged, LOG)}}
    check = _Check(file)
    settings = check.section(Settings, _by_own_limit_names(merged, check), ())
    if check.problems:
        raise ConfigurationError("; ".join(check.problems))
    assert isinstance(settings, Settings), "what is not made has a problem"
    for name in settings.clusters:
        if not is_cluster_name(name):
            raise ConfigurationError(
                f"{file.place}: cluster name {name!r} must be 1 to 64 of a-z, 0-9, '.', '_' and '-', "
                "and begin with a-z or 0-9"
            )
    if host is not None and "security" not in _section(merged, LOG):
        log = dataclasses.replace(settings.log, security=settings.clusters[host].security)
        settings = dataclasses.replace(settings, log=log)
    return ReadSettings(settings, file, content, variables, flags, has_own_log=host is None)


def _has_bootstrap(log: object) -> bool:
    """Whether a section names the log's Kafka, or is none at all, which is said when it is checked."""
    return log is not None and (not isinstance(log, Mapping) or "bootstrap" in log)


def _only_cluster(settings: Mapping[str, Any]) -> str | None:
    """Return the name of the only cluster, if its Kafka is named."""
    clusters = _section(settings, CLUSTERS)
    named = [name for name, cluster in clusters.items() if isinstance(cluster, Mapping) and "bootstrap" in cluster]
    return named[0] if len(named) == len(clusters) == 1 else None


def _section(source: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    section = source.get(name)
    return section if isinstance(section, Mapping) else {}


def _merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Merge two maps, recursively; values of `above` win."""
    merged = dict(below)
    for key, value in above.items():
        other = merged.get(key)
        merged[key] = _merged(other, value) if isinstance(other, Mapping) and isinstance(value, Mapping) else value
    return merged


def _check_texts(value: object, place: str, path: str = "") -> None:
    """Refuse text that is not UTF-8, and NUL, which is invalid in names of files, hosts and users.

    Variables and flags may hold any bytes, and TOML has an escape for NUL.
    """
    if isinstance(value, str):
        if "\0" in value:
            raise ConfigurationError(f"{place}: {path} holds a NUL character: remove it")
        if not _is_utf8(value):
            wrong = [name for name, text in os.environ.items() if name.upper().startswith(PREFIX) and value in text]
            where = f"the environment variable {wrong[0]}" if wrong else f"a flag or a {PREFIX}* variable"
            raise ConfigurationError(f"{where} is not UTF-8: correct it")
    elif isinstance(value, Mapping):
        for key, item in value.items():
            _check_texts(key, place, f"a key in {path}" if path else "a key")
            _check_texts(item, place, f"{path}.{key}" if path else key)
    elif isinstance(value, list):
        for item in value:
            _check_texts(item, place, path)


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


@dataclass(slots=True)
class _Check:
    """Converts values to the types of `drover.settings.settings`, and collects the problems, a sentence each."""

    file: SettingsFile
    problems: list[str] = field(default_factory=list)

    def section(self, shape: Any, given: Mapping[str, Any], path: tuple[str, ...]) -> Any:
        """Return the section, or None if something is wrong with it."""
        problems_before = len(self.problems)
        if get_origin(shape) is dict:
            return {key: self._value(get_args(shape)[1], value, (*path, key)) for key, value in given.items()}
        types, values = get_type_hints(shape), {}
        for declared in dataclasses.fields(shape):
            if declared.name in given:
                values[declared.name] = self._value(types[declared.name], given[declared.name], (*path, declared.name))
            elif declared.default is dataclasses.MISSING and declared.default_factory is dataclasses.MISSING:
                key = (*path, declared.name)
                self.problem(key, f"{'.'.join(key)} is not set; {_remedy(key, self.file)}")
        for name in given:
            if name not in types:
                self.problem((*path, name), f"{'.'.join((*path, name))} is no setting{hint(name, types)}")
        if len(self.problems) > problems_before:
            return None
        try:
            return shape(**values)
        except ValueError as error:
            # A section's own check begins its message with the setting in question.
            meant = str(error).split(maxsplit=1)[0]
            self.problem((*path, meant) if meant in types else path, f"{'.'.join(path)}: {error}")
            return None

    def problem(self, path: Sequence[str], text: str) -> None:
        """Record a problem with the value at this path."""
        self.problems.append(f"{_origin(path, self.file)}: {text}")

    def _value(self, shape: Any, given: Any, path: tuple[str, ...]) -> Any:
        section = section_shape(shape)
        if section is not None and isinstance(given, Mapping):
            return self.section(section, given, path)
        try:
            return msgspec.convert(given, shape)
        except msgspec.ValidationError:
            # Without the value, which may be a misplaced password.
            self.problem(path, f"{'.'.join(path)} must be {_expected(shape)}")
            return None


def _expected(shape: Any) -> str:
    """Describe a value of this type in the file."""
    if section_shape(shape) is not None:
        return "a section"
    (kind,) = (alternative for alternative in alternatives(shape) if alternative is not type(None))
    if get_origin(kind) is tuple:
        return "a list of texts" if get_args(kind)[0] is str else "a list of integers"
    words = get_args(kind) or (tuple(kind) if issubclass(kind, enum.Enum) else ())
    return f"one of {', '.join(words)}" if words else _EXPECTED[kind]


def by_own_limit_names(content: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what a valid file says, with every limit by its own name."""
    return _by_own_limit_names(content, _Check(SettingsFile(None)))


def _by_own_limit_names(settings: Mapping[str, Any], check: _Check) -> Mapping[str, Any]:
    """Rename a cluster's limits from the names that the KIPs and Cruise Control give them."""
    clusters = settings.get(CLUSTERS)
    if not isinstance(clusters, Mapping):
        return settings
    renamed = {name: _renamed_cluster(given, (CLUSTERS, name), check) for name, given in clusters.items()}
    return {**settings, CLUSTERS: renamed}


def _renamed_cluster(given: Any, path: tuple[str, ...], check: _Check) -> Any:
    if not isinstance(given, Mapping):
        return given
    renamed = _under_own_names(given, "", path, check)
    healing = renamed.get("healing")
    if isinstance(healing, Mapping):
        renamed["healing"] = _under_own_names(healing, HEALING, (*path, "healing"), check)
    return renamed


def _under_own_names(given: Mapping[str, Any], section: str, path: tuple[str, ...], check: _Check) -> dict[str, Any]:
    limits = set(of_section(section))
    called: dict[str, str] = {}
    renamed: dict[str, Any] = {}
    for key, value in _flat(given):
        own = find(section + key) or find(key)
        name = own.field if own in limits and own is not None else key
        if name in renamed:
            same = f"{called[name]} and {key} are the same setting: choose one"
            check.problem((*path, key), f"{'.'.join(path)}: {same}")
        called[name], renamed[name] = key, value
    return renamed


def _flat(given: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in given.items():
        if isinstance(value, Mapping) and (prefix or key in _DOTTED):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield prefix + key, value


def _origin(path: Sequence[str], file: SettingsFile) -> str:
    named = variable_in_force(path, whole=True)
    if named is not None:
        return f"environment variable {named}"
    if file.path is None:
        return f"settings (no {FILE_NAME} was found)"
    line = line_of(path, file.text)
    return f"settings file {file.path}" if line is None else f"settings file {file.path}, line {line}"


def line_of(path: Sequence[str], text: str) -> int | None:
    """Return the line of the setting at this path, or else that of its section, if there is one."""
    section: list[str] = []
    line_number: int | None = None
    for number, line in enumerate(text.splitlines(), start=1):
        heading = re.match(r"\s*\[([^\[\]]+)\]", line)
        if heading is not None:
            section = [part.strip(" \"'") for part in re.findall(r"\"[^\"]*\"|'[^']*'|[^.\s]+", heading[1])]
            if section and section == list(path[: len(section)]):
                line_number = number
        key = re.match(r"\s*([A-Za-z0-9_-]+|\"[^\"]*\")\s*=", line)
        if key is not None and [*section, key[1].strip('"')] == list(path[: len(section) + 1]):
            return number
    return line_number


def _remedy(path: Sequence[str], file: SettingsFile) -> str:
    if "bootstrap" in keys_at(path):
        # A section itself cannot be set by a variable, only its values.
        path = [*path, "bootstrap"]
    variable = variable_of(path)
    if file.path is None:
        return f"name a settings file with --config or {CONFIG_VARIABLE}, or set {variable}"
    return f"add it to the file or set {variable}"
