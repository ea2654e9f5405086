"""`drover project`: write the state to ZooKeeper, build that view again, and compare it with the log."""

import asyncio
from dataclasses import asdict

import click

from drover.cli.exits import ExitCode
from drover.cli.invocation import Invocation, common_options, pass_invocation
from drover.cli.output import output_option, plural, print_document, say
from drover.cli.parameters import Address


@click.group(invoke_without_command=True)
@click.option(
    "--listen",
    type=Address(),
    metavar="HOST:PORT",
    help="Where to serve /livez, /readyz and /metrics; port 0 picks one.",
)
@common_options
@click.pass_context
@pass_invocation
def project(invocation: Invocation, context: click.Context, listen: str | None) -> None:
    """Write the state of every cluster to ZooKeeper as it changes, until SIGTERM or Ctrl-C.

    Several may run; only one of them writes a cluster's tree at a time. Workers do the same with
    `zookeeper.project = true`.
    """
    if context.invoked_subcommand is not None:
        return
    settings = invocation.settings({"zookeeper": {"listen": listen}} if listen is not None else None)
    cluster = invocation.cluster_wanted(settings)
    from drover.projections.projecting import serve_projection  # noqa: PLC0415 - kazoo is not loaded for a wrong flag

    raise click.exceptions.Exit(serve_projection(settings, cluster))


@project.command()
@common_options
@pass_invocation
def rebuild(invocation: Invocation) -> None:
    """Build a cluster's tree again from the log, beside the old one, and switch to it.

    Projectors may keep running; they carry on from the new tree.
    """
    settings = invocation.settings()
    cluster = invocation.cluster_of(settings)
    from drover.projections.projecting import rebuild_tree  # noqa: PLC0415 - see project

    made = asyncio.run(rebuild_tree(settings, cluster))
    say(f"{cluster}: {plural(made.nodes, 'node')}, the log up to offset {made.offset}.{made.event_index}.")


@project.command()
@output_option
@common_options
@pass_invocation
def verify(invocation: Invocation, output: str) -> None:
    """Compare a cluster's tree with the log, up to where the tree follows it; exit code 1 if they differ."""
    settings = invocation.settings()
    cluster = invocation.cluster_of(settings)
    from drover.projections.projecting import compare_tree  # noqa: PLC0415 - see project

    found = asyncio.run(compare_tree(settings, cluster))
    if output != "table":
        rows = [asdict(difference) for difference in found.differences]
        print_document({**asdict(found), "differences": rows}, rows, output)
    else:
        for difference in found.differences:
            say(f"{difference.path} {difference.what}")
        verdict = plural(len(found.differences), "difference") if found.differences else "no difference"
        say(f"{cluster}: {plural(found.nodes, 'node')}, {verdict}, {plural(found.behind, 'event')} behind.")
    raise click.exceptions.Exit(ExitCode.FAILED if found.differences else ExitCode.DONE)
