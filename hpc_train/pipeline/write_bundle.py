"""Report inputs and their report -> one file that can be opened on any machine."""

from __future__ import annotations

import hashlib
import io
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import IO

import msgspec
import zstandard

from hpc_train.atomicfile import new_file
from hpc_train.errors import StoreError
from hpc_train.json_files import cannot_write, to_json
from hpc_train.model.report import Report
from hpc_train.model.report_options import ReportOptions
from hpc_train.pipeline.bundle_members import Make, members, profile_copies
from hpc_train.pipeline.report_gates import reference, with_site_gates
from hpc_train.pipeline.report_inputs import ReportInputs
from hpc_train.runs.bundle_format import ENDING, MANIFEST, PICTURES, SCHEMA, Contents, Member
from hpc_train.secret_leaks import Hidden
from hpc_train.version import VERSION

# Fixed level and one thread, so that the same input gives the same bytes.
_LEVEL = 9


def check_ending(path: Path) -> None:
    """Refuse a name without the extension of a bundle.

    Raises:
        StoreError: the extension is not that of a bundle.
    """
    if not path.name.endswith(ENDING) or path.name == ENDING:
        raise StoreError(f"--bundle {path}: a bundle's name ends in {ENDING}", f"NAME{ENDING}")


def bundle_options(options: ReportOptions) -> ReportOptions:
    """Return the options of a report with everything that a bundle contains."""
    images = tuple(dict.fromkeys((*PICTURES, "inline", *options.images)))
    return msgspec.structs.replace(
        options, images=images, main_figure_only=False, figures=True, details=True, digests=True
    )


def write_bundle(inputs: ReportInputs, report: Report, options: ReportOptions, path: Path) -> None:
    """Pack records, scripts, settings, profile and the report; equal input gives equal bytes.

    The bundle also contains what `options` select: the fields that may differ, the gates of the
    site, and the reference of the regression gate. Secrets are removed: those that the runs name,
    those in the environment of this process, and texts with the form of a secret.

    Raises:
        StoreError: the file cannot be written.
    """
    check_ending(path)
    inputs = _with_gates(inputs, options)
    copies, notes = profile_copies(inputs.own, packed=inputs.packed)
    makers = {**members(inputs, report), **copies}
    try:
        with new_file(path) as file:
            _write(file, makers, Hidden.of(inputs.own), (inputs.study.name, notes))
    except OSError as failure:
        raise cannot_write(path, failure) from None


def _with_gates(inputs: ReportInputs, options: ReportOptions) -> ReportInputs:
    from hpc_train.reports.plain_rows import for_programs, plain_rows

    study = with_site_gates(inputs, options)
    old = reference(study, inputs, options)
    if old is None:
        return msgspec.structs.replace(inputs, study=study, against=(), against_implausible=())
    rows = tuple(map(for_programs, plain_rows(old.runs)))
    return msgspec.structs.replace(
        inputs, study=study, against=rows, against_implausible=old.implausible
    )


def _write(
    file: IO[bytes], makers: Mapping[str, Make], hidden: Hidden, label: tuple[str, tuple[str, ...]]
) -> None:
    packer = zstandard.ZstdCompressor(level=_LEVEL, threads=0)
    packed: dict[str, Member] = {}
    with (
        packer.stream_writer(file, closefd=False) as stream,
        tarfile.open(fileobj=stream, mode="w|", format=tarfile.PAX_FORMAT) as tar,
    ):
        for name in sorted(makers):
            content = hidden.without(name, makers[name]())
            digest = hashlib.sha256(content).hexdigest()
            packed[name] = Member(size=len(content), sha256=digest)
            _add(tar, name, content)
        study, notes = label
        contents = Contents(
            schema=SCHEMA, hpctrain=VERSION, name=study, members=packed, notes=notes
        )
        _add(tar, MANIFEST, to_json(contents))


def _add(tar: tarfile.TarFile, name: str, content: bytes) -> None:
    """Add a file with owner 0 and time 0."""
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = len(content), 0o644
    tar.addfile(entry, io.BytesIO(content))
