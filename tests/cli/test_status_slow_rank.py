"""`hpctrain status RUN` names the rank for which the others wait."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.conftest import Hpctrain
from tests.pipeline.runs_of import written


def test_a_slow_rank_is_named(hpctrain: Hpctrain, tmp_path: Path) -> None:
    results = tmp_path / "results"
    run = written(results / "j", "a", "", exit_code=0)
    run.folder.logs.mkdir(exist_ok=True)
    for rank, seconds in enumerate((0.1, 0.3)):
        event = {"event": "step", "step_time": 0.4, "compute_time": seconds, "node": f"n{rank}"}
        (run.folder.logs / f"rank-{rank}.out").write_text(f"@hpct {json.dumps(event)}\n" * 9)
    done = hpctrain("status", "j", "--results", str(results))
    said = "slow: rank 1 on n1 takes 0.3 s a step, 3 times the median of the other ranks\n"
    assert done.stdout.endswith(said)
