"""The command `drover`: names every command and imports none."""

import sys
from io import TextIOWrapper

import click

from drover.cli.invocation import Invocation, author_option, common_options
from drover.cli.lazy import LazyGroup

COMMANDS = {
    "local": ("drover.cli.local:local", "Run a real Kafka cluster on this machine."),
    "topics": ("drover.cli.topics:topics", "Create and check Drover's own topics."),
    "acls": ("drover.cli.acls:acls", "Print the ACLs that Drover needs."),
    "worker": ("drover.cli.worker:worker", "Run a worker."),
    "project": ("drover.cli.project:project", "Write the state to ZooKeeper."),
    "describe": ("drover.cli.describe:describe", "Show what lies where, who leads, and how even it is."),
    "plan": ("drover.cli.plan:plan", "Propose moves: drain, add, replace, balance and more."),
    "alter": ("drover.cli.alter:alter", "Move partitions to the replicas of a plan."),
    "cancel": ("drover.cli.cancel:cancel", "Roll moves back, or stop them."),
    "throttle": ("drover.cli.throttle:throttle", "Set throttles of plans and of the cluster; delete strays."),
    "throttles": ("drover.cli.throttles:throttles", "Show every throttle, and whose it is."),
    "limits": ("drover.cli.limits:limits", "Show and change how much may move at a time."),
    "repair": ("drover.cli.repair:repair", "End moves that can never end by themselves."),
    "pause": ("drover.cli.pause:pause", "Begin no further step of a plan."),
    "resume": ("drover.cli.pause:resume", "Let steps of a paused plan begin again."),
    "freeze": ("drover.cli.freeze:freeze", "Start nothing new."),
    "unfreeze": ("drover.cli.freeze:unfreeze", "Allow new work to start again."),
    "blacklist": ("drover.cli.blacklist:blacklist", "Set or show the brokers that should not lead."),
    "leaders": ("drover.cli.leaders:leaders", "Move leaders off brokers and back, balance and show them."),
    "broker": ("drover.cli.broker:broker", "Report that a broker failed or returned, drain its leaders, or hold it."),
    "heal": ("drover.cli.heal:heal", "Show and decide what is done about brokers that stay away."),
    "status": ("drover.cli.status:status", "Show what is moving, how far it is and why it waits."),
    "web": ("drover.cli.web:web", "Serve the page: every move, why it waits, and what it did."),
    "history": ("drover.cli.history:history", "Show who asked for what, why, and what happened."),
    "state": ("drover.cli.state:state", "Show a cluster's state now or at any moment of the log."),
    "progress": ("drover.cli.progress:progress", "Show the progress tables that the Spark job keeps."),
    "spark": ("drover.cli.spark:spark", "Keep the progress tables, with Spark."),
    "audit": ("drover.cli.audit:audit", "Show what was asked for, done, refused and undone, and verify the log."),
    "replay": ("drover.cli.replay:replay", "Replay the log from its first record."),
    "recover": ("drover.cli.recover:recover", "Let a shard go on whose log is damaged."),
    "schema": ("drover.cli.schema:schema", "Print the wire contract as JSON Schema."),
    "demo": ("drover.cli.demo:demo", "Watch the whole story on a real Kafka."),
    "dead-letters": ("drover.cli.dead_letters:dead_letters", "Show what could not be read as a command."),
}
# Names that commands had before; they work, and are not listed.
ALIASES = {"mend": "repair"}
# What these do is not about one managed cluster.
WITHOUT_CLUSTER = frozenset({"local", "topics", "acls", "worker", "spark", "demo", "dead-letters"})


@click.group(cls=LazyGroup, lazy=COMMANDS, aliases=ALIASES)
@common_options
@author_option
@click.version_option(package_name="kafka-drover", message="%(prog)s %(version)s")
@click.pass_context
def cli(context: click.Context) -> None:
    """Move Kafka partition replicas safely.

    Exit codes: 0 done, 1 failed or something refused, 2 wrong usage or settings, 3 not finished in time, 4 blocked by a
    guard, 5 the log is corrupt, 130 interrupted.
    """
    # Made here, so that options after a command's name and the error handling around it share one.
    invocation = context.ensure_object(Invocation)
    if invocation.cluster is not None and context.invoked_subcommand in WITHOUT_CLUSTER:
        raise click.UsageError(f"--cluster has no meaning for `drover {context.invoked_subcommand}`: leave it out")


def main() -> None:
    """Run the command line."""
    if isinstance(sys.stdout, TextIOWrapper):
        # Others' texts, such as reasons, may hold what the encoding of this terminal lacks: that is escaped.
        sys.stdout.reconfigure(errors="backslashreplace")
    cli(prog_name="drover")
