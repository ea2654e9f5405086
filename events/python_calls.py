"""What a Python program writes to make a struct of the contract, for the error where it gave something else."""

from collections.abc import Iterable
from enum import Enum
from typing import Any

from msgspec import NODEFAULT, Struct, ValidationError, convert
from msgspec.structs import FieldInfo, fields


def call_of(value: Struct) -> str:
    """Return the call that makes a struct; fields at their default are left out."""
    given = [
        f"{field.name}={_expression(getattr(value, field.name))}"
        for field in fields(value)
        if getattr(value, field.name) != _default_of(field)
    ]
    return f"{type(value).__name__}({', '.join(given)})"


def form_of(kind: type[Struct]) -> str:
    """Return a call with the fields that a struct must have, and an ellipsis as the value of each."""
    required = [
        f"{field.name}=..." for field in fields(kind) if field.default is field.default_factory is NODEFAULT
    ]  # fmt: skip
    return f"{kind.__name__}({', '.join(required)})"


def check_structs(name: str, values: Iterable[object], kind: type[Struct]) -> None:
    """Raise `TypeError`, with the right call, for a value of the field `name` that is no struct of this type."""
    for value in values:
        if type(value) is not kind:
            raise TypeError(f"{name} holds a {type(value).__name__}: write {_call_for(value, kind)}")


def _call_for(value: object, kind: type[Struct]) -> str:
    """Return the call that makes what a mapping describes; the form of the call for anything else."""
    try:
        return call_of(convert(value, kind))
    except ValidationError:
        return form_of(kind)


def _default_of(field: FieldInfo) -> Any:
    return field.default if field.default_factory is NODEFAULT else field.default_factory()


def _expression(value: object) -> str:
    match value:
        case Struct():
            return call_of(value)
        case Enum():
            return f"{type(value).__name__}.{value.name}"
        case tuple():
            return f"({', '.join(map(_expression, value))}{',' if len(value) == 1 else ''})"
        case _:
            return repr(value)
