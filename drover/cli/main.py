"""The command `drover`: lists every command, and imports a command's module only when that command runs."""

import importlib
import sys
from collections.abc import Iterator, Mapping
from io import TextIOWrapper

import click

from drover.cli.exits import NO_ROOM, ExitCode, directory_gone, failure_of, unwritable
from drover.cli.help import DroverGroup
from drover.cli.invocation import Invocation, author_option, common_options
from drover.cli.output import say
from drover.errors import DroverError

# Each command as `module:object` with its line of help, under the heading of its section.
SECTIONS: Mapping[str, Mapping[str, tuple[str, str]]] = {
    "Look": {
        "status": ("drover.cli.status:status", "Show what is moving, its progress, and why it waits."),
        "plans": ("drover.cli.plans:plans", "List plans, open and finished."),
        "describe": ("drover.cli.describe:describe", "Show replicas, leaders, sizes, disks and balance."),
        "progress": ("drover.cli.spark:progress", "Show the progress tables that the Spark job keeps."),
        "web": ("drover.cli.services:web", "Serve the page: every move, its history, and why it waits."),
    },
    "Plan and move": {
        "plan": ("drover.cli.plan:plan", "Propose moves: drain, add, replace, balance and more."),
        "alter": ("drover.cli.alter:alter", "Move partitions to the replicas of a plan, or undo one."),
        "throttle": (
            "drover.cli.throttle:throttle",
            "Show every throttle and whose it is; set them; delete those left over.",
        ),
        "limits": ("drover.cli.limits:limits", "Show and change how much may move at a time."),
        "kafka-reassign-partitions": (
            "drover.cli.stock_tool:kafka_reassign_partitions",
            "Do what the flags of Kafka's own tool ask for.",
        ),
    },
    "Stop and wait": {
        "cancel": ("drover.cli.moves:cancel", "Roll moves back, or stop them."),
        "pause": ("drover.cli.moves:pause", "Begin no further step of a plan."),
        "resume": ("drover.cli.moves:resume", "Let steps of a paused plan begin again."),
        "freeze": ("drover.cli.moves:freeze", "Start nothing new on the cluster."),
        "unfreeze": ("drover.cli.moves:unfreeze", "Allow new work to start again."),
        "repair": ("drover.cli.moves:repair", "End moves that Kafka can never end by itself."),
    },
    "Leaders and brokers": {
        "leaders": ("drover.cli.leaders:leaders", "Move leaders off brokers and back, balance and show them."),
        "broker": (
            "drover.cli.brokers:broker",
            "Report that a broker failed or returned, drain its leaders or hold it.",
        ),
        "heal": ("drover.cli.brokers:heal", "Replace brokers that stay away: show and control it."),
    },
    "Past": {
        "history": ("drover.cli.history:history", "Show who asked for what, why, and what happened."),
        "state": ("drover.cli.history:state", "Show a cluster's state now or at any time of the log."),
        "audit": ("drover.cli.audit:audit", "Show what was asked for, done, refused and undone, and verify the log."),
        "replay": ("drover.cli.log:replay", "Replay the log from its first record."),
        "dead-letters": ("drover.cli.log:dead_letters", "Show the records that could not be read as commands."),
    },
    "Run and set up": {
        "demo": ("drover.cli.local:demo", "Watch moves, a rollback and a takeover on a real Kafka."),
        "local": ("drover.cli.local:local", "Run a real Kafka cluster on this machine."),
        "config": ("drover.cli.config:config", "Make, check and show the settings."),
        "context": ("drover.cli.config:context", "Choose among several settings files."),
        "doctor": ("drover.cli.doctor:doctor", "Check connections, ACLs, topics, clocks and more, with remedies."),
        "acls": ("drover.cli.setup:acls", "Print the ACLs that Drover needs."),
        "log": ("drover.cli.log:log", "Create and check Drover's topics; let a damaged log go on."),
        "worker": ("drover.cli.services:worker", "Run a worker."),
        "zookeeper": ("drover.cli.services:zookeeper", "Show the state in ZooKeeper; check and rebuild it there."),
        "spark": ("drover.cli.spark:spark", "Keep the progress tables, with Spark."),
        "healthcheck": (
            "drover.cli.healthcheck:healthcheck",
            "Say whether a process of Drover on this machine is alive.",
        ),
        "schema": ("drover.cli.setup:schema", "Print the wire contract as JSON Schema."),
        "completion": ("drover.cli.completion:completion", "Print the completion of commands for your shell."),
    },
}
# The commands of each group, for suggestions: to import all of them takes seconds.
IN_GROUPS: Mapping[str, tuple[str, ...]] = {
    "throttle": ("clean", "set", "show"),
    "plan": ("add", "balance", "check", "drain", "evacuate", "leaders", "replace", "set-rf", "spread"),
    "limits": ("reset", "set", "show"),
    "leaders": (
        "balance",
        "blacklist",
        "blacklist clear",
        "blacklist set",
        "blacklist show",
        "demote",
        "restore",
        "show",
    ),
    "broker": ("drain-leaders", "failed", "hold", "release", "returned"),
    "heal": ("plan", "skip", "start", "status", "stop"),
    "audit": ("verify",),
    "dead-letters": ("list",),
    "local": ("down", "kill", "logs", "pause", "resume", "seed", "start", "status", "up"),
    "config": ("check", "init", "show"),
    "context": ("list", "show", "use"),
    "log": ("check", "init", "recover"),
    "zookeeper": ("rebuild", "run", "verify"),
    "spark": ("jars", "run"),
}
COMMANDS = {name: line for section in SECTIONS.values() for name, line in section.items()}


class LazyGroup(DroverGroup):
    """The group of all commands, which imports a command when it is needed."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Return the commands in the order of help."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - click's signature
        """Import the command."""
        if cmd_name not in COMMANDS:
            return None
        module, _, name = COMMANDS[cmd_name][0].partition(":")
        command = getattr(importlib.import_module(module), name)
        assert isinstance(command, click.Command), f"{module}:{name} is not a command"
        return command

    def paths(self, ctx: click.Context) -> Iterator[tuple[str, ...]]:  # noqa: ARG002 - the signature of a group
        """Yield every command and those of the groups, without importing them."""
        for name in COMMANDS:
            yield (name,)
            yield from ((name, *inner.split()) for inner in IN_GROUPS.get(name, ()))

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - click's signature
        """List the commands by section, without importing them."""
        widest = max(map(len, COMMANDS))
        for heading, lines in SECTIONS.items():
            with formatter.section(heading):
                formatter.write_dl([(name.ljust(widest), text) for name, (_, text) in lines.items()])

    def invoke(self, ctx: click.Context) -> object:
        """Run the command; a fault of the world becomes one line and an exit code."""
        try:
            return super().invoke(ctx)
        except DroverError as error:
            if ctx.ensure_object(Invocation).debug:
                raise
            raise failure_of(error) from error
        except OSError as error:
            failure = unwritable(error) if error.errno in NO_ROOM else directory_gone(error)
            if failure is None or ctx.ensure_object(Invocation).debug:
                raise
            raise failure from error
        except KeyboardInterrupt:
            say("Interrupted.", err=True)
            ctx.exit(ExitCode.INTERRUPTED)


# Commands that are not about one managed cluster.
WITHOUT_CLUSTER = frozenset(
    {"local", "context", "log", "acls", "worker", "spark", "demo", "dead-letters", "healthcheck", "completion"}
)


@click.group(
    cls=LazyGroup,
    example="drover plan drain 3 --out plan.json\n"
    "drover alter plan.json --plan friday --reason 'broker 3 leaves'\n"
    "drover status --plan friday --follow",
)
@common_options
@author_option
@click.version_option(package_name="kafka-drover", message="%(prog)s %(version)s")
@click.pass_context
def cli(context: click.Context) -> None:
    """Move Kafka partition replicas safely.

    Exit codes: 0 done, 1 failed or something refused, 2 wrong usage or settings, 3 not finished in time, 4 blocked by a
    guard, 5 the log is corrupt, 130 interrupted.
    """
    # Created here, so that options after a command's name and the error handling share the same object.
    invocation = context.ensure_object(Invocation)
    if invocation.cluster is not None and context.invoked_subcommand in WITHOUT_CLUSTER:
        raise click.UsageError(f"`drover {context.invoked_subcommand}` does not take --cluster: leave it out")


def main() -> None:
    """Run the command line."""
    if isinstance(sys.stdout, TextIOWrapper):
        # Reasons and other texts may have characters that the terminal's encoding lacks; these are escaped.
        sys.stdout.reconfigure(errors="backslashreplace")
    cli(prog_name="drover")
