"""How commands explain themselves: options under headings, an example in each help, suggestions for unknown names."""

import difflib
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, TypeVar

import click

Decorated = TypeVar("Decorated", bound=Callable[..., Any])
MOST_SUGGESTIONS = 3
# Of two words, 1 for the same; below it, suggestions are noise.
LEAST_LIKENESS = 0.7
OWN_OPTIONS = "Options"


class HeadedOption(click.Option):
    """An option that several commands share; help lists it under `heading`, behind the command's own options."""

    def __init__(self, *arguments: Any, heading: str, **attributes: Any) -> None:
        super().__init__(*arguments, **attributes)
        self.heading = heading


connection_option = partial(click.option, cls=HeadedOption, heading="Connection")
sending_option = partial(click.option, cls=HeadedOption, heading="Sending")
plan_option = partial(click.option, cls=HeadedOption, heading="How the plan moves")


class DroverCommand(click.Command):
    """A command with `-h` and an example: a line, or several, that can be typed as they are."""

    def __init__(self, name: str | None, *, example: str = "", **attributes: Any) -> None:
        super().__init__(name, context_settings={"help_option_names": ["-h", "--help"]}, **attributes)
        self.example = example

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the explanation and the example, which is not wrapped, so that it can be copied."""
        super().format_help_text(ctx, formatter)
        if self.example:
            with formatter.section("Example"):
                for line in self.example.splitlines():
                    formatter.write(f"{'':>{formatter.current_indent}}{line}\n")

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the command's own options, then each heading's."""
        records: dict[str, list[tuple[str, str]]] = {OWN_OPTIONS: []}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None:
                heading = parameter.heading if isinstance(parameter, HeadedOption) else OWN_OPTIONS
                records.setdefault(heading, []).append(record)
        for heading, rows in records.items():
            if rows:
                with formatter.section(heading):
                    formatter.write_dl(rows)


class DroverGroup(DroverCommand, click.Group):
    """A group of such commands; for a name that it does not have, it suggests similar ones."""

    command_class = DroverCommand
    group_class = type

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands first: a reader of a group's help looks for one."""
        self.format_commands(ctx, formatter)
        super().format_options(ctx, formatter)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command; click's own error for an unknown one gets suggestions."""
        name = args[0]
        if not (name.startswith("-") or ctx.resilient_parsing) and self.get_command(ctx, name) is None:
            ctx.fail(f"No such command {name!r}.{self._suggestion(ctx, name)}")
        return super().resolve_command(ctx, args)

    def _suggestion(self, ctx: click.Context, name: str) -> str:
        """Suggest commands of this group and of the groups in it, by their names or by a word of these."""
        words = {path: {path[-1], *path[-1].split("-")} for path in self.paths(ctx)}
        near = similar(name, (word for each in words.values() for word in each))
        paths = dict.fromkeys(path for word in near for path, each in words.items() if word in each)
        calls = [f"`{' '.join((ctx.command_path, *path))}`" for path in paths][:MOST_SUGGESTIONS]
        return f" Did you mean {alternatives(calls)}?" if calls else f" `{ctx.command_path} -h` lists the commands."

    def paths(self, ctx: click.Context) -> Iterator[tuple[str, ...]]:
        """Yield every command in this group, and those of the groups in it, as the words that follow the group's."""
        for name in self.list_commands(ctx):
            yield (name,)
            command = self.get_command(ctx, name)
            if isinstance(command, DroverGroup):
                yield from ((name, *path) for path in command.paths(ctx))


def drover_command(*, example: str, name: str | None = None) -> Callable[[Callable[..., Any]], DroverCommand]:
    """Make a command of a function, with an example in its help."""
    return click.command(name, cls=DroverCommand, example=example)


def drover_group(
    *, invoke_without_command: bool = False, example: str = ""
) -> Callable[[Callable[..., Any]], DroverGroup]:
    """Make a group of a function; one that is a command itself has an example, too."""
    return click.group(cls=DroverGroup, invoke_without_command=invoke_without_command, example=example)


def similar(name: str, names: Iterable[str]) -> list[str]:
    """Return the names that are most like a given one, the most similar first."""
    return difflib.get_close_matches(name, list(dict.fromkeys(names)), n=MOST_SUGGESTIONS, cutoff=LEAST_LIKENESS)


def alternatives(words: Sequence[str]) -> str:
    """Join words as alternatives: `a`, `a or b`, `a, b or c`."""
    *first, last = words
    return f"{', '.join(first)} or {last}" if first else last


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """Return a sentence with the names that are like an unknown one; empty if none is."""
    near = similar(name, names)
    return f"Did you mean {alternatives(near)}?" if near else ""


Completer = Callable[[click.Context, click.Parameter, str], list[str]]


def completing(kind: str) -> Completer:
    """Return the completer of `clusters`, `plans`, `topics` or `brokers`; it loads Kafka's client only when asked."""

    def complete(context: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
        from drover.cli.completion import names  # noqa: PLC0415 - Kafka's client costs start-up time

        return names(kind, context, incomplete)

    return complete


CLUSTERS, PLANS, TOPICS, BROKERS = map(completing, ("clusters", "plans", "topics", "brokers"))
