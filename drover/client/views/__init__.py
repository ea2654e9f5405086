"""PURE: the rows that people and programs look at, in one form for the CLI, the page and `-o json`."""
