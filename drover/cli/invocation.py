"""The options of every command: the settings file, the cluster, and the author."""

import asyncio
import getpass
import logging
import os
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from drover.cli.parameters import NamedPath
from drover.client.history import fold_cluster
from drover.errors import ConfigurationError
from drover.events.bounds import visible
from drover.events.commands import is_cluster_name
from drover.settings.settings import Settings
from drover.settings.sources import load_settings

if TYPE_CHECKING:
    from drover.journal.connection import LogConnection
    from drover.state.cluster import ClusterState

Decorated = TypeVar("Decorated", bound=Callable[..., Any])


@dataclass(slots=True)
class Invocation:
    """The options that every command takes, given before or after its name."""

    config: Path | None = None
    cluster: str | None = None
    by: str | None = None
    debug: bool = False

    def settings(self, overrides: Mapping[str, Any] | None = None) -> Settings:
        """Load the settings; `overrides` holds further flags in the structure of the file."""
        if not self.debug:
            # The error message already says why a connection failed.
            logging.getLogger("aiokafka").setLevel(logging.CRITICAL + 1)
        return load_settings(self.config, overrides)

    def cluster_of(self, settings: Settings) -> str:
        """Return the name of the command's cluster: the value of `--cluster`, or the only configured one."""
        configured = sorted(settings.clusters)
        if self.cluster is None:
            if len(configured) == 1:
                return configured[0]
            named = f" (configured: {', '.join(configured)})" if configured else ""
            raise ConfigurationError(f"choose a cluster with --cluster NAME{named}")
        return self.checked_cluster(settings, self.cluster)

    def cluster_wanted(self, settings: Settings) -> str | None:
        """Return the value of `--cluster`; None means all clusters."""
        return None if self.cluster is None else self.checked_cluster(settings, self.cluster)

    def checked_cluster(self, settings: Settings, name: str) -> str:
        """Refuse a cluster that is not configured; a client whose settings name only the log may use any name."""
        if not is_cluster_name(name):
            raise ConfigurationError(
                f"{name!r} is not the name of a cluster: use lower case letters, digits, '.', '_' and '-'"
            )
        if settings.clusters and name not in settings.clusters:
            raise ConfigurationError(
                f"cluster {name} is not configured (configured: {', '.join(sorted(settings.clusters))}); "
                f"add [clusters.{name}] to the settings file"
            )
        return name

    @property
    def author(self) -> str:
        """The author of commands: `--by`, or user@host. Raises `ConfigurationError` if it is not UTF-8."""
        author = f"{_user()}@{socket.gethostname()}" if self.by is None else self.by
        if any("\ud800" <= character <= "\udfff" for character in author):
            # Python decodes bytes that are not UTF-8 as surrogates.
            raise ConfigurationError(f"'{visible(author)}' is not UTF-8 text: give another author with --by")
        return author


def _user() -> str:
    """Return the user's name, or its number: in a container, as in Drover's own image, a user often has no name."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return f"uid-{os.getuid()}"


def pass_invocation(command: Callable[..., Any]) -> Callable[..., Any]:
    """Pass the invocation to a command as its first argument."""
    passing: Callable[[Callable[..., Any]], Callable[..., Any]] = click.make_pass_decorator(Invocation, ensure=True)
    return passing(command)


def _keep(context: click.Context, parameter: click.Parameter, value: object) -> None:
    if value is not None and value is not False:
        setattr(context.ensure_object(Invocation), str(parameter.name), value)


def all_options(*options: Callable[[Any], Any]) -> Callable[[Decorated], Decorated]:
    """Add several options to a command; its help lists them in this order."""

    def decorate(command: Decorated) -> Decorated:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


# The options that every command takes, before or after its name.
settings_options = all_options(
    click.option(
        "--config",
        type=NamedPath(dir_okay=False),
        expose_value=False,
        callback=_keep,
        help="The settings file.  [default: $DROVER_CONFIG, ./drover.toml]",
    ),
    click.option("--debug", is_flag=True, expose_value=False, callback=_keep, help="Show tracebacks and logs."),
)
# The options of every command about a cluster.
common_options = all_options(
    settings_options,
    click.option(
        "--cluster", expose_value=False, callback=_keep, metavar="NAME", help="The cluster, if several are configured."
    ),
)
author_option = click.option(
    "--by", expose_value=False, callback=_keep, metavar="WHO", help="The author of the command.  [default: user@host]"
)


def state_now(connection: "LogConnection", cluster: str) -> "ClusterState":
    """Fold the log of a cluster up to its end; empty if the log has no entry for it. Raises `LogUnavailableError`."""
    return asyncio.run(fold_cluster(connection, cluster))
