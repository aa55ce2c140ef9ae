"""Published tables through the command line: `hpctrain report table.csv -f json`."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from tests.tables.published_tables import PUBLISHED, half_unit, path_of

SOME = ("book", "nvidia_bert_tf32_s512", "dlperf_bert_amp", "mpt_1b_a100", "athena")


def report(name: str) -> list[dict[str, Any]]:
    done = subprocess.run(
        [sys.executable, "-m", "hpc_train", "report", str(path_of(name)), "-f", "json"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    rows: list[dict[str, Any]] = json.loads(done.stdout)["rows"]
    return rows


@pytest.mark.parametrize("name", SOME)
def test_a_published_table_by_one_command(name: str) -> None:
    rows = report(name)
    published = PUBLISHED[name]
    assert [row["speedup"]["low"] for row in rows] == [None] * len(rows)
    for row, printed in zip(rows, published.speedups, strict=bool(published.speedups)):
        assert abs(row["speedup"]["value"] - printed) <= (0.02 if published.late else 0.0051)
    for row, percent in zip(rows, published.percents, strict=bool(published.percents)):
        assert abs(100 * row["efficiency"]["value"] - percent) <= half_unit(str(percent)) + 1e-9


def test_times_to_train_have_columns_of_their_own() -> None:
    rows = report("mlperf_gpt3")
    assert {row["regime"] for row in rows} == {"mixed"}
    assert rows[-1]["speedup"] is None
    assert rows[-1]["time_to_train_speedup"]["value"] == pytest.approx(14.865, abs=0.0006)
    assert rows[-1]["time_to_train_efficiency"]["value"] == pytest.approx(0.708, abs=0.0006)
