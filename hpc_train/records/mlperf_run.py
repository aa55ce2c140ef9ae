"""A log of an MLPerf run -> its benchmark, submitter, status and other metadata."""

from __future__ import annotations

from pathlib import Path

import msgspec

from hpc_train.errors import LogParseError
from hpc_train.model.value import Value
from hpc_train.records.line_dispatch import dispatch
from hpc_train.records.log_file import open_log
from hpc_train.records.parsers.mlperf import Mlperf
from hpc_train.records.parsing.log_parser import Hit
from hpc_train.regularfile import read_regular


class MlperfRun(Value, frozen=True, kw_only=True):
    """One run; `status` is that of `run_stop` (`success`), or `failed` without that event."""

    benchmark: str
    platform: str
    status: str
    time_to_train_s: float | None
    global_batch_size: int | None


def mlperf_run(path: Path) -> MlperfRun:
    """Read the log of one run.

    Raises:
        LogParseError: the log cannot be read.
    """
    parser, found = Mlperf(), dict[str, float]()
    with open_log(path) as stream:
        for line, _ in dispatch(stream, [parser]):
            for hit in parser.read(line):
                if isinstance(hit, Hit):
                    found.setdefault(hit.metric, hit.value)
    batch = found.get("global_batch_size")
    return MlperfRun(
        benchmark=parser.words.get("submission_benchmark", ""),
        platform=parser.words.get("submission_platform", ""),
        status=parser.status or "failed",
        time_to_train_s=found.get("time_to_train"),
        global_batch_size=None if batch is None else int(batch),
    )


class _Scaling(msgspec.Struct):
    scaling_factor: float


def scaling_factor(folder: Path) -> float:
    """Return the factor for the score of the results in a folder: 1 without scaling.json.

    Raises:
        LogParseError: the file cannot be read, or states no positive factor.
    """
    path = folder / "scaling.json"
    if not path.exists():
        return 1.0
    try:
        factor = msgspec.json.decode(read_regular(path), type=_Scaling).scaling_factor
    except (OSError, msgspec.DecodeError, UnicodeDecodeError) as error:
        raise LogParseError(f"{path}: cannot be read: {error}") from error
    if factor <= 0:
        raise LogParseError(f"{path}: scaling_factor is {factor:g}; it must be above 0")
    return factor
