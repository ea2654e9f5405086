"""The planner: constraints, determinism, minimality, and figures beside brute force."""
