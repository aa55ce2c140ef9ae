"""F17 to F22: how values reach the ranks, and what the head of a script may hold."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from hpc_train.base.errors import HpcTrainError
from hpc_train.scripts.render import render_script
from tests.traps.conftest import Execute
from tests.traps.made import LAUNCHERS, argv, directives, planned, script, small

VALUES = {
    "NCCL_IB_HCA": "=mlx5_0,mlx5_1",
    "http_proxy": "http://proxy:3128",
    "MSG": "hello  'big' \"world\" $HOME `id` \\ é",
    "LINES": "one\ntwo",
}
IMAGE = {"image": "/i/t.sif"}


def dump(name: str) -> str:
    return f'printf "%s" "${name}"'


@pytest.mark.parametrize("name", VALUES)
def test_f17_f19_a_value_arrives_as_it_was_written(
    execute: Execute, tmp_path: Path, name: str
) -> None:
    plan = small(dump(name), env=VALUES)
    # What the shell of the submission has does not win.
    done = execute(plan, tmp_path, **dict.fromkeys(VALUES, "outer"))
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "logs" / "rank-1.out").read_text() == VALUES[name]


@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_f17_nothing_is_passed_by_srun_export(launcher: str) -> None:
    assert "--export=" not in argv(launcher, env=VALUES)


def test_f18_ranks_keep_their_environment(execute: Execute, tmp_path: Path) -> None:
    code = 'echo "$SLURM_EXPORT_ENV"'
    done = execute(small(code), tmp_path, SLURM_EXPORT_ENV="NONE")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "logs" / "rank-0.out").read_text() == "ALL\n"
    for launcher in LAUNCHERS:
        before, start, _ = script(launcher).partition('\nhpctrain_start "')
        assert start
        assert "\nsrun" not in before


@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_f20_the_head_comes_first_and_holds_no_variable(launcher: str) -> None:
    text = script(launcher, setup=["set -x", "#SBATCH --qos=late"], modules=["cuda"], **QUEUE)
    head = directives(text)[:-1]
    lines = text.splitlines()
    assert lines[1 : 1 + len(head)] == head
    assert directives(text)[-1] == "#SBATCH --qos=late"
    assert "#SBATCH --qos=high" in head
    assert not [line for line in head if "$" in line]


QUEUE = {"account": "abc", "qos": "high", "partition": "p"}


@pytest.mark.parametrize("value", ["$USER", "a b", "x\n#SBATCH --exclusive"])
def test_f20_a_variable_in_a_directive_is_refused(value: str) -> None:
    with pytest.raises(HpcTrainError, match=r"as an #SBATCH value|One word, no blanks"):
        planned(account=value)


@pytest.mark.usefixtures("execute")
def test_f21_the_copy_that_slurm_runs_finds_everything(tmp_path: Path) -> None:
    """As slurmd does: a copy elsewhere, in the folder of the submission."""
    spool, folder, run = (tmp_path / name for name in ("spool", "project", "run"))
    for path in (spool, folder, run):
        path.mkdir()
    (folder / "train.sh").write_text("echo here >here\n")
    copy = spool / "slurm_script"
    made = render_script(small(". ./train.sh"))
    copy.write_text(made.text)
    for name, text in made.beside:
        (run / name).write_text(text)
    done = subprocess.run(
        ["bash", str(copy), str(run)],
        cwd=folder,
        env={"PATH": f"{tmp_path / 'bin'}:/usr/bin:/bin", "SLURM_JOB_NODELIST": "localhost"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert (folder / "here").exists()
    assert (run / "status.json").exists()
    assert [path.name for path in spool.iterdir()] == ["slurm_script"]


@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_f21_no_script_asks_where_it_lies(launcher: str) -> None:
    text = script(launcher)
    assert text.count("$0") + text.count("${0") + text.count("BASH_SOURCE") == 0


def test_f22_an_image_does_not_win_over_the_job() -> None:
    names = "MASTER_ADDR,MASTER_PORT,HPCTRAIN_RUN,HPCTRAIN_LOG_DIR,HPCTRAIN_FAILURE_FILE"
    boxed: dict[str, Any] = {"container": IMAGE, "env": {"NCCL_DEBUG": "WARN"}}
    given = argv(site={"containers": {"runtime": "pyxis"}}, **boxed)
    (option,) = [word for word in given.split() if word.startswith("--container-env=")]
    assert option.startswith(f"--container-env={names},")
    assert "NCCL_DEBUG" in option.split(",")
    text = script(site={"containers": {"runtime": "apptainer"}}, **boxed)
    loop = text.partition("for name in RANK ")[2].partition("; do")[0]
    assert {"LOCAL_RANK", "MASTER_PORT", "NCCL_DEBUG"} <= set(loop.split())
    assert "export APPTAINERENV_$name=" in text
