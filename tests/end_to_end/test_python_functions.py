"""`import hpc_train` on Slurm: jobs and a study from one Python process, up to the report."""

from __future__ import annotations

import pytest

from tests.end_to_end.studies import study
from tests.end_to_end.user import User

SCRIPT = """\
import json
from pathlib import Path

import hpc_train

cores = {"launcher": "srun", "site": "lab", "tasks_per_node": 1, "cpus_per_task": 1}
cores |= {"gpus_per_node": 0, "time": "1m"}
sweep = hpc_train.submit("study.yaml", site="lab")
failing = hpc_train.submit("rank.sh", [1], nodes=2, name="failing", **cores)
waiting = hpc_train.submit("rank.sh", ["wait"], nodes=1, name="waiting", **cores)
before = failing.finished
try:
    waiting.wait(0.1)
except TimeoutError as late:
    refusal = str(late)
ended = failing.wait(200)
sweep.wait(200)
waiting.cancel()
report = hpc_train.report(sweep)
report.save('sweep.html')
found = hpc_train.run("failing", results=Path("results"))
print(json.dumps({
    "before": before,
    "ended": ended,
    "reason": failing.reason,
    "logs": failing.logs(rank=1),
    "nodes": failing.details["nodes"],
    "cause": failing.diagnose().root.evidence[0].text,
    "found": [found.id == failing.id, found.state],
    "refusal": refusal,
    "cancelled": waiting.wait(200),
    "states": {run.id: run.state for run in sweep},
    "speedups": list(report.table["speedup"]),
    "summary": report.summary,
}))
"""
RANK = """\
#!/bin/bash
[ "$1" = wait ] && exec sleep 100
echo "rank $RANK on $(hostname)"
if [ "$RANK" = 1 ]; then echo "ValueError: no data" >&2; exit "$1"; fi
exec sleep 60
"""


@pytest.mark.slurm
def test_from_submission_to_report(user: User) -> None:
    (user.folder / "rank.sh").write_text(RANK)
    (user.folder / "rank.sh").chmod(0o755)
    user.write("study.yaml", study("sweep", repetitions=1))
    answer = user.python(SCRIPT)
    assert not answer["before"]
    assert "the runs continue" in answer["refusal"]
    assert (answer["ended"], answer["cancelled"]) == ("FAILED", "CANCELLED")
    host = answer["logs"].split()[3]
    assert answer["logs"] == f"rank 1 on {host}\nValueError: no data\n"
    assert answer["reason"] == f"rank 1 on {host}: exit code 1"
    assert answer["nodes"].startswith("lab[")
    assert f"{host}: task 1" in answer["cause"]
    assert answer["found"] == [True, "FAILED"]
    assert [*answer["states"].values()] == ["COMPLETED"] * 3
    assert answer["speedups"] == pytest.approx([1, 2, 4])
    assert answer["summary"].startswith(
        "4 ranks 40.00 samples/s, 4.00 times 1 rank, efficiency 100 %"
    )
    assert "data:image/svg+xml" in (user.folder / "sweep.html").read_text()
