"""Planning: a model of a cluster, a goal, and the proposal that reaches it with the fewest bytes; pure."""
