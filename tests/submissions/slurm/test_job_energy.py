"""The energy of ended jobs: what a real sacct printed, with energies and without."""

from __future__ import annotations

import pytest

from hpc_train.model.submission import SlurmEndpoint
from hpc_train.submissions.slurm.job_energy import accounted_jobs, parse
from hpc_train.submissions.slurm.squeue import FIELD, epoch
from tests.submissions.slurm.fake_slurm import FakeSlurm, option

# Slurm 22.05.8 with slurmdbd: no plug-in gathers energy, so an array has NO_VAL64, printed as
# nothing, and other jobs have 0; job 5 and its steps have energies, 9 is pending, 8 runs.
PRINTED = """\
1|2026-11-26T17:38:17|2026-11-26T17:38:18|2|0
1.batch|2026-11-26T17:38:17|2026-11-26T17:38:18|1|0
2_1|2026-11-26T17:38:19|2026-11-26T17:38:19|1|
2_1.batch|2026-11-26T17:38:19|2026-11-26T17:38:19|1|0
2_3|2026-11-26T17:38:19|2026-11-26T17:38:19|1|18446744073709551614
5|2026-11-26T17:40:00|2026-11-26T17:50:00|2|612300
5.batch|2026-11-26T17:40:00|2026-11-26T17:50:00|1|306000
5.extern|2026-11-26T17:40:00|2026-11-26T17:50:00|2|612300
5.0|2026-11-26T17:40:01|2026-11-26T17:50:00|2|611800
8|2026-11-26T17:40:00|Unknown|2|0
9_[7,9]|Unknown|Unknown|0|0
"""


def separated(text: str) -> str:
    return text.replace("|", FIELD)


def test_the_energy_is_that_of_the_allocation_and_never_a_sum_of_steps() -> None:
    found = parse(separated(PRINTED))
    assert {job: one.energy_j for job, one in found.items()} == {
        "1": None, "2_1": None, "2_3": None, "5": 612300,
    }  # fmt: skip
    assert (found["5"].start, found["5"].end) == (
        epoch("2026-11-26T17:40:00"), epoch("2026-11-26T17:50:00"),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("nodes", "energy", "known"),
    [
        ("2", "612.3K", 612300),
        # Two nodes for ten minutes, at 200 kW each.
        ("2", "240000000", 2.4e8),
        ("2", "240000001", None),
        ("2", "18446744073709551615", None),
        ("2", "100000000000000000000", None),
        ("", "5", None),
        ("²", "5", None),
    ],
)
def test_an_impossible_energy_is_unknown(nodes: str, energy: str, known: float | None) -> None:
    line = f"5|2026-11-26T17:40:00|2026-11-26T17:50:00|{nodes}|{energy}"
    assert parse(separated(line))["5"].energy_j == known


@pytest.mark.parametrize(
    "line",
    ["", "5", "5|a|b|c|d|e", "5|2026-11-26T17:40:00|2026-11-26T17:50:00|2|much", "x|y|z|1|2"],
)
def test_a_malformed_line_is_left_out(line: str) -> None:
    assert parse(separated(line)) == {}


def test_all_jobs_are_one_question(slurm: FakeSlurm) -> None:
    (slurm.folder / "answer").write_text(separated(PRINTED))
    slurm.on("sacct", f"cat {slurm.folder}/answer; exit")
    found = accounted_jobs(SlurmEndpoint(), ["5", "2_1", "2_3"], "2026-11-26")
    assert found["5"].energy_j == 612300
    (argv,) = slurm.calls("sacct")
    assert (option(argv, "jobs"), option(argv, "starttime")) == ("2,5", "2026-11-25")
    assert {"--allocations", "--noconvert"} < set(argv)


def test_an_answer_that_was_cut_off_is_none(slurm: FakeSlurm) -> None:
    line = separated("5|2026-11-26T17:40:00|2026-11-26T17:50:00|2|6123")
    slurm.on("sacct", f"printf '{line}'; exit 1")
    assert accounted_jobs(SlurmEndpoint(), ["5"], "2026-11-26") == {}


def test_without_accounting_or_sacct_nothing_is_known(
    slurm: FakeSlurm, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert accounted_jobs(SlurmEndpoint(), ["5"], "2026-11-26") == {}
    monkeypatch.setenv("PATH", str(slurm.folder))
    assert accounted_jobs(SlurmEndpoint(), ["5"], "2026-11-26") == {}
    assert accounted_jobs(SlurmEndpoint(), [], "2026-11-26") == {}
