"""`drover config` and `drover context`: make, check and show the settings, and choose among several files of them."""

import json
import os
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from drover.cli.exits import ExitCode
from drover.cli.help import drover_group
from drover.cli.invocation import DEFAULT_CLUSTER, Invocation, all_options, common_options, pass_invocation
from drover.cli.output import console, output_option, print_document, say, table
from drover.cli.parameters import NamedPath
from drover.errors import ConfigurationError
from drover.settings.clusters import checked_name
from drover.settings.contexts import context_file, context_in_use, contexts, use_context
from drover.settings.origins import FLAG, SettingRow, setting_rows
from drover.settings.settings import Settings
from drover.settings.sources import CONFIG_VARIABLE, FILE_NAME, find_file

EXAMPLE_BOOTSTRAP = "localhost:9092"
_TEMPLATE = """\
# Settings of Drover. `drover config check` checks this file, `drover config show --origin` shows every setting.

[clusters.{name}]
bootstrap = {bootstrap}
# max_partitions_in_flight = 1250
# max_moves_per_broker = 5
{security}
# Without [log] the only cluster also holds the log. It must have three brokers at least.
# [log]
# bootstrap = "kafka-1:9092,kafka-2:9092"

# [worker]
# listen = "127.0.0.1:8150"         # /livez, /readyz and /metrics
"""


@drover_group()
def config() -> None:
    """Make, check and show the settings."""


@config.command(name="init", example="drover config init --bootstrap-server kafka-1:9092 --cluster prod")
@click.option(
    "--out", type=NamedPath(dir_okay=False), metavar="FILE", help=f"The file to make.  [default: {FILE_NAME}]"
)
@click.option("--context", metavar="NAME", help="Make the file of a context instead; see `drover context`.")
@common_options
@pass_invocation
def init(invocation: Invocation, out: Path | None, context: str | None) -> None:
    """Write a settings file to begin with; an existing one is left alone.

    With --bootstrap-server and --command-config it connects as they say, passwords included, so that only you may read
    it: `drover config init --bootstrap-server kafka-1:9093 --command-config client.properties --cluster prod`.
    """
    if out is not None and context is not None:
        raise click.UsageError("--out and --context exclude each other: choose one")
    cluster = invocation.cluster_of_flags() or {"bootstrap": EXAMPLE_BOOTSTRAP}
    file = context_file(context) if context is not None else out or Path(FILE_NAME)
    name = checked_name(invocation.cluster or context or DEFAULT_CLUSTER)
    _write_new(file, settings_text(name, cluster))
    say(f"Wrote {file}.")
    if context is not None:
        say(f"Use it with `drover context use {context}`.", err=True)


def settings_text(name: str, cluster: Mapping[str, Any]) -> str:
    """Return a settings file with this cluster."""
    security = [f"{key} = {json.dumps(value)}" for key, value in cluster.get("security", {}).items()]
    quoted = json.dumps(name)
    section = "\n".join(["", f"[clusters.{quoted}.security]", *security, ""]) if security else ""
    return _TEMPLATE.format(name=quoted, bootstrap=json.dumps(cluster["bootstrap"]), security=section)


def _write_new(file: Path, text: str) -> None:
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError as error:
        raise ConfigurationError(f"{file} exists already: remove it, or choose another one") from error
    except OSError as error:
        raise ConfigurationError(f"{file} cannot be written: {error.strerror}") from error
    with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
        stream.write(text)


@config.command(example="drover config check")
@common_options
@pass_invocation
def check(invocation: Invocation) -> None:
    """Check every setting, password, certificate and key; contacts nobody, as `drover doctor` does."""
    read = invocation.read_settings()
    problems = file_problems(read.settings)
    if problems:
        raise ConfigurationError("; ".join(problems))
    where = "flags and variables" if read.file.path is None else str(read.file.path)
    say(f"The settings from {where} can be used: {_connections_text(read.settings)}.")
    if read.settings.plaintext:
        say(f"Not encrypted: {', '.join(read.settings.plaintext)}.", err=True)


def file_problems(settings: Settings) -> list[str]:
    """Return what is wrong with the files that the settings name, a sentence each."""
    sections = {"log.security": settings.log.security} | {
        f"clusters.{name}.security": cluster.security for name, cluster in settings.clusters.items()
    }
    problems = []
    for section, security in sections.items():
        try:
            security.client_options(section)
        except ConfigurationError as error:
            problems.append(str(error))
    if settings.zookeeper.hosts is not None:
        try:
            settings.zookeeper.options()
        except ConfigurationError as error:
            problems.append(str(error))
    return problems


def _connections_text(settings: Settings) -> str:
    names = ", ".join(sorted(settings.clusters)) or "none"
    return f"clusters {names}; the log at {settings.log.bootstrap}"


@config.command(example="drover config show --origin")
@click.option("--origin", is_flag=True, help="Also say where each value comes from.")
@output_option
@common_options
@pass_invocation
def show(invocation: Invocation, output: str, *, origin: bool) -> None:
    """Show the value of every setting; passwords are hidden.

    `--origin` adds where it comes from: the default, a line of the file, a variable or a flag.
    """
    rows = [_with_flag(row, invocation) for row in setting_rows(invocation.read_settings())]
    if output != "table":
        documents = [asdict(row) for row in rows]
        print_document({"settings": documents}, documents, output)
        return
    columns = ("setting", "value", "from") if origin else ("setting", "value")
    shown = [(row.setting, _shown(row.value), row.origin)[: len(columns)] for row in rows]
    console().print(table(columns, shown))


def _with_flag(row: SettingRow, invocation: Invocation) -> SettingRow:
    """Name the flag from which a value comes."""
    if row.origin != FLAG:
        return row
    if row.setting == "cluster":
        flag = "--cluster" if invocation.cluster is not None else "--bootstrap-server"
    elif row.setting.endswith(".bootstrap") and invocation.bootstrap_server is not None:
        flag = "--bootstrap-server"
    else:
        flag = f"--command-config {invocation.command_config}"
    return SettingRow(row.setting, row.value, flag)


def _shown(value: Any) -> str:
    return "-" if value is None else value if isinstance(value, str) else json.dumps(value)


@drover_group()
def context() -> None:
    """Choose among several settings files; `drover config init --context NAME` makes one."""


_name_argument = click.argument("name", required=False)
use_options = all_options(
    _name_argument, click.option("--none", "nothing", is_flag=True, help="Use no context any more.")
)


@context.command(example="drover context use prod")
@use_options
def use(name: str | None, *, nothing: bool) -> None:
    """Use the context NAME for every command from now on: `drover context use prod`.

    --config, DROVER_CONFIG and --bootstrap-server win over it; it wins over ./drover.toml.
    """
    if (name is None) is not nothing:
        raise click.UsageError("give the NAME of a context, or --none")
    use_context(name)
    say("No context is in use." if name is None else f"Using {context_file(name)}.")
    if os.environ.get(CONFIG_VARIABLE):
        say(f"{CONFIG_VARIABLE} is set and wins: unset it.", err=True)


@context.command(name="list", example="drover context list")
@output_option
def list_(output: str) -> None:
    """List the contexts; a star marks the one in use."""
    in_use = context_in_use()
    rows = [{"context": name, "file": str(context_file(name)), "in_use": name == in_use} for name in contexts()]
    if output != "table":
        print_document({"contexts": rows}, rows, output)
        return
    if not rows:
        say("There is no context: make one with `drover config init --context NAME`.", err=True)
        return
    console().print(
        table(
            ("", "context", "file"),
            [("*" if row["in_use"] else "", *map(str, (row["context"], row["file"]))) for row in rows],
        )
    )


@context.command(name="show", example="drover context show")
def show_context() -> None:
    """Show which settings file commands use here, and why; exit code 1 if there is none."""
    in_use, file = context_in_use(), find_file(None)
    if os.environ.get(CONFIG_VARIABLE):
        say(f"{CONFIG_VARIABLE} names {file}.")
    elif in_use is not None:
        say(f"The context {in_use} is in use: {file}.")
    elif file is not None:
        say(f"No context is in use; commands use {file}.")
    else:
        say(f"No context is in use, and there is no {FILE_NAME} here.", err=True)
        raise click.exceptions.Exit(ExitCode.FAILED)
