"""Questions before what cannot be taken back, and what counts as their answer."""

import sys

import click

from drover.cli.output import say


def can_ask() -> bool:
    """Whether there is a terminal to ask on; standard input may also be closed."""
    return sys.stdin is not None and sys.stdin.isatty()


def confirmed(question: str) -> bool:
    """Ask a question; the end of the input (Ctrl-D) is a no.

    Raises `KeyboardInterrupt` for Ctrl-C, which click would report as "Aborted!" with exit code 1.
    """
    if sys.stdin is None:
        return False
    try:
        return click.confirm(question, err=True)
    except click.Abort as aborted:
        # The terminal shows no line break for either key.
        say(err=True)
        if isinstance(aborted.__context__, EOFError):
            return False
        raise KeyboardInterrupt from None
