"""`drover recover`: let a shard go on whose log is damaged."""

import asyncio

import click

from drover.cli.asking import confirmed
from drover.cli.invocation import Invocation, author_option, common_options, pass_invocation
from drover.cli.output import plural, say, timestamp
from drover.fold.log import ShardFold


@click.command()
@click.argument("shard", type=click.IntRange(min=0))
@click.option(
    "--after",
    "offset",
    type=click.IntRange(min=0),
    metavar="OFFSET",
    help="The damaged record.  [default: only show it]",
)
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@common_options
@author_option
@pass_invocation
def recover(invocation: Invocation, shard: int, offset: int | None, *, yes: bool) -> None:
    """Show where the log of SHARD is damaged, and with --after let it go on from the state before.

    What the damaged record and those after it decided never happened for any reader. What the clusters show is
    adopted, as after every takeover. docs/recovery.md says when this is right.
    """
    # The Kafka client costs start-up time.
    from drover.journal.recovery import folded_to_end, resume_shard  # noqa: PLC0415

    connection = invocation.settings().log.connection()
    fold = asyncio.run(folded_to_end(connection, shard))
    if fold.damage is None:
        say(f"The log of shard {shard} is not damaged.")
        return
    say(_found(fold))
    if offset is None:
        say(f"Let it go on from there with: drover recover {shard} --after {fold.damage.offset}")
        return
    if not (yes or confirmed("Is all of that to be as if it had never been written?")):
        raise click.UsageError("nothing was written")
    asyncio.run(resume_shard(connection, fold, offset, f"{invocation.author}, drover recover"))
    say(f"Shard {shard} goes on with the state from before offset {offset}; a worker takes it within a minute.")


def _found(fold: ShardFold) -> str:
    assert fold.damage is not None, "only what is damaged is told"
    until = f"decided until {timestamp(fold.at_ms)}" if fold.sequence else "before its first decision"
    behind = fold.position - fold.damage.offset - 1
    return f"{fold.damage.what}.\nThe state before it was {until}; {plural(behind, 'record')} follow it."
