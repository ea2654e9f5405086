"""Drover's core, drivers and command line; the vocabulary is in `events`, the Faust agents are in `agents`."""

__version__ = "0.1.0"
