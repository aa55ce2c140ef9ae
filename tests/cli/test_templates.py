"""Templates of a site's own, as a user meets them: shown, run and refused."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

Hpctrain = Callable[..., subprocess.CompletedProcess[str]]
ROOT = Path(__file__).resolve().parents[2]
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
# A whole script with our parts around a launch of its own.
PARTS = (ROOT / "docs" / "templates.md").read_text(encoding="utf-8")
PARTS = PARTS.partition("{# plain.sh.j2 #}\n")[2].partition("```")[0]
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


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("\n{{ plan.topolgy }}", "templates/mine.sh.j2:2: unknown field 'plan.topolgy'; did you"),
        ("{% if %}", "templates/mine.sh.j2:1: Expected an expression"),
        ("{{ plan.__class__ }}", "templates/mine.sh.j2:1: access to attribute '__class__'"),
        ("{% include 'local.sh' %}", "mine.sh.j2:1: unknown template 'local.sh'; did you mean"),
        (None, "mine.yaml:5: unknown template 'mine.sh.j2'; looked in: templates"),
    ],
)
def test_a_mistake_is_one_clear_answer(
    hpctrain: Hpctrain, site: Path, text: str | None, message: str
) -> None:
    if text is not None:
        (site / "mine.sh.j2").write_text(text)
    done = hpctrain(*RUN, "--", "0")
    assert (done.returncode, done.stdout) == (2, "")
    assert f"hpctrain: {message}" in done.stderr or message in done.stderr.partition("\n")[0]
    assert "Traceback" not in done.stderr
    assert not Path("results").exists()
