"""The outcomes of a plan that was sent in several commands, as one."""

from collections.abc import Sequence

from msgspec.structs import replace

from drover.events.records import Outcome


def joined(parts: Sequence[Outcome]) -> Outcome:
    """Join outcomes in their order, under the id of the first; accepted if any is. One alone is returned unchanged."""
    if len(parts) == 1:
        return parts[0]
    return replace(
        parts[0],
        verdict="accepted" if any(part.verdict == "accepted" for part in parts) else parts[0].verdict,
        plan=next((part.plan for part in parts if part.plan is not None), None),
        accepted=tuple(partition for part in parts for partition in part.accepted),
        unchanged=tuple(partition for part in parts for partition in part.unchanged),
        refusals=tuple(refusal for part in parts for refusal in part.refusals),
        deferred=tuple(cancel for part in parts for cancel in part.deferred),
        remarks=tuple(dict.fromkeys(remark for part in parts for remark in part.remarks)),
    )
