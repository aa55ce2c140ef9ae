"""What a site's executor is given beside the runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpc_train.model.run import PROFILE, Manifest
from hpc_train.pipeline.render import Request, prepare
from hpc_train.pipeline.submit_runs import cluster_of, executor_options
from hpc_train.sites.load import load_site

SITE = """\
schema: 1
name: mine
description: d
scheduler: slurm
launchers: {default: srun, allowed: [srun]}
"""
STUDY = """\
job: {command: ["true"], resources: {cpus_per_task: 1, time: 5m}}
axes: {nodes: [1, 2]}
scaling: strong
placement: nested
"""


def test_the_script_of_an_allocation_is_made_of_the_templates_beside_the_profile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "site" / "templates").mkdir(parents=True)
    (tmp_path / "site" / "mine.yaml").write_text(SITE)
    (tmp_path / "site" / "templates" / "nested.sbatch.j2").write_text("#!/bin/bash\n# mine\n")
    (tmp_path / "study.yaml").write_text(STUDY)
    monkeypatch.chdir(tmp_path)
    prepared = prepare(Request(path=Path("study.yaml"), site="site/mine.yaml"))
    assert prepared.allocation is not None
    assert prepared.allocation.text == "#!/bin/bash\n# mine\n"
    entries = [
        (
            Manifest(
                schema=1,
                run_id=f"{point.stem}-r1",
                name=prepared.name,
                study=prepared.name,
                axes=point.axes,
                repetition=1,
                attempt=1,
                created="2026-11-01T00:00:00",
                spec=point.job.value,
                plan=point.plan,
                script_digest=point.script.digest,
                template_digest=point.script.template_digest,
                provenance={PROFILE: str(prepared.first.profile)},
            ),
            point.script,
        )
        for point in prepared.points
    ]
    allocation = executor_options(prepared.first.site, entries).allocation
    assert allocation is not None
    assert allocation.text == prepared.allocation.text
    assert allocation.template_digest == prepared.allocation.template_digest


@pytest.mark.parametrize(("lines", "days"), [("", 7), ("lifecycle: {forget_nodes_after: 2d}\n", 2)])
def test_how_long_a_failure_of_a_node_counts(tmp_path: Path, lines: str, days: int) -> None:
    (tmp_path / "mine.yaml").write_text(SITE + lines)
    site = load_site(str(tmp_path / "mine.yaml"))
    assert cluster_of(site.value).nodes_remembered_s == days * 86400
