"""Commands with a script: a command line of another launcher, an option of sbatch or the script."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

import click

from hpc_train.base.errors import nearest
from hpc_train.submissions.typed_command import in_our_words

# Long options of sbatch that programs have as well.
_OF_PROGRAMS = "output error input batch profile comment extra verbose version quiet wait".split()


class JobCommand(click.Command):
    """A command that takes the command line of another launcher, and knows sbatch's options."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the words of the command line.

        Raises:
            click.UsageError: an unknown option, with the command to type.
        """
        known = [name for option in self.params for name in option.opts]
        before, line = self._split(ctx, args)
        meant = in_our_words(line, known) if line else None
        if meant is not None:
            args = [*before, *meant]
            typed = shlex.join(["hpctrain", self.name or "", *args])
            click.echo(f"hpctrain: taken as: {typed}", err=True)
        # Click empties the list.
        words = list(args)
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as failure:
            if advice := _advice(failure.option_name, words, known):
                raise click.UsageError(advice, ctx) from None
            raise

    def _split(self, ctx: click.Context, args: Sequence[str]) -> tuple[list[str], list[str]]:
        """Return the options before the first word that is none, and what begins with it."""
        options = [one for one in self.params if isinstance(one, click.Option)]
        parser = click.Command(self.name, params=[*options]).make_parser(ctx)
        parser.allow_interspersed_args = False
        try:
            _, rest, _ = parser.parse_args(list(args))
        except click.UsageError:
            return list(args), []
        before = list(args[: len(args) - len(rest)])
        return before[:-1] if before[-1:] == ["--"] else before, rest


def _advice(name: str, words: Sequence[str], known: Sequence[str]) -> str:
    """Return what to type instead of an unknown option; empty if click's answer is better."""
    script = next((word for word in words if _is_script(word)), "")
    answer, is_certain = _of_sbatch(name, words, known)
    if is_certain or not script:
        return answer
    near = nearest(name, [one for one in known if one.startswith("--")])
    own = f"Options of {script} follow after --: {script} -- {name} …"
    return f"{answer or f'No such option {name!r}{near}.'} {own}"


def _of_sbatch(option: str, words: Sequence[str], known: Sequence[str]) -> tuple[str, bool]:
    """Return how a job states an option of sbatch, and whether no program has one of that name."""
    from hpc_train.base.slurm_options import directive_problem, sbatch_grammar

    grammar, name = sbatch_grammar(), option.lstrip("-").replace("_", "-")
    is_letter = not name[1:] and not option.startswith("--")
    name = grammar.short.get(name, name) if is_letter else grammar.aliases.get(name, name)
    if name not in grammar.long:
        return "", False
    at = next((n for n, word in enumerate(words) if word.partition("=")[0] == option), 0)
    _, equals, value = words[at].partition("=")
    following = words[at + 1] if at + 1 < len(words) else "-"
    if not equals and grammar.long[name] == "=" and not following.startswith("-"):
        value = following
    value = value or ("VALUE" if grammar.long[name] == "=" else "true")
    problem = directive_problem(name, True if value == "true" else value)
    answer = f"--set directives.{name}={shlex.quote(value)}"
    if problem:
        key = problem[1].removeprefix("use ")
        ours = f"--{key.rpartition('.')[2].replace('_', '-')}"
        answer = f"use {ours if ours in known else key}" if problem[1] else problem[0]
    certain = not is_letter and name not in _OF_PROGRAMS
    return f"{option} is an option of sbatch: {answer}.", certain


def _is_script(word: str) -> bool:
    path = Path(word)
    return path.suffix not in (".yaml", ".yml") and (path.suffix == ".py" or path.is_file())
