"""Where settings come from: flags over `DROVER_*` variables over one drover.toml; every problem names its remedy.

pydantic-settings merges and checks them. Importing it takes longer than all the rest of a command, so a result without
secrets is kept in the user's cache and used for as long as file, variables, flags and this code are the same.
"""

import contextlib
import dataclasses
import difflib
import hashlib
import os
import re
import stat
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args, get_origin, get_type_hints

import msgspec
import platformdirs

from drover.errors import ConfigurationError
from drover.runtime import addresses, healing_settings, section_settings, web_settings
from drover.runtime import settings as shapes
from drover.runtime.section_settings import PlanningSettings, SparkSettings
from drover.runtime.settings import Settings
from drover.runtime.web_settings import WebSettings
from drover.scheduling import limit_names
from drover.scheduling.limit_names import HEALING, find, of_section
from events import healing as healing_limits
from events.commands import is_cluster_name
from events.undecodable import UNDECODABLE

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

CONFIG_VARIABLE = "DROVER_CONFIG"
CACHE_VARIABLE = "DROVER_CACHE_DIR"
OWNER_VARIABLE = "DROVER_CONFIG_OWNER"
ANY_OWNER = "any"
FILE_NAME = "drover.toml"
PREFIX = "DROVER_"
NESTED = "__"
# The machine's own administrator, beside whoever runs this.
TRUSTED_OWNERS = frozenset({0})
# Tables that TOML makes of names with dots which are not quoted, as KIP-435's and Cruise Control's are.
_DOTTED = frozenset({"broker", "kafka", "max", "num", "reassignment"})
# What a result that was kept depends on, beside what was read.
_SOURCES = (
    __file__,
    *(
        str(module.__file__)
        for module in (
            *(addresses, healing_limits, healing_settings, limit_names),
            *(section_settings, shapes, web_settings),
        )
    ),
)


def load_settings(config: Path | None = None, overrides: Mapping[str, Any] | None = None) -> Settings:
    """Read the settings.

    `config` is the file a flag named; without it `DROVER_CONFIG`, ./drover.toml or the one in the user's configuration
    directory is taken, the first that is there. `overrides` holds flags in the shape of the file. Raises
    `ConfigurationError` that names key, place and remedy.
    """
    file = find_file(config)
    if file is not None:
        _check_owner(file)
    content = b"" if file is None else _content(file)
    flags = dict(overrides or {})
    kept = _kept_file(file)
    fingerprint = _fingerprint(file, content, flags)
    settings = _recall(kept, fingerprint)
    if settings is None:
        settings = _read(file, flags)
        if not settings.holds_secrets:
            _keep(kept, fingerprint, settings)
    return settings


def find_file(config: Path | None) -> Path | None:
    """Find the drover.toml to use; None if there is none anywhere."""
    named = config or (Path(os.environ[CONFIG_VARIABLE]) if os.environ.get(CONFIG_VARIABLE) else None)
    if named is not None:
        return named
    here = Path(FILE_NAME)
    if here.is_file():
        return here
    try:
        users = platformdirs.user_config_path("drover") / FILE_NAME
    except RuntimeError:
        return None  # the user has no home, as in many containers
    return users if users.is_file() else None


def _check_owner(file: Path) -> None:
    """Refuse a file that others could have put there, also if it is named: it says where commands go.

    `DROVER_CONFIG_OWNER` names one more user who may own it, or `any`.
    """
    try:
        found = file.stat()
    except OSError:
        return  # reading it says why
    where = f"the settings file {file.absolute()} is not used, because"
    if stat.S_ISREG(found.st_mode) and found.st_mode & stat.S_IWOTH:
        raise ConfigurationError(f"{where} anybody may write it: chmod o-w {file}")
    trusted = os.environ.get(OWNER_VARIABLE, "")
    if found.st_uid not in {os.geteuid(), *TRUSTED_OWNERS} and trusted not in {ANY_OWNER, str(found.st_uid)}:
        raise ConfigurationError(
            f"{where} it belongs to user {found.st_uid}: make it yours or root's, or set "
            f"{OWNER_VARIABLE}={found.st_uid} if that user may say where your commands go"
        )


def _content(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise ConfigurationError(
            f"the settings file {file} cannot be read ({error.strerror}); "
            f"name another with --config or {CONFIG_VARIABLE}"
        ) from error


def _read(file: Path | None, flags: Mapping[str, Any]) -> Settings:
    import pydantic  # noqa: PLC0415 - see the module's docstring
    import pydantic_settings  # noqa: PLC0415

    class Sources(pydantic_settings.BaseSettings):
        model_config = pydantic_settings.SettingsConfigDict(
            env_prefix=PREFIX, env_nested_delimiter=NESTED, extra="forbid", hide_input_in_errors=True
        )

        log: shapes.LogSettings
        clusters: dict[str, shapes.ClusterSettings] = pydantic.Field(default_factory=dict)
        worker: shapes.WorkerSettings = shapes.WorkerSettings()
        zookeeper: shapes.ZooKeeperSettings = shapes.ZooKeeperSettings()
        spark: SparkSettings = pydantic.Field(default_factory=SparkSettings)
        planning: PlanningSettings = PlanningSettings()
        web: WebSettings = pydantic.Field(default_factory=WebSettings)

        @pydantic.field_validator("clusters", mode="before")
        @classmethod
        def by_todays_names(cls, clusters: Any) -> Any:
            return _by_todays_names(clusters)

        @classmethod
        def settings_customise_sources(
            cls,
            settings_cls: type[pydantic_settings.BaseSettings],
            init_settings: pydantic_settings.PydanticBaseSettingsSource,
            env_settings: pydantic_settings.PydanticBaseSettingsSource,
            dotenv_settings: pydantic_settings.PydanticBaseSettingsSource,  # noqa: ARG003 - the library's signature
            file_secret_settings: pydantic_settings.PydanticBaseSettingsSource,  # noqa: ARG003 - the same
        ) -> tuple[pydantic_settings.PydanticBaseSettingsSource, ...]:
            toml = pydantic_settings.TomlConfigSettingsSource(settings_cls, file) if file is not None else None
            return (init_settings, env_settings) if toml is None else (init_settings, env_settings, toml)

    place = f"the settings file {file}" if file is not None else f"no {FILE_NAME} (none was found)"
    try:
        found = Sources(**flags)
    except pydantic.ValidationError as error:
        problems = [_problem(detail, file) for detail in error.errors(include_input=False)]
        raise ConfigurationError("; ".join(problems)) from None
    except pydantic_settings.SettingsError as error:
        raise ConfigurationError(f"a {PREFIX}* variable cannot be read: {error}") from None
    except (ValueError, RecursionError) as error:  # what tomllib and the text decoder raise
        raise ConfigurationError(f"{place} is not valid TOML: {_not_toml(error)}") from error
    settings = Settings(
        found.log, found.clusters, found.worker, found.zookeeper, found.spark, found.planning, found.web
    )
    _check(settings, place)
    return settings


def _check(settings: Settings, place: str) -> None:
    _check_names(settings, place)
    _check_texts(settings)
    _check_characters(msgspec.to_builtins(settings), place)
    _check_variables()


def _not_toml(error: Exception) -> str:
    return "it is nested too deeply" if isinstance(error, RecursionError) else str(error)


def _by_todays_names(clusters: Any) -> Any:
    """Take a cluster's limits under the names that they had earlier or have elsewhere, too.

    Raises `ValueError` for one that is given under two of its names.
    """
    if not isinstance(clusters, Mapping):
        return clusters
    return {name: _renamed_cluster(given, f"clusters.{name}") for name, given in clusters.items()}


def _renamed_cluster(given: Any, place: str) -> Any:
    if not isinstance(given, Mapping):
        return given
    renamed = _under_own_names(given, "", place)
    healing = renamed.get("healing")
    if isinstance(healing, Mapping):
        renamed["healing"] = _under_own_names(healing, HEALING, f"{place}.healing")
    return renamed


def _under_own_names(given: Mapping[str, Any], section: str, place: str) -> dict[str, Any]:
    limits = set(of_section(section))
    called: dict[str, str] = {}
    renamed: dict[str, Any] = {}
    for key, value in _flat(given):
        known = find(section + key) or find(key)
        name = known.field if known in limits and known is not None else key
        if name in renamed:
            raise ValueError(f"{place}: {called[name]} and {key} are the same setting: choose one")
        called[name], renamed[name] = key, value
    return renamed


def _flat(given: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in given.items():
        if isinstance(value, Mapping) and (prefix or key in _DOTTED):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield prefix + key, value


def _check_names(settings: Settings, place: str) -> None:
    for name in settings.clusters:
        if not is_cluster_name(name):
            raise ConfigurationError(
                f"{place}: cluster name {name!r} must be 1 to 64 of a-z, 0-9, '.', '_' and '-', "
                "and begin with a-z or 0-9"
            )


def _check_variables() -> None:
    sections = [field.name for field in dataclasses.fields(Settings)]
    for variable in os.environ:
        section, nested, _ = variable.upper().removeprefix(PREFIX).partition(NESTED)
        if variable.upper().startswith(PREFIX) and nested and section.lower() not in sections:
            raise ConfigurationError(
                f"the environment variable {variable} names no setting{_hint(section.lower(), sections)}; unset it"
            )


def _check_texts(settings: Settings) -> None:
    """Refuse what no message could carry: variables and flags may hold any bytes."""
    try:
        msgspec.json.encode(settings)
    except UnicodeEncodeError as error:
        wrong = [
            name for name, value in os.environ.items() if name.upper().startswith(PREFIX) and error.object in value
        ]
        where = f"the environment variable {wrong[0]}" if wrong else f"a flag or a {PREFIX}* variable"
        raise ConfigurationError(f"{where} is not UTF-8: correct it") from None


def _check_characters(value: object, place: str, path: str = "") -> None:
    """Refuse NUL, which TOML can write as an escape, and no name of a file, host or user holds."""
    if isinstance(value, str) and "\0" in value:
        raise ConfigurationError(f"{place}: {path} holds a NUL character: remove it")
    if isinstance(value, dict):
        for key, held in value.items():
            _check_characters(held, place, f"{path}.{key}" if path else key)
    elif isinstance(value, list | tuple):
        for held in value:
            _check_characters(held, place, path)


def _problem(detail: "ErrorDetails", file: Path | None) -> str:
    path = [str(part) for part in detail["loc"]]
    key = ".".join(path)
    where = _origin(path, file)
    match detail["type"]:
        case "missing" | "missing_argument":
            said = f"{key} is not set; {_remedy(path, file)}"
        case "extra_forbidden" | "unexpected_keyword_argument":
            said = f"{key} is no setting{_hint(path[-1], _keys_at(path[:-1]))}"
        case "value_error":
            complaint = detail["msg"].removeprefix("Value error, ")
            said = f"{key}: {complaint}"
            # A section is checked as a whole, and says first which of its settings is meant.
            meant = complaint.split(maxsplit=1)[0]
            where = _origin([*path, meant], file) if meant in _keys_at(path) else where
        case _:
            said = f"{key}: {detail['msg'][:1].lower()}{detail['msg'][1:]}"
    return f"{where}: {said}"


def _origin(path: Sequence[str], file: Path | None) -> str:
    variable = PREFIX + NESTED.join(path).upper()
    named = next((name for name in os.environ if name.upper() == variable), None)
    if named is not None:
        return f"environment variable {named}"
    if file is None:
        return f"settings (no {FILE_NAME} was found)"
    line = _line_of(path, file)
    return f"settings file {file}" if line is None else f"settings file {file}, line {line}"


def _line_of(path: Sequence[str], file: Path) -> int | None:
    """Find the line that says what is at this path, or else that of its section; None if no line does."""
    section: list[str] = []
    found: int | None = None
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), start=1):
        heading = re.match(r"\s*\[([^\[\]]+)\]", line)
        if heading is not None:
            section = [part.strip(" \"'") for part in re.findall(r"\"[^\"]*\"|'[^']*'|[^.\s]+", heading[1])]
            if section and section == list(path[: len(section)]):
                found = number
        key = re.match(r"\s*([A-Za-z0-9_-]+|\"[^\"]*\")\s*=", line)
        if key is not None and [*section, key[1].strip('"')] == list(path[: len(section) + 1]):
            return number
    return found


def _remedy(path: Sequence[str], file: Path | None) -> str:
    if "bootstrap" in _keys_at(path):
        # A section is not a value: what it must hold is.
        path = [*path, "bootstrap"]
    variable = PREFIX + NESTED.join(path).upper()
    if file is None:
        return f"name a settings file with --config or {CONFIG_VARIABLE}, or set {variable}"
    return f"add it to the file or set {variable}"


def _keys_at(path: Sequence[str]) -> list[str]:
    """List the keys that may stand in the section at this path."""
    shape: Any = Settings
    for part in path:
        if get_origin(shape) is dict:
            shape = get_args(shape)[1]
        elif dataclasses.is_dataclass(shape):
            shape = get_type_hints(shape).get(part)
    return [field.name for field in dataclasses.fields(shape)] if dataclasses.is_dataclass(shape) else []


def _hint(key: str, known: Iterable[str]) -> str:
    known = list(known)
    near = difflib.get_close_matches(key, known, n=1)
    if near:
        return f"; did you mean {near[0]}?"
    return f" (known: {', '.join(known)})" if known else ""


def _kept_file(file: Path | None) -> Path | None:
    named = os.environ.get(CACHE_VARIABLE)
    try:
        cache = Path(named) if named else platformdirs.user_cache_path("drover")
    except RuntimeError:
        return None  # the user has no home: nothing is kept
    name = hashlib.blake2b(os.fsencode(str(file and file.absolute())), digest_size=8).hexdigest()
    return cache / "settings" / f"{name}.json"


def _fingerprint(file: Path | None, content: bytes, flags: Mapping[str, Any]) -> bytes:
    variables = sorted((name, value) for name, value in os.environ.items() if name.upper().startswith(PREFIX))
    code = [Path(source).stat().st_mtime_ns for source in _SOURCES]
    # Paths and variables may hold bytes that are not UTF-8; `ascii` writes them as escapes.
    parts = ascii([str(file), variables, flags, code]).encode()
    return hashlib.blake2b(parts + content, digest_size=16).hexdigest().encode()


def _recall(kept: Path | None, fingerprint: bytes) -> Settings | None:
    if kept is None:
        return None
    try:
        with kept.open("rb") as stream:
            # As of a settings file: it says where commands go, and in a cache of many users anybody may put one.
            if os.fstat(stream.fileno()).st_uid not in {os.geteuid(), *TRUSTED_OWNERS}:
                return None
            found, _, payload = stream.read().partition(b"\n")
        return msgspec.json.decode(payload, type=Settings) if found == fingerprint else None
    except (OSError, *UNDECODABLE):
        return None  # no cache, or not one of ours: the settings are read from their sources


def _keep(kept: Path | None, fingerprint: bytes, settings: Settings) -> None:
    if kept is None:
        return
    # A cache that cannot be written costs time and nothing else.
    with contextlib.suppress(OSError):
        kept.parent.mkdir(parents=True, exist_ok=True)
        draft = tempfile.NamedTemporaryFile(dir=kept.parent, delete=False)  # noqa: SIM115 - closing it may fail, too
        try:
            with draft:
                draft.write(fingerprint + b"\n" + msgspec.json.encode(settings))
            Path(draft.name).replace(kept)
        except OSError:
            # Otherwise each command would leave another one on a disk that is full already.
            Path(draft.name).unlink(missing_ok=True)
            raise
