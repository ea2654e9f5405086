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

from drover.cli.help import CLUSTERS, connection_option, sending_option
from drover.cli.parameters import NamedPath
from drover.client.history import fold_cluster
from drover.errors import ConfigurationError
from drover.events.bounds import visible
from drover.settings.clusters import checked_cluster, cluster_of
from drover.settings.settings import Settings
from drover.settings.sources import ReadSettings, read_settings

if TYPE_CHECKING:
    from drover.journal.connection import LogConnection
    from drover.state.cluster import ClusterState

CLUSTER_VARIABLE = "DROVER_CLUSTER"
# The name of a cluster that is given by its brokers only.
DEFAULT_CLUSTER = "default"
Decorated = TypeVar("Decorated", bound=Callable[..., Any])


@dataclass(slots=True)
class Invocation:
    """The options that every command takes, given before or after its name."""

    config: Path | None = None
    bootstrap_server: str | None = None
    command_config: Path | None = None
    cluster: str | None = None
    by: str | None = None
    debug: bool = False

    def settings(self, overrides: Mapping[str, Any] | None = None) -> Settings:
        """Load the settings; `overrides` holds further flags in the structure of the file."""
        return self.read_settings(overrides).settings

    def read_settings(self, overrides: Mapping[str, Any] | None = None) -> ReadSettings:
        """Load the settings with their sources.

        With `--bootstrap-server` or `--command-config` no settings file is read: its log and its names would be those
        of other clusters.
        """
        if not self.debug:
            # The error message already says why a connection failed.
            logging.getLogger("aiokafka").setLevel(logging.CRITICAL + 1)
        flags: dict[str, Any] = dict(overrides or {})
        if self.cluster is not None:
            flags["cluster"] = self.cluster
        cluster = self.cluster_of_flags()
        if cluster is not None:
            name = flags.setdefault("cluster", os.environ.get(CLUSTER_VARIABLE) or DEFAULT_CLUSTER)
            flags["clusters"] = {name: cluster}
        return read_settings(self.config, flags, reads_file=cluster is None)

    def cluster_of_flags(self) -> dict[str, Any] | None:
        """Return the cluster that `--bootstrap-server` and `--command-config` describe; None without them."""
        if self.bootstrap_server is None and self.command_config is None:
            return None
        if self.config is not None:
            raise ConfigurationError(
                "--config names a file that says where the clusters are, and --bootstrap-server and --command-config "
                "say so, too: give the one or the others"
            )
        cluster: dict[str, Any] = {}
        if self.command_config is not None:
            from drover.settings.properties import read_client_properties  # noqa: PLC0415 - few need it

            cluster = read_client_properties(self.command_config)
        if self.bootstrap_server is not None:
            cluster["bootstrap"] = self.bootstrap_server
        if "bootstrap" not in cluster:
            raise ConfigurationError(
                f"name the brokers with --bootstrap-server, or with bootstrap.servers in {self.command_config}"
            )
        return cluster

    def cluster_of(self, settings: Settings) -> str:
        """Return the name of the command's cluster: that of the settings, `--cluster` included, or the only one."""
        return cluster_of(settings, "--cluster NAME")

    def cluster_wanted(self, settings: Settings) -> str | None:
        """Return the cluster that `--cluster` or the settings choose; None means all clusters."""
        return None if settings.cluster is None else checked_cluster(settings, settings.cluster)

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
    connection_option(
        "--config",
        type=NamedPath(dir_okay=False),
        expose_value=False,
        callback=_keep,
        help="The settings file.  [default: $DROVER_CONFIG, the context in use, ./drover.toml]",
    ),
    connection_option(
        "--bootstrap-server",
        expose_value=False,
        callback=_keep,
        metavar="HOST:PORT,...",
        help="Brokers of the cluster, which also holds the log, instead of a settings file.",
    ),
    connection_option(
        "--command-config",
        type=NamedPath(dir_okay=False),
        expose_value=False,
        callback=_keep,
        metavar="FILE",
        help="How to connect to them, as properties of Kafka's Java clients: client.properties.",
    ),
    connection_option("--debug", is_flag=True, expose_value=False, callback=_keep, help="Show tracebacks and logs."),
)
# The options of every command about a cluster.
common_options = all_options(
    settings_options,
    connection_option(
        "--cluster",
        expose_value=False,
        callback=_keep,
        metavar="NAME",
        shell_complete=CLUSTERS,
        help="The cluster, if several are configured.  [default: $DROVER_CLUSTER]",
    ),
)
author_option = sending_option(
    "--by", expose_value=False, callback=_keep, metavar="WHO", help="The author of the command.  [default: user@host]"
)


def state_now(connection: "LogConnection", cluster: str) -> "ClusterState":
    """Fold the log of a cluster up to its end; empty if the log has no entry for it. Raises `LogUnavailableError`."""
    return asyncio.run(fold_cluster(connection, cluster))
