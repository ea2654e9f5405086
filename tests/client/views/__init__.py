"""Tests of `drover.client.views`: the rows that the CLI, the page and programs show."""
