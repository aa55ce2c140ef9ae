"""Options as people type them: those of the script, of other launchers, several sizes."""

from pathlib import Path

import pytest

from tests.cli.conftest import Hpctrain

MOVED = {
    "train.py --epochs 3": "train.py -- --epochs 3",
    "--epochs 3 train.py": "train.py -- --epochs 3",
    "train.py --epochs=3 --nodes 1": "train.py --nodes 1 -- --epochs=3",
    "train.py --nodes 1 -z --flag 7 -- --own": "train.py --nodes 1 -- -z --flag 7 --own",
    # Both have these.
    "train.py --output out -b 64": "train.py -- --output out -b 64",
}


@pytest.fixture(autouse=True)
def _script(hpctrain: Hpctrain) -> None:
    Path("train.py").write_text("print('done')\n")


@pytest.mark.parametrize("words", MOVED)
@pytest.mark.parametrize("verb", ["submit", "explain"])
def test_an_option_of_the_script_follows_after_two_dashes(
    hpctrain: Hpctrain, verb: str, words: str
) -> None:
    done = hpctrain(verb, *words.split())
    assert done.returncode == 2
    assert done.stderr.endswith(f"follow after --:\n  hpctrain {verb} {MOVED[words]}\n")
    assert not Path("results").exists()


def test_a_misspelt_option_is_named(hpctrain: Hpctrain) -> None:
    said = hpctrain("submit", "train.py", "--tasks-pernode", "2").stderr
    assert "Did you mean '--tasks-per-node'?" in said
    assert "Did you mean" not in hpctrain("submit", "train.py", "--epochs", "2").stderr


def test_an_option_of_report_is_named_as_such(hpctrain: Hpctrain) -> None:
    said = hpctrain("submit", "train.py", "--rates", "job").stderr
    assert "'--rates'; it is one of hpctrain report, once train.py has run. Options of" in said


GENERIC = "--site slurm-generic -p gpu -c 4 -t 5m"
SAME = {
    "--nproc_per_node 2 --nnodes 1": "--tasks-per-node 2 --nodes 1",
    "--nodes 2 --gpus 8": "--nodes 2 --gpus-per-node 4",
    "-N 2 -G a100:8": "--nodes 2 --gpus-per-node 4 --set gpu_type=a100",
    "--gres=gpu:2": "--gpus-per-node 2",
    "--gres gpu": "--gpus-per-node 1",
}


@pytest.mark.parametrize("typed", SAME)
def test_words_of_sbatch_and_torchrun(hpctrain: Hpctrain, typed: str) -> None:
    render = ("render", "train.py", *GENERIC.split(), "--plain")
    done = hpctrain(*render, *typed.split())
    same = hpctrain(*render, *SAME[typed].split())
    assert (done.returncode, same.returncode) == (0, 0), done.stderr + same.stderr
    # The origins in comments name the options.
    assert code(done.stdout) == code(same.stdout)


def code(script: str) -> list[str]:
    return [line.partition("  # ")[0] for line in script.splitlines()]


def test_a_number_of_all_nodes_is_divided_at_each_size(hpctrain: Hpctrain) -> None:
    words = ("render", "train.py", *GENERIC.split(), "-N", "1,2", "-n", "4", "--plain")
    done = hpctrain(*words)
    tasks = [line.strip() for line in done.stdout.splitlines() if "--nproc-per-node" in line]
    assert [line.partition("--nproc-per-node ")[2].split()[0] for line in tasks] == ["4", "2"]
    assert "--ntasks 4: 2 on each of 2 nodes, as sbatch reads it" in done.stderr
    both = hpctrain(*words, "--gpus", "8", "--gres", "a100:4").stderr
    assert "--gpus 8 is not 1 x --gpus-per-node a100:4" in both
    assert hpctrain(*words, "--gres", "shard:2").returncode == 2
    uneven = hpctrain(*words, "-n", "3").stderr
    assert "--ntasks 3: not a multiple of 2 nodes" in uneven
    assert "--tasks-per-node 4,8 is" in hpctrain(*words, "-n", "4,8").stderr


@pytest.mark.parametrize(
    ("typed", "answer"),
    [
        ("--dependency afterok:1", "--set directives.dependency=afterok:1."),
        ("--requeue", "--set directives.requeue=true."),
        ("--mem-per-cpu=4G", "use --mem."),
        ("--array=1-4", "use repetitions of a study."),
    ],
)
def test_another_option_of_sbatch_is_not_the_scripts(
    hpctrain: Hpctrain, typed: str, answer: str
) -> None:
    done = hpctrain("submit", "train.py", *typed.split())
    assert done.returncode == 2
    assert done.stderr.endswith(f"is an option of sbatch: {answer}\n")


LINES = {
    "torchrun --standalone --nproc_per_node=2 train.py": "--launcher torchrun --tasks-per-node 2 "
    "train.py",
    "python -u train.py -N 1": "train.py -N 1",
    "python3 -m torch.distributed.run --max-restarts 3 train.py": "--launcher torchrun --set "
    """'launcher_args=["--max-restarts=3"]' train.py""",
    "accelerate launch --multi_gpu --num_processes 2 train.py -- --lr 1": "--launcher accelerate "
    "--ntasks 2 train.py -- --lr 1",
    "srun -n 2 python train.py": "--launcher srun -n 2 train.py",
    "mpirun -np 2 python train.py": "--launcher mpirun --ntasks 2 train.py",
}


@pytest.mark.parametrize("line", LINES)
def test_the_command_line_of_a_launcher(hpctrain: Hpctrain, line: str) -> None:
    generic = GENERIC.split()
    done = hpctrain("render", *generic, *line.split())
    assert done.returncode == 0, done.stderr
    assert f"taken as: hpctrain render {GENERIC} {LINES[line]}\n" in done.stderr
    assert "train.py" in done.stdout


def test_a_quoted_command_line(hpctrain: Hpctrain) -> None:
    words = ("render", "python train.py --epochs 3", "--site", "local")
    done = hpctrain(*words)
    assert done.returncode == 0, done.stderr
    assert "taken as: hpctrain render --site local train.py -- --epochs 3\n" in done.stderr
    assert "names no program or script" in hpctrain("submit", "torchrun", "--standalone").stderr


@pytest.mark.process
def test_several_sizes_are_a_study(hpctrain: Hpctrain) -> None:
    words = ("train.py", "--site", "local", "--tasks-per-node", "1,2", "--set", "repetitions=1")
    done = hpctrain("submit", *words, "--wait")
    assert done.returncode == 0, done.stderr
    assert "a study of 2 sizes, 1 run of each; strong scaling: the global batch" in done.stderr
    assert hpctrain("status", "train").stdout.startswith("2 COMPLETED")
    again = hpctrain("submit", *words)
    assert "0 runs submitted, 2 exist already" in again.stderr


def test_sizes_of_a_study_are_its_axes(hpctrain: Hpctrain) -> None:
    Path("s.yaml").write_text("name: s\njob: {command: [a]}\naxes: {nodes: [1]}\nscaling: strong\n")
    done = hpctrain("render", "s.yaml", "--site", "local", "--nodes", "1,2")
    assert done.returncode == 2
    assert "--nodes 1,2: s.yaml is a study" in done.stderr
    assert "--set 'axes.nodes=[1,2]'" in done.stderr


def test_a_script_is_not_written_into_a_missing_folder(hpctrain: Hpctrain) -> None:
    done = hpctrain("render", "train.py", "--site", "local", "-o", "no where/job.sbatch")
    assert done.returncode == 2
    assert "there is no folder no where" in done.stderr
    assert "  mkdir -p 'no where'\n" in done.stderr
    assert not Path("no where").exists()


@pytest.mark.parametrize("path", ["./my.yaml", "my.yaml", "sites/my"])
def test_a_site_that_looks_like_a_path_is_one(hpctrain: Hpctrain, path: str) -> None:
    done = hpctrain("render", "train.py", "--site", path)
    assert done.returncode == 2
    assert f"hpctrain: {path}: no such file" in done.stderr
    assert "unknown site" not in done.stderr
