"""Groups that import a command's module only when that command is run: the others cost nothing at start."""

import importlib
from collections.abc import Mapping

import click

from drover.cli.exits import NO_ROOM, ExitCode, directory_gone, failure_of, unwritable
from drover.cli.invocation import Invocation
from drover.cli.output import say
from drover.errors import DroverError

_NO_ALIASES: Mapping[str, str] = {}


class LazyGroup(click.Group):
    """A group whose commands are named as `module:object`, each with its line of help.

    `aliases` are further names of commands; no help lists them.
    """

    def __init__(
        self, *, lazy: Mapping[str, tuple[str, str]], aliases: Mapping[str, str] = _NO_ALIASES, **options: object
    ) -> None:
        super().__init__(**options)  # type: ignore[arg-type]  # click's own keyword arguments, passed through
        self._lazy = lazy
        self._aliases = aliases

    def list_commands(self, ctx: click.Context) -> list[str]:
        """List the commands in the order in which they were given."""
        return [*self._lazy, *super().list_commands(ctx)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the command."""
        cmd_name = self._aliases.get(cmd_name, cmd_name)
        if cmd_name not in self._lazy:
            return super().get_command(ctx, cmd_name)
        module, _, name = self._lazy[cmd_name][0].partition(":")
        command = getattr(importlib.import_module(module), name)
        assert isinstance(command, click.Command), f"{module}:{name} is not a command"
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - click's signature
        """List the commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in self._lazy.items()])

    def invoke(self, ctx: click.Context) -> object:
        """Run the command; a fault of the world becomes one line and an exit code."""
        try:
            return super().invoke(ctx)
        except DroverError as error:
            if ctx.ensure_object(Invocation).debug:
                raise
            raise failure_of(error) from error
        except OSError as error:
            told = unwritable(error) if error.errno in NO_ROOM else directory_gone(error)
            if told is None or ctx.ensure_object(Invocation).debug:
                raise
            raise told from error
        except KeyboardInterrupt:
            say("Interrupted.", err=True)
            ctx.exit(ExitCode.INTERRUPTED)
