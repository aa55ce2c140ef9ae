"""A report with everything that a page can show: figures, provenance, details, hostile words."""

from __future__ import annotations

import html
from typing import Any

import msgspec

from hpc_train.reports.report import Column, Fact, Figure, Report, ReportTable, RunDetail
from tests.reports.finished import HOSTILE, report

# What each of them would do in a page that does not show it as text.
TAKEN = "document.title='taken'"
WORDS = f'</script><script>{TAKEN}</script></style></title><img src=x onerror="{TAKEN}">'
ATTRIBUTE = f'" onmouseover="{TAKEN}" id="main" x="'
TURNED = "abc\u202edcba\x1b[31m\udc80"
INLINE = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 640 240">
<g><text x="20" y="30">efficiency</text>
<g><title>srun-1-0: 1010 samples/s, id="clip"</title>
<circle cx="120" cy="120" r="8"/></g>
<g><title>WORDS</title><circle cx="320" cy="120" r="8"/></g></g></svg>
"""
SCRIPT = "#!/bin/bash\n#SBATCH --nodes=2\nsrun python train.py \\\n\t--name '</pre><b>x</b>'\n"


def drawn(name: str, words: str, attribute: str) -> Figure:
    numbers = ReportTable(
        title=f"{name} by run",
        columns=(Column(key="run_id", heading="run", align="left"), Column(key="y", heading="y")),
        rows=tuple((run, "1.0") for run in (words, "srun-1-0")),
        records=tuple({"run_id": run, "y": 1.0} for run in (words, "srun-1-0")),
    )
    return Figure(
        name=name,
        caption=f"Efficiency, {attribute}",
        images={"inline": INLINE.replace("WORDS", html.escape(words)).encode()},
        data=numbers,
    )


def whole(words: str = WORDS, attribute: str = ATTRIBUTE, problem: str = HOSTILE) -> Report:
    """Return a report that holds the words wherever something strange may stand."""
    made = report(problem)
    return msgspec.structs.replace(
        made,
        title=f"resnet {words}",
        summary=(*made.summary, f"Caveats: {words}"),
        figures=(drawn("efficiency", words, attribute), drawn("again", words, attribute)),
        notes=(*made.notes, words, TURNED),
        checks=(*made.checks, attribute),
        partial=True,
        provenance=(
            Fact(name="partition", values=(("gpu", 18),)),
            Fact(name=attribute, values=(("2.4.0+cu124", 15), (words, 3))),
        ),
        details=tuple(_detail(row, words) for row in made.run_rows),
        scripts={"a" * 64: SCRIPT, "b" * 64: SCRIPT + words},
        conditions={**made.conditions, "odd": words},
    )


def _detail(row: dict[str, Any], words: str) -> RunDetail:
    failed = row["state"] != "COMPLETED"
    launcher = row["run_id"].partition("-")[0]
    return RunDetail(
        run_id=row["run_id"],
        state=row["state"],
        problem=row["problem"],
        script=("b" if launcher == "torchrun" else "a") * 64,
        settings=(
            ("launcher", launcher, "study.yaml:4"),
            ("partition", "gpu", "site_profiles/x.yaml:12"),
            ("name", words, "job.yaml:1"),
        ),
        diagnosis=f"root: rank 3 on host a\n  at step 7\n{words}" if failed else "",
    )
