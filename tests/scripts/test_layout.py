"""The job is above the line, the functions that track it are below, and the file is enough."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from hpc_train.base.errors import PlanError
from hpc_train.plans.build import make_plan
from hpc_train.plans.plan import LaunchPlan
from hpc_train.plans.sample_jobs import sample_jobs
from hpc_train.scripts.render import render_script
from hpc_train.sites.load import Machine, load_site
from tests.scripts.site_jobs import images

Plans = Callable[..., LaunchPlan]
Execute = Callable[..., subprocess.CompletedProcess[str]]
# One of each vendor, fabric and launcher; the net has the scripts of all.
SITES = ("frontier", "juwels-booster", "leonardo", "local", "perlmutter", "slurm-generic")
MARK = "\nexit # ===="
LONGEST = 60
# What a site or a job asks for, line by line: directives, setup, exports.
GIVEN = re.compile(r"#(SBATCH|PBS) |export (?!MASTER_ADDR )|module |unset |\[ -n ")
# Of its lines, 10 are directives and 25 modules and variables.
MANY = {"frontier": 64}
REST = 38
SMALL = {"tasks_per_node": 1, "cpus_per_task": 1}


def small(plan: Plans, *command: str, **keys: object) -> LaunchPlan:
    return plan("slurm-generic", launcher="srun", command=command, resources=SMALL, **keys)


def log(folder: Path) -> str:
    return (folder / "logs" / "rank-0.out").read_text()


@pytest.mark.parametrize("image", [False, True])
@pytest.mark.parametrize("site", SITES)
def test_the_job_is_in_the_first_lines(site: str, image: bool) -> None:
    """Only a site with many settings of its own may have more."""
    profile = load_site(site, Machine(cpus=8, gpus=0))
    for job in images(profile) if image else sample_jobs(profile.value):
        head = render_script(make_plan(job, profile)).text.partition(MARK)[0].splitlines()
        rest = [line for line in head if not GIVEN.match(line)]
        assert len(rest) <= REST, "\n".join(head)
        assert len(head) <= (LONGEST if site not in MANY else MANY[site]), "\n".join(head)


@pytest.mark.parametrize("launcher", ["srun", "torchrun", "mpirun", "spawn"])
def test_nothing_happens_below_the_line(plan: Plans, tmp_path: Path, launcher: str) -> None:
    """The lower part only defines functions and wrappers: no output, no file, no export."""
    text = render_script(plan("slurm-generic", launcher=launcher)).text
    functions = text.partition(MARK)[2].partition("\n")[2]
    state = '"$(set -o; trap; export -p)"'
    code = f'before={state}\neval "$(<functions)"\n[ "$before" = {state} ]'
    (tmp_path / "functions").write_text(functions)
    done = subprocess.run(["bash", "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert [path.name for path in tmp_path.iterdir()] == ["functions"]


def test_the_functions_have_names_of_their_own(plan: Plans) -> None:
    text = render_script(plan("slurm-generic", launcher="srun")).text
    names = re.findall(r"^(\w+)\(\) \{$", text.partition(MARK)[2], re.M)
    assert len(names) >= 8
    assert {name for name in names if not name.startswith("hpctrain_")} == set()


def test_a_script_that_cannot_read_itself_says_so(plan: Plans, tmp_path: Path) -> None:
    text = render_script(small(plan, "touch", "ran", setup=["touch setup"])).text
    done = subprocess.run(
        ["bash"], input=text, cwd=tmp_path, capture_output=True, text=True, timeout=240
    )
    assert done.returncode == 1
    said = "hpctrain: run this script from a file: sbatch FILE, or bash FILE\n"
    assert done.stderr.endswith(said)
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
    (tmp_path / "a 'b" / "job.sbatch").write_text(render_script(job).text)
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


def test_setup_may_have_functions_with_common_names(
    plan: Plans, execute: Execute, tmp_path: Path
) -> None:
    names = ("start", "run", "finish", "exit_code", "say", "secret", "write_status", "free_port")
    setup = [f"{name}() {{ touch called; }}" for name in names]
    done = execute(small(plan, "bash", "-c", "exit 3", setup=setup), tmp_path)
    assert done.returncode == 3, done.stderr
    assert not (tmp_path / "called").exists()


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


RESOURCES = {"nodes": 2, "gpus_per_node": 4, "cpus_per_task": 8, "time": "1h30m"}
KEYS = {
    "command": ["python", "train.py", "--note", "it's $5"],
    "env": {"NOTE": "a, b"},
    "setup": ["module load cuda"],
    "account": "abc123",
}
CASES = [("slurm-generic", launcher) for launcher in ("srun", "torchrun", "mpirun", "spawn")]
CASES += [("local", launcher) for launcher in ("torchrun", "mpirun", "spawn", "single")]


def case(plan: Plans, site: str, launcher: str) -> LaunchPlan:
    here = {"tasks_per_node": 1 if launcher == "single" else 2, "cpus_per_task": 4}
    keys = {**KEYS, "resources": RESOURCES if site != "local" else here}
    return plan(site, launcher=launcher, **keys)


@pytest.mark.parametrize("launcher", ["srun", "torchrun", "mpirun", "spawn"])
def test_directives_stand_before_the_first_command(plan: Plans, launcher: str) -> None:
    lines = render_script(case(plan, "slurm-generic", launcher)).text.splitlines()
    directives = [i for i, line in enumerate(lines) if line.startswith("#SBATCH")]
    first_command = next(i for i, line in enumerate(lines) if line and not line.startswith("#"))
    assert directives == list(range(1, len(directives) + 1))
    assert directives[-1] < first_command


def test_the_digest_is_that_of_the_bytes(plan: Plans) -> None:
    first, second = render_script(plan()), render_script(plan(env={"A": "1"}))
    assert first == render_script(plan())
    assert first.digest != second.digest
    assert first.template_digest == second.template_digest


def test_a_value_that_would_become_a_directive_is_refused(plan: Plans) -> None:
    with pytest.raises(PlanError, match="cannot be written as an #SBATCH value"):
        plan("slurm-generic", constraint="a'b")


NODES = {"nodes": 2, "gpus_per_node": 8, "time": "1h"}


@pytest.mark.parametrize("plain", [False, True])
@pytest.mark.parametrize(("cores", "each"), [("96", "12"), ("100", "12"), ("8", "1"), ("4", "1")])
def test_the_ranks_divide_the_cores(
    plan: Callable[..., LaunchPlan], cores: str, each: str, plain: bool
) -> None:
    text = render_script(plan("coreweave", partition="gpu", resources=NODES), plain=plain).text
    lines = [line for line in text.splitlines() if line.startswith(("cpus_", "export OMP_"))]
    code = "\n".join([*lines, 'echo "$OMP_NUM_THREADS"'])
    env = {"SLURM_CPUS_ON_NODE": cores}
    done = subprocess.run(["bash", "-uc", code], env=env, capture_output=True, text=True)
    assert done.stdout == f"{each}\n", done.stderr
