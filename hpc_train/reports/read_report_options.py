"""Options `--target`, `--width` and `--exclude` of a report -> values."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from hpc_train.base.decode import decode
from hpc_train.base.errors import ReportError, nearest
from hpc_train.base.yamlfile import read
from hpc_train.runs.expected_runs import EXCLUDED, ExpectedStudy
from hpc_train.scaling.report_options import Paper, Target

_HINT = "--target accuracy=0.93, or --target loss=0.2"


def target_of(text: str | None) -> Target | None:
    """Return the target of `accuracy=0.93` or `loss=0.2`; None without one.

    Raises:
        ReportError: another metric, or an invalid value.
    """
    if text is None:
        return None
    name, _, number = text.partition("=")
    try:
        value = float(number)
    except ValueError:
        value = math.nan
    if name == "loss" and math.isfinite(value):
        return Target(metric="loss", value=value)
    if name == "accuracy" and 0 < value <= 1:
        return Target(metric="accuracy", value=value)
    wrong = "neither loss=NUMBER nor accuracy=FRACTION, above 0 and at most 1"
    near = nearest(name, ("accuracy", "loss")) if name not in ("accuracy", "loss") else ""
    near = f"; did you mean {value / 100:g}?" if name == "accuracy" and 1 < value <= 100 else near
    raise ReportError(f"--target {text}: {wrong}{near}", _HINT)


_LENGTH = re.compile(r"([0-9]{1,5}(?:\.[0-9]{1,5})?) ?([a-z]{1,9})?")
# Inches.
UNITS = {"in": 1.0, "cm": 1 / 2.54, "mm": 1 / 25.4, "pt": 1 / 72}
NARROWEST, WIDEST = 2.0, 20.0


def paper_of(width: str | None, *, title: bool) -> Paper:
    """Return the paper of `3.3in`, with a title or not; None is a screen.

    Raises:
        ReportError: no length, or a width that no figure can have.
    """
    if width is None:
        return Paper(title=title)
    found = _LENGTH.fullmatch(width.strip())
    inches = float(found[1]) * UNITS.get(found[2], 0) if found else 0
    if not NARROWEST <= inches <= WIDEST:
        raise ReportError(
            f"--width {width}: not a length of 2in to 20in, as 3.3in, 8.4cm, 84mm or 240pt",
            "--width 3.3in, the column of many journals",
        )
    return Paper(width=inches, title=title)


FILE = "exclude.yaml"


def exclusions(words: Sequence[str]) -> dict[str, str]:
    """Return run -> reason from words like `1-srun-r2=node 3 was down`.

    Raises:
        ReportError: a run or a reason is missing.
    """
    found = {}
    for word in words:
        run, _, reason = word.partition("=")
        if not run or not reason.strip():
            raise ReportError(
                f"--exclude {word!r}: a run and a reason are needed",
                "--exclude 'RUN=reason'",
            )
        found[run] = reason.strip()
    return found


def without(study: ExpectedStudy, excluded: Mapping[str, str], home: Path | None) -> ExpectedStudy:
    """Return the study with the excluded runs marked, with their reasons.

    `home` is a study's folder, which may hold `exclude.yaml`: run -> reason.

    Raises:
        ReportError: no such run, or no reason.
    """
    kept = _kept(home / FILE) if home is not None else {}
    wanted = {**kept, **{run: ("--exclude", reason) for run, reason in excluded.items()}}
    if not wanted:
        return study
    known = [run.run_id for run in study.runs]
    for run in wanted.keys() - set(known):
        raise ReportError(
            f"{wanted[run][0]}: no run is called {run!r}{nearest(run, known)}",
            f"there are: {', '.join(known[:8])}{', …' if len(known) > 8 else ''}",
        )
    runs = tuple(
        msgspec.structs.replace(run, state=EXCLUDED, problem=wanted[run.run_id][1])
        if run.run_id in wanted
        else run
        for run in study.runs
    )
    return msgspec.structs.replace(study, runs=runs)


def _kept(path: Path) -> dict[str, tuple[str, str]]:
    """Return run -> place and reason from a file; empty if there is no file."""
    if not path.is_file():
        return {}
    document = read(path, ReportError)
    reasons = decode(document.data, dict[str, str], document.origins, ReportError).value
    for run, reason in reasons.items():
        if not reason.strip():
            raise ReportError(f"{document.origins[run]}: {run}: a reason is needed", "run: reason")
    return {run: (document.origins[run], reason.strip()) for run, reason in reasons.items()}
