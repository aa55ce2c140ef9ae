"""The work after an error: the amount of log up to the third last line of work."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpc_train.records.diagnosis.scan_logs import look_again


@pytest.mark.parametrize(
    ("before", "after", "amount"),
    [
        ([], ["loss 2.5", "saving", "loss 2.4", "loss 2.3"], 9),
        ([], ["loss 2.6", "loss 2.5", "saving", "loss 2.4", "loss 2.3"], 18),
        # A line or two of work may be what a buffer held.
        (["loss 2.6", "loss 2.5"], ["loss 2.4"], None),
        (["loss 2.6"], ["loss 2.5", "loss 2.4"], None),
        ([], ["loss 2.5", "loss 2.4"], None),
    ],
)
def test_three_lines_of_work_are_needed_and_the_first_of_them_counts(
    tmp_path: Path, before: list[str], after: list[str], amount: int | None
) -> None:
    path, line = tmp_path / "job.out", len(before) + 1
    path.write_text("\n".join([*before, "Error: x", *after]) + "\n")
    assert look_again(path, [line]).work_after == ({} if amount is None else {line: amount})
