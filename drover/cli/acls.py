"""`drover acls`: print the ACLs that each part of Drover needs, ready to paste."""

from typing import Any

import click

from drover.cli.invocation import Invocation, pass_invocation, settings_options
from drover.cli.output import output_option, print_document, say
from drover.client.acls import Need, Part, Place, needs
from drover.settings.settings import Settings


@click.command()
@click.option("--part", type=click.Choice([part.value for part in Part]), help="Only the ACLs of this part.")
@click.option("--worker-user", metavar="USER", help="The user of the workers.  [default: the placeholder WORKER]")
@click.option("--operator-user", metavar="USER", help="The user of the operators.  [default: the placeholder OPERATOR]")
@click.option("--setup-user", metavar="USER", help="The user who makes the topics.  [default: the placeholder SETUP]")
@output_option
@settings_options
@pass_invocation
def acls(invocation: Invocation, part: str | None, output: str, **users: Any) -> None:
    """Print the ACLs that Drover needs, as calls of Kafka's own tool; contacts no cluster.

    `worker` is for `drover worker`, `setup` for `drover topics`, and `operator` for every other command. Users are
    taken from no settings, since these name whoever prints this: with the worker's ACLs that user could write the log.
    """
    settings = invocation.settings()
    named = {one: users[f"{one.value}_user"] or one.name for one in Part}
    found = [need for need in needs(settings.log.topics, settings.group) if part in {None, need.part.value}]
    asked = [(where, need, named[need.part]) for need in found for where in _at(settings, need)]
    missing = sorted({need.part for need in found if not users[f"{need.part.value}_user"]})
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
        say(f"# {need.part.value}, {_place(need)}: {need.purpose}\n{need.command(bootstrap, name)}")
    if missing:
        options = ", ".join(f"--{one.value}-user" for one in missing)
        say(f"Replace the placeholders {', '.join(one.name for one in missing)}, or give {options}.", err=True)


def _at(settings: Settings, need: Need) -> list[str]:
    """Return the addresses of the Kafkas on which something is needed."""
    if need.place is Place.LOG:
        return [settings.log.bootstrap]
    return [cluster.bootstrap for cluster in settings.clusters.values()]


def _place(need: Need) -> str:
    return "the log's Kafka" if need.place is Place.LOG else "a managed cluster"
