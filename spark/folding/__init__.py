"""PURE: what must be folded in order, since it depends on what was before: states, loads, rates."""
