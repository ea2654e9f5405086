"""Plans: what was asked for under one name, how it went, and when it is over."""
