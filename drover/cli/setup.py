"""`drover acls` and `drover schema`: the ACLs that Drover needs, and its wire contract."""

from typing import Any

import click
import msgspec

from drover import __version__
from drover.cli.help import drover_command
from drover.cli.invocation import Invocation, pass_invocation, settings_options
from drover.cli.output import output_option, print_document, say
from drover.client.acls import Need, Part, Place, needs
from drover.client.asyncapi import asyncapi
from drover.client.schema import wire_schema
from drover.settings.settings import Settings


@drover_command(example="drover acls --worker-user drover-worker --operator-user ana --setup-user admin")
@click.option("--part", type=click.Choice([part.value for part in Part]), help="Only the ACLs of this part.")
@click.option("--worker-user", metavar="USER", help="The user of the workers.  [default: the placeholder WORKER]")
@click.option("--operator-user", metavar="USER", help="The user of the operators.  [default: the placeholder OPERATOR]")
@click.option("--setup-user", metavar="USER", help="The user who creates the topics.  [default: the placeholder SETUP]")
@output_option
@settings_options
@pass_invocation
def acls(invocation: Invocation, part: str | None, output: str, **users: Any) -> None:
    """Print the ACLs that Drover needs, as calls of Kafka's own tool; contacts no cluster.

    `worker` is for `drover worker`, `setup` for `drover log`, and `operator` for every other command. Name the users
    with options: the settings hold your own user, who could write the log with the worker's ACLs.
    """
    settings = invocation.settings()
    named = {part_: users[f"{part_.value}_user"] or part_.name for part_ in Part}
    wanted = [need for need in needs(settings.log.topics, settings.group) if part in {None, need.part.value}]
    asked = [(where, need, named[need.part]) for need in wanted for where in _addresses(settings, need)]
    missing = sorted({need.part for need in wanted if not users[f"{need.part.value}_user"]})
    if output != "table":
        rows = [
            {
                "part": need.part.value,
                "place": need.place.value,
                "bootstrap": bootstrap,
                "user": acl.user,
                "resource": acl.resource.name.lower(),
                "name": acl.name,
                "operation": acl.operation.title,
            }
            for bootstrap, need, name in asked
            for acl in need.acls(name)
        ]
        print_document({"acls": rows}, rows, output)
        return
    for bootstrap, need, name in asked:
        say(f"# {need.part.value}, {_place_text(need)}: {need.purpose}\n{need.command(bootstrap, name)}")
    if missing:
        options = ", ".join(f"--{part_.value}-user" for part_ in missing)
        say(f"Replace the placeholders {', '.join(part_.name for part_ in missing)}, or give {options}.", err=True)


def _addresses(settings: Settings, need: Need) -> list[str]:
    """Return the addresses of the Kafka clusters on which an ACL is needed."""
    if need.place is Place.LOG:
        return [settings.log.bootstrap]
    return [cluster.bootstrap for cluster in settings.clusters.values()]


def _place_text(need: Need) -> str:
    return "the log's Kafka" if need.place is Place.LOG else "a managed cluster"


@drover_command(example="drover schema --asyncapi")
@click.option("--asyncapi", "with_topics", is_flag=True, help="Print AsyncAPI 3 instead, which also has the topics.")
@settings_options
def schema(*, with_topics: bool) -> None:
    """Print every message as JSON Schema (2020-12): commands, records of the log, samples.

    events/schema.json holds the same, and events/asyncapi.json the output of --asyncapi. The command needs no settings
    and no log.
    """
    document = asyncapi(__version__) if with_topics else wire_schema()
    say(msgspec.json.format(msgspec.json.encode(document), indent=1).decode())
