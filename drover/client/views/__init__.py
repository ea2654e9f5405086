"""PURE: the rows that people and programs see, in the same form in the CLI, the page and `-o json`."""
