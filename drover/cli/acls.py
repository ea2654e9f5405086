"""`drover acls`: print the ACLs that each part of Drover needs, ready to paste."""

import click

from drover.cli.invocation import Invocation, pass_invocation, settings_options
from drover.cli.output import output_option, print_document, say
from drover.client.acls import Need, Part, Place, needs
from drover.runtime.security_settings import Security
from drover.runtime.settings import Settings


@click.command()
@click.option("--part", type=click.Choice([part.value for part in Part]), help="Only the ACLs of this part.")
@click.option("--user", help="For this user.  [default: the one in the settings, or the part's name]")
@output_option
@settings_options
@pass_invocation
def acls(invocation: Invocation, part: str | None, user: str | None, output: str) -> None:
    """Print the ACLs that Drover needs, as calls of Kafka's own tool; contacts no cluster.

    `worker` is for `drover worker`, `setup` for `drover topics`, and `operator` for every other command.
    """
    settings = invocation.settings()
    found = [need for need in needs(settings.log.topics, settings.group) if part in {None, need.part.value}]
    asked = [(where, need, user or _user(security, need)) for need in found for where, security in _at(settings, need)]
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


def _at(settings: Settings, need: Need) -> list[tuple[str, Security]]:
    """Return the Kafkas on which something is needed."""
    if need.place is Place.LOG:
        return [(settings.log.bootstrap, settings.log.security)]
    return [(cluster.bootstrap, cluster.security) for cluster in settings.clusters.values()]


def _user(security: Security, need: Need) -> str:
    """Name the worker's user as the settings do; they do not name the users of the other parts."""
    named = security.sasl_plain_username if need.part is Part.WORKER else None
    return named or {Part.WORKER: "drover", Part.OPERATOR: "operator", Part.SETUP: "admin"}[need.part]


def _place(need: Need) -> str:
    return "the log's Kafka" if need.place is Place.LOG else "a managed cluster"
