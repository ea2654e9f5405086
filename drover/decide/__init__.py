"""Decisions: from a command, the state and facts to events, or a refusal."""
