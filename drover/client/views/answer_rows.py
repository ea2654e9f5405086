"""PURE: the recorded outcomes of commands as rows, for the command line and the page."""

from typing import Any

import msgspec

from drover.client.answers import Answer


def answer_row(answer: Answer) -> dict[str, Any]:
    """Return an outcome for programs; fields may be added and never changed."""
    outcome = answer.outcome
    return {
        "id": outcome.id,
        "cluster": outcome.cluster,
        "type": outcome.type,
        "verdict": outcome.verdict,
        "repeated": answer.repeated,
        "plan": outcome.plan,
        "accepted": [msgspec.to_builtins(result) for result in outcome.accepted],
        "unchanged": [msgspec.to_builtins(result) for result in outcome.unchanged],
        "refusals": [
            {
                "code": refusal.code.value,
                "detail": refusal.detail,
                "topic": refusal.topic,
                "partition": refusal.partition,
            }
            for refusal in outcome.refusals
        ],
        "remarks": list(outcome.remarks),
        "deferred": [msgspec.to_builtins(entry) for entry in outcome.deferred],
        "shard": answer.shard,
        "offset": answer.offset,
        "at_ms": answer.at_ms,
    }
