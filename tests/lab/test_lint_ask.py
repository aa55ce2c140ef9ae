"""`hpctrain lint --ask` on a real Slurm: accepted scripts, and each kind of refusal."""

import json
import os
from pathlib import Path

import pytest

from hpc_train.lab.state_file import Lab
from tests.end_to_end.user import commands
from tests.lab.conftest import Slurm

pytestmark = [pytest.mark.slurm]
UNKNOWN_OPTION = "sbatch of this cluster has no such option"
# Directives of a script -> the line of the refusal, and what is said of it.
REFUSED = [
    ("-N 1; --partition=gpuu", 3, "partitions: gpu, long; did you mean 'gpu'?"),
    ("--nodes=9; --time=5", 2, "gpu allows at most 4 nodes"),
    ("--nodes=1; --time=2:00:00", 3, "gpu allows at most 01:00:00"),
    ("--mem=1G; --gres=fpga:1", 3, "the nodes of gpu have gpu:a100:4"),
    ("--mem=1G; --gres=gpu:h100:1", 3, "the nodes of gpu have gpu:a100:4"),
    ("--gres=gpu:2; --mem=64G", 3, "the nodes of gpu have at most 4000M"),
    ("--time=5; --constraint=fast", 3, "the nodes of gpu have no features"),
    ("--time=5; --distribution=odd", 3, "sbatch cannot read the value"),
    ("--time=5; --ntasks=900", 3, "32 cores together"),
    ("--cpus-per-task=4; --nodes=9", 3, "gpu allows at most 4 nodes"),
    ("--nodes=2; --gpus=1", 3, "request GPUs for each node with --gpus-per-node"),
    ("--nodes=2; --gpus-per-node=1.5", 3, "write a whole number"),
]


def rows(*words: str, **variables: str) -> tuple[int, list[dict[str, object]]]:
    """Return the exit code and the findings on the answer of Slurm."""
    done = commands().run(("lint", "--ask", "--json", *words), {**os.environ, **variables})
    found = json.loads(done.stdout)["findings"]
    return done.returncode, [row for row in found if row["id"].startswith("HT8")]


def script(folder: Path, directives: str, name: str = "job.sbatch") -> str:
    """Write a script; return its path."""
    lines = "".join(f"#SBATCH {line}\n" for line in directives.split("; ") if line)
    (folder / name).write_text(f"#!/bin/bash\n{lines}srun hostname\n")
    return str(folder / name)


@pytest.mark.parametrize(("directives", "line", "said"), REFUSED)
def test_a_refusal_is_explained(
    lab: Lab, tmp_path: Path, directives: str, line: int, said: str
) -> None:
    code, (row,) = rows(script(tmp_path, directives), "--select", "HT8")
    assert (row["id"], row["line"], row["severity"], code) == ("HT801", line, "error", 1)
    assert said in str(row["advice"])


def test_an_unknown_option_is_reported_once(lab: Lab, tmp_path: Path) -> None:
    code, found = rows(script(tmp_path, "--time=5; -Y2"))
    assert (code, found) == (1, [])
    _, (row,) = rows(script(tmp_path, "--time=5; -Y2"), "--select", "HT8")
    assert row["line"] == 3
    assert UNKNOWN_OPTION in str(row["advice"])


def test_files_are_accepted_and_nothing_is_submitted(
    lab: Lab, slurm: Slurm, tmp_path: Path
) -> None:
    files = [script(tmp_path, "--nodes=2; --gres=gpu:4; --time=5", name) for name in ("a", "b")]
    before = slurm("squeue", "--noheader", "--states=all", "--format=%i")
    outer = {"SLURM_JOB_ID": "1", "SLURM_NNODES": "99", "SBATCH_PARTITION": "long"}
    code, found = rows(*files, **outer)
    assert code == 0
    accepted = [str(row["message"]) for row in found if row["id"] == "HT802"]
    assert len(accepted) == 2
    assert all("on nodes lab[1-2] in partition long" in message for message in accepted)
    assert {row["severity"] for row in found} == {"info"}
    assert slurm("squeue", "--noheader", "--states=all", "--format=%i") == before


def test_slurm_that_does_not_answer_is_said(lab: Lab, tmp_path: Path) -> None:
    conf = tmp_path / "slurm.conf"
    text = Path(lab.settings.folder, "slurm.conf").read_text()
    conf.write_text(text.replace("SlurmctldPort=16817", "SlurmctldPort=16999\nMessageTimeout=2"))
    code, (row,) = rows(script(tmp_path, "--time=5"), SLURM_CONF=str(conf))
    assert (row["id"], row["severity"], code) == ("HT803", "info", 0)


def test_an_account_that_is_not_ours(accounting_lab: Lab, tmp_path: Path) -> None:
    for option, said in (
        ("--account=reserch", "your accounts: research, root; did you mean 'research'?"),
        ("--qos=hihg", "did you mean 'high'?"),
    ):
        code, (row,) = rows(script(tmp_path, f"--time=5; {option}"))
        assert (row["id"], row["line"], code) == ("HT801", 3, 1)
        assert said in str(row["advice"])
