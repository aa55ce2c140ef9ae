"""What each command prints, and its exit code, when all is well."""

import json
from pathlib import Path

import pytest

from tests.conftest import Hpctrain

EVENTS = """\
import json, os, time
rank = int(os.environ["RANK"]); size = int(os.environ["WORLD_SIZE"])
if rank == 0:
    print("@hpct", json.dumps({"event": "start", "rank": 0, "world_size": size,
                               "global_batch_size": 64}))
for step in range(1, 41):
    seconds = 0.1 / size * (1 + 0.01 * (step % 3))
    event = {"event": "step", "rank": rank, "step": step, "step_time": seconds,
             "samples": 64 // size, "loss": 1 / step}
    print("@hpct", json.dumps(event))
if rank == 0:
    print("@hpct", json.dumps({"event": "end", "rank": 0, "accuracy": 0.9}))
"""


@pytest.fixture
def train(tmp_path: Path) -> Path:
    path = tmp_path / "train.py"
    path.write_text(EVENTS)
    return path


@pytest.mark.process
def test_a_script_without_any_yaml(hpctrain: Hpctrain, train: Path) -> None:
    train.write_text("import sys; print(sys.argv[1:])")
    words = ("--launcher", "single", "--cpus-per-task", "1", "--wait")
    done = hpctrain("submit", "train.py", *words, "--", "--epochs", "3")
    assert done.returncode == 0, done.stderr
    run_id = done.stdout.strip()
    assert hpctrain("logs", run_id).stdout == "==> rank-0.out <==\n['--epochs', '3']\n"
    assert hpctrain("status", run_id).stdout.startswith("1 COMPLETED\n")


@pytest.mark.process
def test_render_prints_what_is_submitted(hpctrain: Hpctrain, train: Path) -> None:
    words = ("train.py", "--launcher", "single", "--cpus-per-task", "1")
    rendered = hpctrain("render", *words)
    assert rendered.returncode == 0
    assert hpctrain("submit", *words, "--dry-run").stdout == rendered.stdout
    assert not Path("results").exists()
    run_id = hpctrain("submit", *words, "--wait").stdout.strip()
    assert (Path("results/train") / run_id / "job.sbatch").read_text() == rendered.stdout
    hpctrain("render", *words, "-o", "job.sbatch")
    own = {f"hpctrain_runtime={Path.cwd()}/runtime.sh"}
    lines, shown = Path("job.sbatch").read_text().splitlines(), rendered.stdout.splitlines()
    assert len(lines) == len(shown)
    assert {line for line, other in zip(lines, shown, strict=True) if line != other} == own
    assert hpctrain("render", *words, "--runtime").stdout == Path("runtime.sh").read_text()
    assert "no runtime.sh" in hpctrain("render", *words, "--runtime", "--plain").stderr
    Path("runtime.sh").write_text("mine")
    assert hpctrain("render", *words, "-o", "job.sh").returncode == 2
    assert Path("runtime.sh").read_text() == "mine"
    Path("n.sh").write_text("#SBATCH -N 2\n")
    assert "n.sh: its lines #SBATCH have no effect" in hpctrain("render", "n.sh").stderr


@pytest.mark.process
def test_report_writes_the_figure_beside_the_page(hpctrain: Hpctrain, train: Path) -> None:
    words = ("--launcher", "single", "--cpus-per-task", "1", "--wait")
    hpctrain("submit", "train.py", *words)
    done = hpctrain("report", "train", "-o", "page.md")
    names = done.stdout.split()
    assert names[:4] == ["page.md", "page.svg", "page.png", "page.csv"]
    assert {Path(name).suffix for name in names[4:]} <= {".svg", ".png", ".csv"}
    assert "(page.svg)" in Path("page.md").read_text()
    first = [Path(name).read_bytes() for name in done.stdout.split()]
    hpctrain("report", "train", "-o", "page.md")
    assert [Path(name).read_bytes() for name in done.stdout.split()] == first


@pytest.mark.process
def test_a_results_folder_with_a_hostile_name(hpctrain: Hpctrain, train: Path) -> None:
    name = "a b $(touch pwned) 'q' größe"
    words = ("--launcher", "single", "--cpus-per-task", "1", "--wait", "--results", name)
    done = hpctrain("submit", "train.py", *words)
    assert done.returncode == 0, done.stderr
    assert hpctrain("report", "train", "--results", name).returncode == 0
    assert hpctrain("status", "train", HPCTRAIN_RESULTS=name).stdout.startswith("1 COMPLETED")
    assert not Path("pwned").exists()


@pytest.mark.process
def test_logs_can_be_followed_and_cut(hpctrain: Hpctrain, train: Path) -> None:
    train.write_text("import time\nfor i in range(4):\n    print(i)\n    time.sleep(0.3)\n")
    run_id = hpctrain("submit", "train.py", "--launcher", "single").stdout.strip()
    assert hpctrain("logs", "-f", run_id).stdout == "==> rank-0.out <==\n0\n1\n2\n3\n"
    assert hpctrain("logs", "-n", "1", "--rank", "0", run_id).stdout.endswith("<==\n3\n")


def test_explain_gives_value_origin_and_reason(hpctrain: Hpctrain) -> None:
    Path("job.yaml").write_text("command: [python, t.py]\nresources: {time: 1h}\n")
    done = hpctrain("explain", "job.yaml", "--tasks-per-node", "2", "--json")
    rows = {row["setting"]: row for row in json.loads(done.stdout)}
    assert rows["tasks_per_node"]["origin"] == "--tasks-per-node"
    assert (rows["time"]["value"], rows["time"]["origin"]) == ("01:00:00", "job.yaml:2")
    assert rows["backend"]["source"].startswith("PyTorch")
