"""One log -> all that the product states of it, by the ways that users have."""

import functools
from pathlib import Path
from typing import Any

import pandas as pd

import hpc_train
from hpc_train.base.errors import LogParseError
from hpc_train.diagnosis.diagnose_runs import Diagnosed, diagnose
from hpc_train.diagnosis.diagnosis import LogFinding
from hpc_train.foreign.parquet import records_frame
from hpc_train.jobs.log_selection import Search
from hpc_train.logs.formats.base import Hit
from hpc_train.logs.formats.mlperf import Mlperf
from hpc_train.logs.line import dispatch
from hpc_train.logs.log_file import open_log
from hpc_train.reports.report_inputs import report_inputs
from hpc_train.runs.conditions import Transport
from hpc_train.scaling.runs import run_frame

NOWHERE = Path("/nowhere")


def mlperf_run(path: Path) -> dict[str, Any]:
    """Return the words and the first values of the log of a run."""
    parser, found = Mlperf(), dict[str, float]()
    parser.literals = (b":::MLLOG", b":::SYSJSON")
    with open_log(path) as stream:
        for line, _ in dispatch(stream, [parser]):
            for hit in parser.read(line):
                if isinstance(hit, Hit):
                    found.setdefault(hit.metric, hit.value)
    words = {word.removeprefix("submission_"): said for word, said in parser.words.items()}
    return {"status": parser.status or "failed", **words, **found}


class Stated:
    """What is known of one log; each part is worked out when it is asked for."""

    def __init__(self, path: Path, form: str) -> None:
        self.path = path
        self.form = form

    @functools.cached_property
    def records(self) -> pd.DataFrame:
        """Return its records; none where no line of it is a measurement."""
        try:
            return hpc_train.collect(self.path)
        except LogParseError as error:
            assert "no line of a known format" in str(error)
            return records_frame([])

    @functools.cached_property
    def diagnosed(self) -> Diagnosed:
        """Return what `hpctrain diagnose` says."""
        return diagnose([str(self.path)], NOWHERE)[0]

    @functools.cached_property
    def mlperf(self) -> dict[str, Any]:
        """Return what an MLPerf run says of itself in words."""
        return mlperf_run(self.path)

    @functools.cached_property
    def row(self) -> dict[str, Any]:
        """Return the log's row in the table of runs, of which `hpctrain report` is made."""
        # The tags of ranks are a lower bound of their number: a person states it.
        labels = self.records["rank"].max() if self.form == "srun_label_custom" else pd.NA
        sizes = {} if pd.isna(labels) else {"ranks": (int(labels) + 1,)}
        found = report_inputs([str(self.path)], Search(root=NOWHERE, sizes=sizes))
        table = run_frame(found.study, found.records)
        return {str(name): cell for name, cell in table.iloc[0].items()}

    @property
    def transport(self) -> Transport:
        """Return what NCCL used."""
        assert self.diagnosed.transport is not None
        return self.diagnosed.transport

    @property
    def root(self) -> LogFinding:
        """Return the root cause."""
        root = self.diagnosed.diagnosis.root
        assert root is not None
        return root

    @property
    def root_texts(self) -> str:
        """Return the lines that are the evidence of the root cause."""
        return "\n".join(report_inputs.text for report_inputs in self.root.evidence)

    def rows(self, metric: str, variant: str = "", **wanted: object) -> pd.DataFrame:
        """Return the records of a metric, in the order of the log."""
        frame = self.records
        chosen = (frame["metric"] == metric) & (frame["variant"] == variant)
        for name, value in wanted.items():
            chosen &= frame[name] == value
        found: pd.DataFrame = frame[chosen]
        return found

    def values(self, metric: str, variant: str = "", **wanted: object) -> list[float]:
        """Return the values of a metric, in the order of the log."""
        return [float(value) for value in self.rows(metric, variant, **wanted)["value"]]


@functools.cache
def stated(path: Path, form: str) -> Stated:
    """Return what is known of one log."""
    return Stated(path, form)
