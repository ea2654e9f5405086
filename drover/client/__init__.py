"""The Python client of Drover: send a command, await its recorded outcome, read the log.

async with Client(LogConnection("kafka-1:9092")) as client:
    sent = await client.submit(Freeze(id="f1", cluster="prod", by="me", reason="a quiet Friday"))
    (answer,) = await client.outcomes([sent], timeout_s=30)
"""

from drover.client.answers import Answer, OutcomeMissingError, Ownership, Sent
from drover.client.client import Client
from drover.client.history import ValidRecord, fold_shards
from drover.client.transfers import Transfer, Transfers

__all__ = [
    "Answer",
    "Client",
    "OutcomeMissingError",
    "Ownership",
    "Sent",
    "Transfer",
    "Transfers",
    "ValidRecord",
    "fold_shards",
]
