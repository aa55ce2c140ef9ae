"""Runs -> details for the page: end, settings, script, diagnosis."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import msgspec

from hpc_train.base.errors import LogParseError
from hpc_train.base.files import is_folder, read_regular
from hpc_train.base.value import encode_unit
from hpc_train.diagnosis.diagnose_runs import FAILED, diagnosis_of
from hpc_train.diagnosis.diagnosis import Diagnosis
from hpc_train.reports.report import RunDetail
from hpc_train.reports.report_inputs import ReportInputs
from hpc_train.runs.expected_runs import ExpectedRun
from hpc_train.runs.run import Manifest, Run

_LINES = 3


def details(inputs: ReportInputs) -> tuple[tuple[RunDetail, ...], dict[str, str]]:
    """Return the details of each run, and the text of each script by its digest."""
    own = {run.folder.run_id: run for run in inputs.own}
    scripts: dict[str, str] = {}
    return tuple(_detail(run, own.get(run.run_id), scripts) for run in inputs.study.runs), scripts


def _diagnosis_text(run: Run) -> str:
    """Return a short diagnosis of a failed run; empty if it did not fail or has no logs.

    The result contains text of logs and must be escaped.
    """
    if run.state not in FAILED or not is_folder(run.folder.logs):
        return ""
    try:
        return "".join(f"{line}\n" for line in _lines(diagnosis_of(run)))
    except LogParseError as failure:
        return f"{failure.message}\n"


def _detail(expected: ExpectedRun, run: Run | None, scripts: dict[str, str]) -> RunDetail:
    manifest = run.manifest if run else None
    return RunDetail(
        run_id=expected.run_id,
        state=expected.state,
        problem=expected.problem,
        script=_script(run, manifest, scripts) if run and manifest else "",
        settings=tuple(_settings(manifest)) if manifest else (),
        diagnosis=_diagnosis_text(run) if run else "",
    )


def _script(run: Run, manifest: Manifest, scripts: dict[str, str]) -> str:
    """Return the digest of a run's script; repetitions share one, which is read once."""
    digest = manifest.script_digest
    if digest not in scripts:
        try:
            scripts[digest] = read_regular(run.folder.script).decode(errors="replace")
        except OSError:
            return ""
    return digest


def _settings(manifest: Manifest) -> Iterator[tuple[str, str, str]]:
    for name, setting in manifest.plan.settings.items():
        yield name, _text(setting.value), setting.origin


def _text(value: Any) -> str:
    if value is None or isinstance(value, str):
        return value or "--"
    plain = msgspec.to_builtins(value, enc_hook=encode_unit)
    return plain if isinstance(plain, str) else json.dumps(plain, ensure_ascii=False)


def _lines(diagnosis: Diagnosis) -> Iterator[str]:
    yield f"{diagnosis.outcome}: {diagnosis.why}"
    for finding in (one for one in diagnosis.findings if one.severity != "benign"):
        yield f"{finding.role}: {finding.title} [{finding.id}]"
        for one in finding.evidence[:_LINES]:
            yield f"  {one.source}:{one.line}  {one.text}" if one.line else f"  {one.source}"
        if finding.role == "root":
            yield f"  do: {finding.advice}"
    if diagnosis.last_lines:
        yield f"last lines of {diagnosis.last_lines[0].source}:"
        yield from (f"  {one.line}  {one.text}" for one in diagnosis.last_lines)
