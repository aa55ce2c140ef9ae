"""The class of commands that start a script, whose own options follow after `--`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import click

_ALIKE = 0.75


class JobCommand(click.Command):
    """A command whose error for an unknown option names the place of the script's own options."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the words of the command line.

        Raises:
            click.UsageError: an unknown option, with the command to type.
        """
        # Click empties the list.
        words = list(args)
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as failure:
            script = next((word for word in words if _is_script(word)), None)
            if script is None:
                raise
            raise click.UsageError(self._advice(failure.option_name, words, script), ctx) from None

    def _advice(self, name: str, words: Sequence[str], script: str) -> str:
        import difflib
        import shlex

        known = [name for option in self.params for name in option.opts if name.startswith("--")]
        alike = difflib.get_close_matches(name, known, n=1, cutoff=_ALIKE)
        meant = f" Did you mean {alike[0]!r}?" if alike else ""
        typed = shlex.join(["hpctrain", self.name or "", *_reordered(words, script, known)])
        return f"No such option {name!r}.{meant} Options of {script} follow after --:\n  {typed}"


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
