"""The column `scaling` of a table -> the declared scaling, or an axis if rows differ."""

from __future__ import annotations

from collections.abc import Sequence
from typing import get_args

import msgspec

from hpc_train.errors import nearest
from hpc_train.model.expected_study import ExpectedRun
from hpc_train.model.study import Scaling

LABEL = "scaling"
_WORDS: tuple[Scaling, ...] = get_args(Scaling)


def labelled(axes: dict[str, str]) -> dict[str, str]:
    """Return the axes of a row, with a validated scaling.

    Raises:
        ValueError: it is another.
    """
    if LABEL not in axes:
        return axes
    word = axes[LABEL].lower().removesuffix(" scaling")
    if word not in _WORDS:
        near = nearest(word, _WORDS)
        raise ValueError(f"{axes[LABEL]!r} is none{near}; allowed: {', '.join(_WORDS)}, or empty")
    return {**axes, LABEL: word}


def declared(runs: Sequence[ExpectedRun]) -> tuple[list[ExpectedRun], Scaling | None]:
    """Return the scaling that all runs declare; if they declare two, each is a series."""
    said = {run.axes.get(LABEL) for run in runs} - {None}
    if len(said) != 1:
        return list(runs), None
    bare = [{name: v for name, v in run.axes.items() if name != LABEL} for run in runs]
    unlabelled = [
        msgspec.structs.replace(run, axes=axes) for run, axes in zip(runs, bare, strict=True)
    ]
    return unlabelled, said.pop()
