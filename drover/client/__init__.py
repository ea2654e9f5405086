"""Drover for Python programs: send commands, await their outcomes and ends, read the log. docs/python.md has examples.

async with Client.from_settings() as drover:
    answer = await drover.send(Freeze(id=new_id("freeze"), cluster="prod", by="me", reason="a quiet Friday"), 30)
    print(answer.outcome.verdict)

These names are what docs/python.md promises to keep.
"""

from drover.client import events
from drover.client.answers import Answer, OutcomeMissingError, Ownership, Sent
from drover.client.client import Client
from drover.client.commands import new_id, split
from drover.client.ends import NotEndedError
from drover.client.history import ValidRecord
from drover.client.sync import SyncClient
from drover.client.time_travel import Ended, Point
from drover.errors import (
    ConfigurationError,
    CorruptLogError,
    DroverError,
    LogAccessError,
    LogUnavailableError,
    NothingToUndoError,
    UnknownPlanError,
    UnknownSchemaError,
)
from drover.events.clusters import HoldRole
from drover.events.commands import (
    Alter,
    AnyCommand,
    BalanceLeaders,
    Blacklist,
    BlacklistEntry,
    BrokerFailed,
    BrokerReturned,
    Cancel,
    ChangeLimits,
    Command,
    Demote,
    Freeze,
    HealCommand,
    HoldBroker,
    PartitionName,
    PartitionTarget,
    PausePlan,
    ReleaseBroker,
    Repair,
    Restore,
    RestoreThrottles,
    ResumePlan,
    Throttle,
    Unfreeze,
)
from drover.events.leftover_throttles import LeftoverEntries, LeftoverRates
from drover.events.partitions import PartitionReference, TopicPartition
from drover.events.plans import Priority, Stepping
from drover.events.records import Batch, DeferredCancel, Outcome
from drover.events.refusals import Refusal, RefusalCode
from drover.events.topics import TopicNames
from drover.journal.connection import LogConnection
from drover.state.cluster import ClusterState
from drover.state.plans import Plan, PlanStatus

__all__ = [
    "Alter",
    "Answer",
    "AnyCommand",
    "BalanceLeaders",
    "Batch",
    "Blacklist",
    "BlacklistEntry",
    "BrokerFailed",
    "BrokerReturned",
    "Cancel",
    "ChangeLimits",
    "Client",
    "ClusterState",
    "Command",
    "ConfigurationError",
    "CorruptLogError",
    "DeferredCancel",
    "Demote",
    "DroverError",
    "Ended",
    "Freeze",
    "HealCommand",
    "HoldBroker",
    "HoldRole",
    "LeftoverEntries",
    "LeftoverRates",
    "LogAccessError",
    "LogConnection",
    "LogUnavailableError",
    "NotEndedError",
    "NothingToUndoError",
    "Outcome",
    "OutcomeMissingError",
    "Ownership",
    "PartitionName",
    "PartitionReference",
    "PartitionTarget",
    "PausePlan",
    "Plan",
    "PlanStatus",
    "Point",
    "Priority",
    "Refusal",
    "RefusalCode",
    "ReleaseBroker",
    "Repair",
    "Restore",
    "RestoreThrottles",
    "ResumePlan",
    "Sent",
    "Stepping",
    "SyncClient",
    "Throttle",
    "TopicNames",
    "TopicPartition",
    "Unfreeze",
    "UnknownPlanError",
    "UnknownSchemaError",
    "ValidRecord",
    "events",
    "new_id",
    "split",
]
