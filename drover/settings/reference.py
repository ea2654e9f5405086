"""docs/settings.md, made from the settings themselves: `python -m drover.settings.reference > docs/settings.md`."""

import ast
import dataclasses
import inspect
import textwrap
from collections.abc import Iterator, Mapping
from typing import Any, get_args, get_origin, get_type_hints

from drover.settings.settings import ClusterSettings, HealingSettings, Settings
from drover.settings.variables import CLUSTERS, alternatives, section_shape
from drover.state.limit_names import HEALING, KNOWN

_HEAD = """# Settings

Every setting of `drover.toml` and of the `DROVER_*` variables. `python -m drover.settings.reference > docs/settings.md`
makes this file; a test compares both. [Operating](operating.md#settings) says how the sources go together,
[security](security.md#settings) how to connect, and [limits](limits.md) what the limits of a cluster do.
`drover config show --origin` shows the values that hold, and where each comes from.

`NAME` is the name of a cluster, `ID` the id of a broker, `SET` a name for a set of brokers, `LOAD` the name of a
[load](planning.md#plans-by-load). A variable has `_` for each `-` and `.` of a cluster's name.
"""

# Defaults that another setting gives.
_ELSEWHERE: Mapping[tuple[str, ...], str] = {("log", "bootstrap"): "the only cluster's"}


# What names the sections of a section.
_NAMES = {CLUSTERS: "NAME", "brokers": "ID", "bands": "LOAD", "broker_sets": "SET"}


@dataclasses.dataclass(frozen=True, slots=True)
class Described:
    """One setting: its path, type and default in words, and what it is."""

    path: tuple[str, ...]
    kind: str
    default: str
    about: str


def described_settings() -> list[Described]:
    """Return every setting in the order of the file. An `AssertionError` names one that nothing describes."""
    return list(_described(Settings, ()))


def settings_document() -> str:
    """Return the document."""
    lines = [_HEAD.rstrip("\n")]
    section: tuple[str, ...] | None = None
    for setting in sorted(described_settings(), key=lambda setting: len(setting.path) > 1):
        if setting.path[:-1] != section:
            section = setting.path[:-1]
            heading = f"`[{'.'.join(section)}]`" if section else "At the top of the file"
            lines += [
                "",
                f"## {heading}",
                "",
                "| setting | value | default | what it is |",
                "| --- | --- | --- | --- |",
            ]
        lines.append(f"| `{setting.path[-1]}` | {setting.kind} | {setting.default} | {setting.about} |")
    return "\n".join(lines) + "\n"


def _described(shape: Any, path: tuple[str, ...]) -> Iterator[Described]:
    types, texts = get_type_hints(shape), _texts(shape)
    nested: list[tuple[Any, tuple[str, ...]]] = []
    for declared in dataclasses.fields(shape):
        kind, place = types[declared.name], (*path, declared.name)
        section = section_shape(kind)
        if get_origin(section) is dict and dataclasses.is_dataclass(get_args(section)[1]):
            nested.append((get_args(section)[1], (*place, _NAMES[declared.name])))
        elif dataclasses.is_dataclass(section):
            nested.append((section, place))
        else:
            about = texts.get(declared.name)
            assert about, f"{shape.__name__}.{declared.name} has no description"
            yield Described(place, _kind(kind), _ELSEWHERE.get(place) or _default(declared), about)
    for section, place in nested:
        yield from _described(section, place)


def _texts(shape: Any) -> Mapping[str, str]:
    """Return what the source says below each field, and the registry of limits about each limit."""
    (definition,) = ast.parse(textwrap.dedent(inspect.getsource(shape))).body
    assert isinstance(definition, ast.ClassDef), f"{shape} is a class"
    limits = {HealingSettings: HEALING, ClusterSettings: ""}.get(shape)
    texts = (
        {} if limits is None else {known.field: known.about for known in KNOWN if known.name == limits + known.field}
    )
    for field, below in zip(definition.body, definition.body[1:], strict=False):
        text = _text(below)
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and text is not None:
            texts[field.target.id] = text
    return texts


def _text(statement: ast.stmt) -> str | None:
    """Return the text that a statement consists of, if it does."""
    value = statement.value if isinstance(statement, ast.Expr) else None
    return " ".join(value.value.split()) if isinstance(value, ast.Constant) and isinstance(value.value, str) else None


def _kind(kind: Any) -> str:
    (first,) = (alternative for alternative in alternatives(kind) if alternative is not type(None))
    if get_origin(first) is tuple:
        return f"list of {'texts' if get_args(first)[0] is str else 'integers'}"
    if get_origin(first) is dict:
        return f"section of {'texts' if get_args(first)[1] is str else 'numbers'}"
    words = get_args(first) or (tuple(each.value for each in first) if hasattr(first, "__members__") else ())
    if words:
        return ", ".join(f"`{word}`" for word in words)
    return {str: "text", bool: "`true` or `false`", int: "integer", float: "number"}[first]


def _default(declared: Any) -> str:
    value = declared.default
    if value is dataclasses.MISSING and declared.default_factory is dataclasses.MISSING:
        return "needed"
    if value is dataclasses.MISSING or value in (None, "", ()):
        return "-"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, tuple):
        return ", ".join(f"`{item}`" for item in value)
    return f"`{getattr(value, 'value', value)}`"


if __name__ == "__main__":
    print(settings_document(), end="")  # noqa: T201 - what it is for
