"""Names of Drover's own plans."""

from drover.state.plans import PlansState


def unused_plan_name(state: PlansState, name: str) -> str:
    """Return this name, or a longer one that no plan has: a client may have used any name."""
    while name in state.plans:
        name += "-again"
    return name
