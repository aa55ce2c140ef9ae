"""Completion of a shell for arguments and options that name a site, a run or a format."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hpc_train.base.errors import HpcTrainError
from hpc_train.base.registry import names

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


def sites(_: click.Context, __: click.Parameter, begun: str) -> list[CompletionItem]:
    """Return the profiles that begin so, and the files."""
    from hpc_train.sites.search import profile_files

    return _items([path.stem for path in profile_files()], begun, files="*.yaml")


def runs(context: click.Context, _: click.Parameter, begun: str) -> list[CompletionItem]:
    """Return the studies, jobs and runs that begin so."""
    return _items(_names(context), begun)


def runs_or_files(context: click.Context, _: click.Parameter, begun: str) -> list[CompletionItem]:
    """Return the studies, jobs, runs and files that begin so."""
    return _items(_names(context), begun, files="*")


def launchers(_: click.Context, __: click.Parameter, begun: str) -> list[CompletionItem]:
    """Return the launchers that begin so."""
    return _items(sorted(names("launchers")), begun)


def _names(context: click.Context) -> Iterator[str]:
    """Yield the names of all jobs and studies, and of their runs."""
    from hpc_train.runs.json_files import default_results
    from hpc_train.runs.run_folders import homes, run_folders

    given: Any = context.params.get("results")
    # A shell that waits for words cannot show an error.
    with suppress(HpcTrainError, OSError):
        for home in homes(Path(given) if given else default_results()):
            yield home.name
            yield from (run.run_id for run in run_folders(home))


def _items(words: Iterable[str], begun: str, files: str = "") -> list[CompletionItem]:
    from click.shell_completion import CompletionItem

    found = [CompletionItem(word) for word in words if word.startswith(begun)]
    # With type `file` a shell would complete files only, and drop the words.
    return found + [CompletionItem(path) for path in _paths(begun, files)] if files else found


def _paths(begun: str, files: str) -> Iterator[str]:
    """Yield the files and folders that begin so; a folder ends with a slash."""
    head, slash, tail = begun.rpartition("/")
    with suppress(OSError):
        for path in sorted(Path(f"{head}{slash}" or ".").iterdir()):
            hidden = path.name.startswith(".") and not tail
            if path.name.startswith(tail) and not hidden:
                if path.is_dir():
                    yield f"{head}{slash}{path.name}/"
                elif path.match(files):
                    yield f"{head}{slash}{path.name}"
