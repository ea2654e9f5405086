"""Where settings come from: flags over `DROVER_*` variables over one drover.toml; every problem names its remedy.

pydantic-settings merges and checks them. Importing it takes longer than all the rest of a command, so a result without
secrets is kept in the user's cache and used for as long as file, variables, flags and this code are the same.
"""

import contextlib
import hashlib
import os
import stat
import tempfile
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
import platformdirs

from drover import text_files
from drover.errors import ConfigurationError
from drover.events import healing as healing_limits
from drover.events.commands import is_cluster_name
from drover.events.undecodable import UNDECODABLE
from drover.settings import (
    addresses,
    healing_settings,
    section_settings,
    security_settings,
    settings_variables,
    web_settings,
)
from drover.settings import settings as shapes
from drover.settings.section_settings import PlanningSettings, SparkSettings
from drover.settings.settings import Settings
from drover.settings.settings_problems import CONFIG_VARIABLE, FILE_NAME, SettingsFile, problem_of
from drover.settings.settings_variables import CLUSTERS, PREFIX, read_variables
from drover.settings.web_settings import WebSettings
from drover.state import limit_names
from drover.state.limit_names import HEALING, find, of_section
from drover.text_files import decode_text

CACHE_VARIABLE = "DROVER_CACHE_DIR"
OWNER_VARIABLE = "DROVER_CONFIG_OWNER"
MODE_VARIABLE = "DROVER_CONFIG_MODE"
ANY = "any"
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
            *(section_settings, security_settings, settings_variables, shapes, text_files, web_settings),
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
        settings = _read(file, content, flags)
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

    `DROVER_CONFIG_OWNER` names one more user who may own it, or `any`. `DROVER_CONFIG_MODE=any` takes a file that
    anybody may write: some mounts show every file as one.
    """
    try:
        found = file.stat()
    except OSError:
        return  # reading it says why
    where = f"the settings file {file.absolute()} is not used, because"
    is_writable = stat.S_ISREG(found.st_mode) and found.st_mode & stat.S_IWOTH
    if is_writable and os.environ.get(MODE_VARIABLE) != ANY:
        raise ConfigurationError(
            f"{where} anybody may write it: chmod o-w {file}. On a mount where chmod has no effect, copy the file to "
            f"another file system, or set {MODE_VARIABLE}={ANY} if you trust everybody who can write to that mount"
        )
    trusted = os.environ.get(OWNER_VARIABLE, "")
    if found.st_uid not in {os.geteuid(), *TRUSTED_OWNERS} and trusted not in {ANY, str(found.st_uid)}:
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


def _parsed(path: Path | None, content: bytes) -> tuple[SettingsFile, dict[str, Any]]:
    try:
        file = SettingsFile(path, decode_text(content))
        return file, tomllib.loads(file.text)
    except (ValueError, RecursionError) as error:  # what the text decoder and tomllib raise
        said = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise ConfigurationError(f"{SettingsFile(path).place} is not valid TOML: {said}") from error


def _read(path: Path | None, content: bytes, flags: Mapping[str, Any]) -> Settings:
    import pydantic  # noqa: PLC0415 - see the module's docstring
    import pydantic_settings  # noqa: PLC0415

    file, said = _parsed(path, content)
    named = {name for source in (said, flags) for name in _section(source, CLUSTERS)}
    variables = read_variables(named)

    class Sources(pydantic_settings.BaseSettings):
        model_config = pydantic_settings.SettingsConfigDict(extra="forbid", hide_input_in_errors=True)

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
            env_settings: pydantic_settings.PydanticBaseSettingsSource,  # noqa: ARG003 - the library's signature
            dotenv_settings: pydantic_settings.PydanticBaseSettingsSource,  # noqa: ARG003 - the same
            file_secret_settings: pydantic_settings.PydanticBaseSettingsSource,  # noqa: ARG003 - the same
        ) -> tuple[pydantic_settings.PydanticBaseSettingsSource, ...]:
            # The first wins.
            below = (pydantic_settings.InitSettingsSource(settings_cls, source) for source in (variables, said))
            return (init_settings, *below)

    try:
        found = Sources(**flags)
    except pydantic.ValidationError as error:
        problems = [problem_of(detail, file) for detail in error.errors(include_input=False)]
        raise ConfigurationError("; ".join(problems)) from None
    settings = Settings(
        found.log, found.clusters, found.worker, found.zookeeper, found.spark, found.planning, found.web
    )
    _check(settings, file.place)
    return settings


def _section(source: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    section = source.get(name)
    return section if isinstance(section, Mapping) else {}


def _check(settings: Settings, place: str) -> None:
    _check_names(settings, place)
    _check_texts(settings)
    _check_characters(msgspec.to_builtins(settings), place)


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
