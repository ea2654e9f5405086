"""Kafka's ACLs as values, and how to create them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum

from kafka.protocol.admin import CreateAclsRequest

from drover.cluster.wire import Connection, Deadline
from drover.errors import ConfigurationError
from drover.facts import NONE

TIMEOUT_MS = 10_000
ALLOW = 3
ANYWHERE = "*"
LITERAL = 3


class Resource(IntEnum):
    """The kinds of resources of ACLs, with Kafka's own codes."""

    TOPIC = 2
    GROUP = 3
    CLUSTER = 4


class Operation(IntEnum):
    """The operations of ACLs, with Kafka's own codes.

    Reading or writing a topic includes describing it, altering includes describing, altering configs includes
    describing configs.
    """

    READ = 3
    WRITE = 4
    CREATE = 5
    ALTER = 7
    DESCRIBE = 8
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11

    @property
    def title(self) -> str:
        """The name that Kafka's tools use."""
        return self.name.title().replace("_", "")


CLUSTER_NAME = "kafka-cluster"


@dataclass(frozen=True, slots=True, order=True)
class Acl:
    """Allows a user an operation on a resource, from any host; the name `*` means every resource of the kind."""

    user: str
    resource: Resource
    name: str
    operation: Operation


async def create_acls(bootstrap: str, acls: Sequence[Acl], client_options: Mapping[str, object]) -> None:
    """Create these ACLs; existing ones stay. Brokers apply them a moment later.

    Raises:
        ConfigurationError: Kafka refuses an ACL.
        ClusterUnavailableError, OutcomeUnknownError: no answer; repeating is harmless.
    """
    connection = Connection("acls", bootstrap, client_options, TIMEOUT_MS)
    request = CreateAclsRequest(
        creations=[
            CreateAclsRequest.AclCreation(
                resource_type=int(acl.resource),
                resource_name=acl.name,
                resource_pattern_type=LITERAL,
                principal=f"User:{acl.user}",
                host=ANYWHERE,
                operation=int(acl.operation),
                permission_type=ALLOW,
            )
            for acl in acls
        ]
    )
    try:
        response = await connection.send(request, Deadline.after_ms(TIMEOUT_MS), changes=True)
    finally:
        await connection.close()
    for acl, result in zip(acls, response.results, strict=True):
        if result.error_code != NONE:
            raise ConfigurationError(
                f"{bootstrap} refuses the ACL {acl}: Kafka error {result.error_code} ({result.error_message})"
            )
