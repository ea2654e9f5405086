"""The outcome of a command that was decided in several records, as one."""

from collections.abc import Sequence

from msgspec.structs import replace

from drover.events.records import Outcome


def joined(parts: Sequence[Outcome]) -> Outcome:
    """Join the parts of an outcome, in their order; it is accepted if any part is. One part is returned as it is."""
    if len(parts) == 1:
        return parts[0]
    return replace(
        parts[0],
        verdict="accepted" if any(part.verdict == "accepted" for part in parts) else parts[0].verdict,
        plan=next((part.plan for part in parts if part.plan is not None), None),
        accepted=tuple(one for part in parts for one in part.accepted),
        unchanged=tuple(one for part in parts for one in part.unchanged),
        refusals=tuple(one for part in parts for one in part.refusals),
        held_off=tuple(one for part in parts for one in part.held_off),
        more=parts[-1].more,
    )
