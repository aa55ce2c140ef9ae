"""`hpctrain status --nodes`: the nodes on which runs failed, with the evidence."""

from __future__ import annotations

import json
import time
from pathlib import Path

import msgspec

from hpc_train.json_files import to_json
from hpc_train.model.run import Failure
from tests.cli.conftest import Hpctrain
from tests.pipeline.runs_of import written


def failed(home: Path, run_id: str, host: str) -> None:
    run = written(home, run_id, "", exit_code=7)
    assert run.status is not None
    failure = Failure(rank=1, host=host, exit_code=7, time=time.time())
    run.folder.status.write_bytes(to_json(msgspec.structs.replace(run.status, failure=failure)))


def test_nodes(hpctrain: Hpctrain, tmp_path: Path) -> None:
    results = tmp_path / "results"
    words = ("status", "--nodes", "--results", str(results))
    done = hpctrain(*words)
    assert (done.returncode, done.stdout) == (0, "")
    said = "no run failed on a node in the last 7 days, or the time that its site sets\n"
    assert done.stderr == said
    for run_id, host in (("a", "n1"), ("b", "n2"), ("c", "n2")):
        failed(results / "j", run_id, host)
    rows = [line.split() for line in hpctrain(*words).stdout.splitlines()]
    assert [(row[0], row[1] == "bad") for row in rows[1:]] == [
        ("n2", True),
        ("n2", True),
        ("n1", False),
    ]
    assert {" ".join(row[-7:]) for row in rows[1:]} == {"rank 1 failed first, exit code 7"}
    found = json.loads(hpctrain(*words, "--json").stdout)
    assert [(one["node"], one["bad"], len(one["faults"])) for one in found["nodes"]] == [
        ("n2", True, 2),
        ("n1", False, 1),
    ]


def test_nodes_are_not_watched(hpctrain: Hpctrain) -> None:
    done = hpctrain("status", "j", "--nodes", "--watch")
    assert done.returncode == 2
    assert "--nodes prints once" in done.stderr
