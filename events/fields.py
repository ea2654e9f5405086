"""The types of commands' fields: their forms and bounds, checked when a command is decoded."""

from typing import Annotated

from msgspec import Meta

ClusterName = Annotated[str, Meta(pattern=r"^[a-z0-9][a-z0-9._-]{0,63}\Z")]
Identifier = Annotated[str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}\Z")]
Words = Annotated[str, Meta(min_length=1)]
TopicName = Annotated[str, Meta(min_length=1, max_length=249)]
# Kafka writes a topic's id as 22 characters of URL-safe base64.
TopicId = Annotated[str, Meta(pattern=r"^[A-Za-z0-9_-]{22}\Z")]
Index = Annotated[int, Meta(ge=0, le=2**31 - 1)]
BrokerId = Annotated[int, Meta(ge=0, le=2**31 - 1)]
# A replica list may name any number: a negative one is Kafka's INVALID_REPLICA_ASSIGNMENT for that partition alone.
Replicas = tuple[Annotated[int, Meta(ge=-(2**31), le=2**31 - 1)], ...]
Milliseconds = Annotated[int, Meta(ge=0, le=2**53)]
# The last moment of the year 9999: no later one can be written as a date.
LAST_MS = 253_402_300_799_999
LimitName = Annotated[str, Meta(pattern=r"^[A-Za-z][A-Za-z0-9._-]{0,127}\Z")]
# The values that a limit takes are checked when the command is decided.
GivenLimit = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)] | bool | Annotated[str, Meta(max_length=256)] | None

# Maintenance windows as text, see `drover.windows`; they are parsed when the command is decided.
Windows = Annotated[str, Meta(max_length=256)]

Rate = Annotated[int, Meta(ge=1, le=2**63 - 1)]
ThrottledReplica = Annotated[str, Meta(pattern=r"^[0-9]{1,10}:[0-9]{1,10}\Z")]
