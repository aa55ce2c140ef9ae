"""Templates of a site's own, as a user meets them: shown, run and refused."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

Hpctrain = Callable[..., subprocess.CompletedProcess[str]]
SITE = """\
schema: 1
name: mine
description: d
scheduler: local
template: mine.sh.j2
launchers: {default: single, allowed: [single, mpirun]}
partitions: [{name: machine, max_nodes: 1, cpus_per_node: 4, gpus_per_node: 0}]
"""
# Nothing of ours: only what the page says that a script must do.
BARE = """\
#!/bin/bash
run=${1:-$HPCTRAIN_RUN}
say() {
  printf '{"started": %s, "ended": %s, "exit_code": %s, "pid": %s, "host": "%s"}' \\
    "$started" "$1" "$2" "$$" "$HOSTNAME" >"$run/status.json.new"
  mv "$run/status.json.new" "$run/status.json"
}
started=$(date +%s.%N)
say null null
{% for name, value in plan.env %}
export {{ name }}={{ value | sh }}
{% endfor %}
{{ plan.settings.command.value | map("sh") | join(" ") }} >>"$run/logs/rank-0.out" 2>&1
code=$?
say "$(date +%s.%N)" "$code"
exit "$code"
"""
RUN = ("submit", "train.py", "--site", "mine", "--cpus-per-task", "1", "--wait")


@pytest.fixture
def site(hpctrain: Hpctrain) -> Path:
    """Make a site with a folder of templates; return the folder."""
    Path("mine.yaml").write_text(SITE)
    Path("templates").mkdir()
    program = (
        "import os, sys; print('rank', os.environ['OMP_NUM_THREADS']); sys.exit(int(sys.argv[1]))"
    )
    Path("train.py").write_text(program)
    return Path("templates")


@pytest.mark.process
def test_the_manifest_tells_whether_the_template_is_the_same(
    hpctrain: Hpctrain, site: Path
) -> None:
    digests = []
    for comment in ("one", "two", "two"):
        (site / "mine.sh.j2").write_text(f"{{# {comment} #}}\n" + BARE)
        run = hpctrain(*RUN, "--", "0").stdout.strip()
        manifest = json.loads((Path("results/train") / run / "run.json").read_text())
        digests.append((manifest["template_digest"], manifest["script_digest"]))
    (first, script), (second, same), third = digests
    assert first != second
    assert script == same
    assert third == (second, same)
