"""Report inputs and their report -> the files of a bundle, by name; generated when written."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

import msgspec

from hpc_train.json_files import to_json
from hpc_train.model.expected_study import EXCLUDED
from hpc_train.model.record import Record
from hpc_train.model.report import Report
from hpc_train.model.run import PROFILE, PROFILE_DIGEST, Run
from hpc_train.model.transport import Transport
from hpc_train.pipeline import log_digests, run_details
from hpc_train.pipeline.report_inputs import ReportInputs
from hpc_train.pipeline.report_provenance import file_lines
from hpc_train.pipeline.run_topologies import stored_topologies
from hpc_train.pipeline.write_report import render_report
from hpc_train.registry import names
from hpc_train.regularfile import is_regular, sha256_of
from hpc_train.runs.bundle_format import EVIDENCE, PICTURES, RECORDS, StoredResults, StoredState
from hpc_train.runs.run_folders import STUDY_FILE

Make = Callable[[], bytes]
_REPORTS = {"html": "html", "markdown": "md", "json": "json", "csv": "csv"}
_TABLES = (".csv", ".jsonl", ".parquet", ".yaml", ".yml")
_UNUSUAL, _LONGEST = re.compile(r"[^\w.+-]"), 100


def members(inputs: ReportInputs, report: Report) -> dict[str, Make]:
    """Return all files but the manifest and the profiles."""
    records: dict[str, list[Record]] = defaultdict(list)
    own = {run.folder.run_id for run in inputs.own}
    for record in inputs.records.records():
        records[record.run if record.run in own else ""].append(record)
    makers: dict[str, Make] = {EVIDENCE: partial(_evidence, inputs, own)}
    for run in inputs.own:
        name = run.folder.run_id
        of_run = _run_files(run, inputs.transports.get(name), records.get(name, []))
        makers |= {f"{name}/{file}": make for file, make in of_run}
    if records.get(""):
        makers[RECORDS] = partial(_lines, records[""])
    study = inputs.own[0].folder.path.parent / STUDY_FILE if inputs.own else None
    if study is not None and is_regular(study):
        makers[STUDY_FILE] = study.read_bytes
    return {**makers, **dict(_user_files(inputs)), **dict(_reports(report))}


def _run_files(
    run: Run, transport: Transport | None, records: Sequence[Record]
) -> Iterator[tuple[str, Make]]:
    folder = run.folder
    for path in (
        folder.manifest, folder.script, folder.submission, folder.status, folder.restarts,
        folder.cut_off, folder.switches, *stored_topologies(folder),
    ):  # fmt: skip
        if is_regular(path):
            yield path.relative_to(folder.path).as_posix(), path.read_bytes
    if records:
        yield folder.records.name, partial(_lines, records)
    if transport is not None:
        yield folder.transport.name, partial(to_json, transport)
    diagnosis, logs = run_details.diagnosis_text(run), log_digests.Digests().of_run(run)
    if diagnosis:
        yield run_details.FILE, diagnosis.encode
    if logs:
        yield log_digests.FILE, partial(to_json, logs)


def _evidence(inputs: ReportInputs, own: set[str]) -> bytes:
    results = StoredResults(
        study=msgspec.structs.replace(inputs.study, runs=tuple(inputs.study.runs)),
        warnings=inputs.warnings,
        unreadable=inputs.unreadable,
        runs=tuple(
            StoredState(
                run_id=run.folder.run_id,
                state=run.state,
                problem=run.problem,
                job_report=run.job_report,
            )
            for run in inputs.own
        ),
        transports={
            name: transport for name, transport in inputs.transports.items() if name not in own
        },
        logs=tuple(file_lines(inputs, log_digests.Digests())),
        against=inputs.against,
        against_implausible=inputs.against_implausible,
    )
    return to_json(results)


def _lines(records: Sequence[Record]) -> bytes:
    return b"".join(msgspec.json.encode(record) + b"\n" for record in records)


def _user_files(inputs: ReportInputs) -> Iterator[tuple[str, Make]]:
    """Yield the user's files: sizes, exclusions, tables."""
    runs = inputs.study.runs
    excluded = {run.run_id: run.problem for run in runs if run.state == EXCLUDED}
    sizes = {run.run_id: run.sizes for run in runs if run.sizes}
    for name, content in (("exclude.yaml", excluded), ("points.yaml", sizes)):
        if content:
            yield name, partial(_yaml, content)
    for number, path in enumerate(path for path in inputs.files if _is_table(path)):
        # Any name that the reader accepts.
        name = _UNUSUAL.sub("_", path.name)[-_LONGEST:]
        yield f"sources/{number}-{name}", path.read_bytes


def _is_table(path: Path) -> bool:
    return path.suffix in _TABLES and is_regular(path)


def _yaml(content: Mapping[str, object]) -> bytes:
    """Return JSON, which is valid YAML."""
    return (json.dumps(content, indent=1, ensure_ascii=False) + "\n").encode()


def _reports(report: Report) -> Iterator[tuple[str, Make]]:
    known = names("formats")
    for form, ending in _REPORTS.items():
        if form in known:
            yield f"report.{ending}", partial(_rendered, report, form)
    for figure in report.figures:
        for form in PICTURES:
            if form in figure.images:
                yield f"{figure.name}.{form}", partial(bytes, figure.images[form])


def _rendered(report: Report, form: str) -> bytes:
    return render_report(report, form).encode()


_DIGITS = 12
_NO_DIGIT = re.compile("[^0-9a-f]")


def profile_copies(
    runs: Sequence[Run], *, packed: bool = False
) -> tuple[dict[str, Callable[[], bytes]], tuple[str, ...]]:
    """Return the profiles to pack, by name, and a note for each that cannot be packed.

    For runs from a bundle, only profiles in that bundle are packed: a path in a foreign bundle must
    not cause a local file to be packed.
    """
    copies: dict[str, Callable[[], bytes]] = {}
    notes: list[str] = []
    for path, digest in _profiles(runs):
        digits = _NO_DIGIT.sub("", digest)[:_DIGITS]
        name = f"profiles/{digits}/{path.name}" if digits else f"profiles/{path.name}"
        packed_copy = runs[0].folder.path.parent / name
        if packed_copy.is_file():
            copies[name] = packed_copy.read_bytes
        elif packed or not path.is_file():
            notes.append(f"the profile {path.name} does not exist")
        elif digest and sha256_of(path) != digest:
            notes.append(f"the profile {path.name} was changed after the runs were submitted")
        else:
            copies[name] = path.read_bytes
    return copies, tuple(notes)


def _profiles(runs: Sequence[Run]) -> Iterator[tuple[Path, str]]:
    provenances = [run.manifest.provenance for run in runs if run.manifest]
    named = {
        (str(s[PROFILE]), str(s.get(PROFILE_DIGEST, ""))) for s in provenances if s.get(PROFILE)
    }
    yield from ((Path(name), digest) for name, digest in sorted(named))
