"""Earlier runs of a program of one's own: which of them `hpctrain advise` uses."""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Hpctrain
from tests.cli.test_advise import rows

OWN = """\
name: own
command: [python, own.py, "{step}"]
launcher: single
resources: {{nodes: 1, tasks_per_node: 1, cpus_per_task: 1, time: 5m}}
"""
EVENTS = """\
import json, sys
for step in range(14):
    event = {"step": step, "step_time": float(sys.argv[1]), "global_batch_size": 64}
    print("@hpct", json.dumps({**event, "world_size": 1}))
"""


@pytest.mark.process
def test_runs_of_a_changed_command_are_another_program(hpctrain: Hpctrain, tmp_path: Path) -> None:
    """Their mean would be the step of neither; named explicitly they are refused."""
    (tmp_path / "own.py").write_text(EVENTS)
    for step in ("0.4", "1.6"):
        (tmp_path / "own.yaml").write_text(OWN.format(step=step))
        made = hpctrain("submit", "own.yaml", "--site", "local", "--wait")
        assert made.returncode == 0, made.stderr
    made = hpctrain("advise", "own.yaml", "--site", "local", "--json")
    single = rows(made.stdout)["single", 1]
    assert single["step_s"] == {"low": 1.6, "high": 1.6}
    assert (single["fits"], single["verdict"]) == ("yes", "recommended")
    known = {row["name"]: row for row in json.loads(made.stdout)["sources"]}
    assert known["global_batch"]["value"] == 64
    notes = " ".join(hpctrain("advise", "own.yaml", "--site", "local").stdout.split())
    assert "Not used, as the command was another: 1 run of results/own, such as" in notes
    both = hpctrain("advise", "own.yaml", "--site", "local", "--measured", "own")
    assert both.returncode == 2
    assert "steps of the same size contradict each other: 0.400 s (own, command=" in both.stderr
    (tmp_path / "own.yaml").write_text(OWN.format(step="9"))
    notes = " ".join(hpctrain("advise", "own.yaml", "--site", "local").stdout.split())
    assert "not used: its runs have another command (--measured results/own)" in notes


TABLE = "nodes,gpus_per_node,tasks_per_node,global_batch_size,step_time\n"


def test_records_faster_than_the_peak_are_of_another_program(
    hpctrain: Hpctrain, tmp_path: Path
) -> None:
    (tmp_path / "own.yaml").write_text(OWN.format(step="1"))
    (tmp_path / "steps.csv").write_text(f"{TABLE}1,4,4,512,0.4\n")
    words = ("advise", "own.yaml", "--site", "perlmutter", "--measured", "steps.csv")
    made = hpctrain(*words, "--condition", "flops_per_sample=1e12")
    assert made.returncode == 2
    # 512 samples of 1 TFLOP in 0.4 s on four A100 of 156 TFLOP/s (TF32).
    assert "0.400 s a step is 205 % of the peak of the GPUs (MFU), more than they" in made.stderr
    assert hpctrain(*words, "--condition", "flops_per_sample=1e11").returncode == 0
