"""The `DROVER_*` variables: the setting of each variable, and the conversion of its text.

`DROVER_LOG__BOOTSTRAP` is `bootstrap` in `[log]`. A setting that holds text gets the variable's text unchanged, so that
a password may be `12345678`, `null` or quoted.
"""

import dataclasses
import difflib
import enum
import json
import os
import re
import types
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from drover.errors import ConfigurationError
from drover.settings.settings import Settings

PREFIX = "DROVER_"
NESTED = "__"
CLUSTERS = "clusters"
LOG = "log"
SECTIONS = tuple(field.name for field in dataclasses.fields(Settings))
_ON, _OFF = ("true", "yes", "on", "1"), ("false", "no", "off", "0")
_SWITCHES = dict.fromkeys(_ON, True) | dict.fromkeys(_OFF, False)


def read_variables(clusters: Collection[str]) -> dict[str, Any]:
    """Return what the variables say, in the shape of the file; `clusters` are those that the file or a flag names.

    In the name of a variable `_` stands for each `-` and `.` of a cluster's name, which no shell could export. Raises
    `ConfigurationError` for a variable that names no section, or whose text cannot be what it names.
    """
    settings: dict[str, Any] = {}
    # Whole sections first, so that a variable of one setting has the last word, and their clusters are known.
    for path, variable in sorted(_named_paths(), key=lambda named: len(named[0])):
        place = path
        if path[0] == CLUSTERS and path[1:]:
            named = {*clusters, *_section(settings, CLUSTERS)}
            place = [CLUSTERS, _cluster_of(path[1], named, variable), *path[2:]]
        section = settings
        for depth, part in enumerate(place[:-1]):
            if section_shape(shape_at(place[: depth + 1])) is None:
                raise _no_setting(variable, part, keys_at(place[:depth]))
            section = _section(section, part)
        value = _value(os.environ[variable], shape_at(place), variable)
        if isinstance(value, dict) and isinstance(section.get(place[-1]), dict):
            section[place[-1]] |= value
        else:
            section[place[-1]] = value
    return settings


def variable_of(path: Iterable[str]) -> str:
    """Return the variable for the setting at this path, in a form that a shell can export."""
    return PREFIX + NESTED.join(re.sub(r"[.-]", "_", part) for part in path).upper()


def variable_in_force(path: Sequence[str], *, whole: bool = False) -> str | None:
    """Return the variable of this environment that sets the setting at this path, if there is one.

    That may be one that sets the section, unless `whole` asks for the setting's own.
    """
    set_here = {re.sub(r"[.-]", "_", name).upper(): name for name in os.environ}
    wanted = [variable_of(path[:depth]) for depth in range(len(path), 0, -1)]
    return next((set_here[name] for name in (wanted[:1] if whole else wanted) if name in set_here), None)


def shape_at(path: Sequence[str]) -> Any:
    """Return the type of the setting at this path; None if there is no such setting."""
    shape: Any = Settings
    for part in path:
        shape = section_shape(shape)
        if get_origin(shape) is dict:
            shape = get_args(shape)[1]
        elif dataclasses.is_dataclass(shape):
            shape = get_type_hints(shape).get(part)
        else:
            return None
    return shape


def keys_at(path: Sequence[str]) -> list[str]:
    """Return the possible keys of the section at this path."""
    shape = section_shape(shape_at(path))
    return [field.name for field in dataclasses.fields(shape)] if dataclasses.is_dataclass(shape) else []


def hint(key: str, keys: Iterable[str]) -> str:
    """Name the key that was probably meant, or all that there are."""
    keys = list(keys)
    near = difflib.get_close_matches(key, keys)
    if near:
        # The first word says what a setting is about: sasl_password is no password of a key.
        same = [other for other in near if other.partition("_")[0] == key.partition("_")[0]]
        return f"; did you mean {(same or near)[0]}?"
    return f" (known: {', '.join(keys)})" if keys else ""


def _named_paths() -> Iterator[tuple[list[str], str]]:
    for variable in os.environ:
        if not variable.upper().startswith(PREFIX):
            continue
        path = variable.upper().removeprefix(PREFIX).lower().split(NESTED)
        if path[0] in SECTIONS:
            yield path, variable
        elif path[1:]:
            raise _no_setting(variable, path[0], SECTIONS)
        elif (meant := _meant_by("_".join(path))) is not None:
            # A single `_` instead of two would otherwise be ignored silently.
            raise ConfigurationError(
                f"the environment variable {variable} names no setting; did you mean {meant}? Two underscores stand "
                "between a section and what is in it"
            )


def _meant_by(flat: str) -> str | None:
    """Name the variable of a setting from a name that has one underscore between its parts; None if there is none.

    Nothing but the name of a setting will do: where a service is called drover-web, Kubernetes sets DROVER_WEB_PORT.
    """
    for path in _paths(Settings, ()):
        before, cluster, after = "_".join(path).partition("*")
        name = flat.removeprefix(before).removesuffix(after)
        if flat == before + name + after and bool(name) is bool(cluster):
            return variable_of([name if part == "*" else part for part in path])
    return None


def _paths(shape: Any, path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """List the paths of all settings; `*` stands for the name of a cluster."""
    section = section_shape(shape)
    if get_origin(section) is dict and section_shape(get_args(section)[1]) is not None:
        yield from _paths(get_args(section)[1], (*path, "*"))
    elif dataclasses.is_dataclass(section):
        for name in keys_at([part.replace("*", "any") for part in path]) if path else SECTIONS:
            yield from _paths(get_type_hints(section)[name], (*path, name))
    else:
        yield path


def _no_setting(variable: str, part: str, keys: Iterable[str]) -> ConfigurationError:
    return ConfigurationError(f"the environment variable {variable} names no setting{hint(part, keys)}; unset it")


def _cluster_of(name: str, clusters: Collection[str], variable: str) -> str:
    """Return the cluster that a part of a variable's name means; one that nothing else names has the name itself."""
    if name in clusters:
        return name
    meant = [cluster for cluster in sorted(clusters) if re.sub(r"[.-]", "_", cluster) == name]
    if len(meant) > 1:
        raise ConfigurationError(
            f"the environment variable {variable} may mean the clusters {' and '.join(meant)}: set it in the settings "
            "file, or name the clusters differently"
        )
    return meant[0] if meant else name


def _section(settings: dict[str, Any], name: str) -> dict[str, Any]:
    section = settings.get(name)
    if not isinstance(section, dict):
        section = settings[name] = {}
    return section


def _value(text: str, shape: Any, variable: str) -> Any:
    if holds_text(shape):
        return text
    if bool in alternatives(shape) and text.lower() in _SWITCHES:
        return _SWITCHES[text.lower()]
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = text
    if isinstance(value, str) and get_origin(shape) is tuple:
        return [part.strip() for part in value.split(",")]
    if section_shape(shape) is not None and not isinstance(value, Mapping | None):
        raise ConfigurationError(
            f"the environment variable {variable} names a section: write it as JSON, or set one of its settings, such "
            f"as {variable}{NESTED}NAME"
        )
    return value


def alternatives(shape: Any) -> tuple[Any, ...]:
    """Return the types that a value of this type may have."""
    return get_args(shape) if get_origin(shape) in {Union, types.UnionType} else (shape,)


def holds_text(shape: Any) -> bool:
    """Whether a value of this type is text, or a word of a list."""
    return any(
        alternative is str
        or get_origin(alternative) is Literal
        or (isinstance(alternative, type) and issubclass(alternative, enum.Enum))
        for alternative in alternatives(shape)
    )


def section_shape(shape: Any) -> Any:
    """Return the type of a section, whether or not it may be left out; None for what is no section."""
    for alternative in alternatives(shape):
        if dataclasses.is_dataclass(alternative) or get_origin(alternative) is dict:
            return alternative
    return None
