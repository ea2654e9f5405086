"""The ends of plans."""
