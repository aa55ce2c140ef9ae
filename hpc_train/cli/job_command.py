"""Commands with a script: a command line of another launcher, an option of sbatch or the script."""

import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from hpc_train.submissions.typed_command import in_our_words

_ALIKE = 0.75
# Long options of sbatch that programs have as well.
_OF_PROGRAMS = "output error input batch profile comment extra verbose version quiet wait".split()
# Options that read the lines of a run.
_OF_REPORT = ("--pattern", "--scope", "--parser", "--rates")


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
            click.echo(f"hpctrain: taken as: {self._typed(args)}", err=True)
        # Click empties the list.
        words = list(args)
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as failure:
            script = next((word for word in words if _is_script(word)), "")
            if advice := self._advice(failure.option_name, words, script, known):
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

    def _typed(self, words: Sequence[str]) -> str:
        return shlex.join(["hpctrain", self.name or "", *words])

    def _advice(self, name: str, words: Sequence[str], script: str, known: Sequence[str]) -> str:
        """Return what to type instead of an unknown option; empty if click's answer is better."""
        import difflib

        scheduler, is_certain = _of_sbatch(name, words, known)
        long = [one for one in known if one.startswith("--")]
        alike = difflib.get_close_matches(name, long, n=1, cutoff=_ALIKE)
        ran = f"; it is one of hpctrain report, once {script or 'the script'} has run"
        report = ran if name in _OF_REPORT else ""
        answer = scheduler or f"No such option {name!r}{report}."
        if alike and not scheduler and not report:
            answer += f" Did you mean {alike[0]!r}?"
        if not script or is_certain:
            return answer if scheduler else ""
        typed = self._typed([*_reordered(words, script, known)])
        return f"{answer} Options of {script} follow after --:\n  {typed}"


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


def _reordered(words: Sequence[str], script: str, known: Sequence[str]) -> Iterator[str]:
    """Yield the words with `--` before the options of the script, which are the unknown ones."""
    given = list(words)
    own = given[given.index("--") + 1 :] if "--" in given else []
    moved, is_moved = [], False
    for word in given[: given.index("--")] if "--" in given else given:
        if word.startswith("-"):
            is_moved = word.partition("=")[0] not in known
        if is_moved and word != script:
            moved.append(word)
        else:
            yield word
    yield from ("--", *moved, *own)
