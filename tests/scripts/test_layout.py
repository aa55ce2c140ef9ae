"""A script is what an administrator would write; its runtime is static, and defines only."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from hpc_train.base.data_folders import data_file, template_folder
from hpc_train.plans.plan import LaunchPlan
from hpc_train.scripts.render import render_script
from tests.scripts.job_starts import save

Plans = Callable[..., LaunchPlan]
Execute = Callable[..., subprocess.CompletedProcess[str]]
SMALL = {"tasks_per_node": 1, "cpus_per_task": 1}


def small(plan: Plans, *command: str, **keys: object) -> LaunchPlan:
    return plan("slurm-generic", launcher="srun", command=command, resources=SMALL, **keys)


def log(folder: Path) -> str:
    return (folder / "logs" / "rank-0.out").read_text()


RUNTIME = template_folder() / "runtime.sh"


def test_the_runtime_only_defines(tmp_path: Path) -> None:
    """It has no output, no file and no export, and its functions have names of their own."""
    state = '"$(set -o; trap; export -p)"'
    code = f'before={state}\n. {RUNTIME}\n[ "$before" = {state} ] && declare -F'
    done = subprocess.run(["bash", "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    names = [line.split()[-1] for line in done.stdout.splitlines()]
    assert len(names) >= 20
    assert {name for name in names if not name.startswith("hpctrain_")} == set()
    assert not list(tmp_path.iterdir())


def test_the_runtime_is_static_bash_of_450_lines() -> None:
    text = RUNTIME.read_text()
    assert len(text.splitlines()) <= 450
    assert "{{" not in text
    assert "{%" not in text
    # What ranks run: an image may have only sh.
    ranks = text.partition("# From here on it is bash.")[0]
    for argv, part in ((["bash", "-n"], text), (["sh", "-n"], ranks)):
        done = subprocess.run(argv, input=part, capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.process
def test_shellcheck_has_no_complaint_of_the_runtime() -> None:
    files = [str(path) for path in template_folder().glob("*.sh")]
    files += map(str, data_file("in_job").glob("*.sh"))
    done = subprocess.run(["shellcheck", "--norc", *files], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_a_script_without_its_runtime_says_so(plan: Plans, tmp_path: Path) -> None:
    text = render_script(small(plan, "touch", "ran", setup=["touch setup"])).text
    done = subprocess.run(
        ["bash"], input=text, cwd=tmp_path, capture_output=True, text=True, timeout=240
    )
    assert done.returncode == 1
    said = "hpctrain: ./runtime.sh, which belongs to this script, does not exist on "
    assert done.stderr.startswith(said)
    assert "hpctrain render -o FILE writes both" in done.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("shell", [("bash", "-u"), ("bash", "-e")])
@pytest.mark.usefixtures("execute")
def test_a_relative_path_of_the_script_will_do(
    plan: Plans, tmp_path: Path, shell: tuple[str, ...]
) -> None:
    """Also if the job has another working folder, and the run folder is relative."""
    (tmp_path / "a 'b").mkdir()
    (tmp_path / "work").mkdir()
    (tmp_path / "mine").mkdir()
    job = small(plan, "pwd", workdir=str(tmp_path / "work"))
    script = render_script(job)
    save(script, tmp_path / "a 'b" / "job.sbatch").write_text(script.text_for(tmp_path / "a 'b"))
    environment = {"PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}"}
    done = subprocess.run(
        [*shell, "a 'b/job.sbatch", "mine"],
        cwd=tmp_path,
        env={**environment, "SLURM_JOB_NODELIST": "localhost"},
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    assert log(tmp_path / "mine") == f"{tmp_path / 'work'}\n"


def test_setup_lines_are_not_inside_a_function(
    plan: Plans, execute: Execute, tmp_path: Path
) -> None:
    """`declare` in a function, or in a file that it sources, would be local to it."""
    (tmp_path / "lib.sh").write_text('declare -x FROM_FILE=1\necho "$#" >arguments\n')
    setup = ["declare -x DECLARED=1", "source ./lib.sh", "set -x", "IFS=,"]
    job = small(plan, "bash", "-c", 'echo "$DECLARED $FROM_FILE"', setup=setup)
    done = execute(job, tmp_path)
    assert done.returncode == 0, done.stderr
    assert log(tmp_path) == "1 1\n"
    assert (tmp_path / "arguments").read_text() == "0\n"


def test_variables_of_the_job_may_have_the_names_of_locals(
    plan: Plans, execute: Execute, tmp_path: Path
) -> None:
    names = ("port", "node", "log", "host", "mode", "try", "when", "lack", "rank", "nodes")
    (tmp_path / "secret").write_text("v")
    (tmp_path / "secret").chmod(0o600)
    command = ("bash", "-c", f"echo {' '.join(f'${name}' for name in names)}")
    given: tuple[dict[str, dict[str, str]], ...] = (
        {"env": dict.fromkeys(names, "v")},
        {"secrets": dict.fromkeys(names, str(tmp_path / "secret"))},
    )
    for keys in given:
        folder = tmp_path / next(iter(keys))
        folder.mkdir()
        done = execute(small(plan, *command, **keys), folder)
        assert done.returncode == 0, done.stderr
        assert log(folder) == " ".join(["v"] * len(names)) + "\n"


NODES = {"nodes": 2, "gpus_per_node": 8, "time": "1h"}


@pytest.mark.parametrize("plain", [False, True])
@pytest.mark.parametrize(("cores", "each"), [("96", "12"), ("100", "12"), ("8", "1"), ("4", "1")])
def test_the_ranks_divide_the_cores(
    plan: Callable[..., LaunchPlan], cores: str, each: str, plain: bool
) -> None:
    made = plan("coreweave", partition="gpu", resources=NODES)
    text = render_script(msgspec.structs.replace(made, plain=plain)).text
    lines = [line for line in text.splitlines() if line.startswith(("cpus_", "export OMP_"))]
    code = "\n".join([*lines, 'echo "$OMP_NUM_THREADS"'])
    env = {"SLURM_CPUS_ON_NODE": cores}
    done = subprocess.run(["bash", "-uc", code], env=env, capture_output=True, text=True)
    assert done.stdout == f"{each}\n", done.stderr
