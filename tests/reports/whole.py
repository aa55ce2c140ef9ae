"""A report with everything that a page can show: figures, provenance, details, hostile words."""

from __future__ import annotations

import msgspec

from hpc_train.model.report import (
    Cell,
    Column,
    Fact,
    Figure,
    Report,
    ReportTable,
    RunDetail,
)
from tests.reports.finished import HOSTILE, report

# What each of them would do in a page that does not show it as text.
WORDS = (
    "</script><script>document.title='taken'</script><img src=x onerror=\"document.title='taken'\">"
)
ATTRIBUTE = '" onmouseover="document.title=\'taken\'" id="main" x="'
TURNED = "abc\u202edcba"
INLINE = """<?xml version="1.0"?>
<!DOCTYPE svg PUBLIC "-//W3C//DTD SVG 1.1//EN" "http://www.w3.org/Graphics/SVG/1.1/DTD/svg11.dtd">
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 640 240">
<metadata><a href="http://example.org/x"/></metadata>
<defs><clipPath id="clip"><rect width="640" height="240"/></clipPath></defs>
<g clip-path="url(#clip)"><text x="20" y="30">efficiency</text>
<g id="run_1"><title>srun-1-0: 1010 samples/s, id="clip"</title><circle cx="120" cy="120" r="8"/></g>
<g id="run_2"><title>&lt;/script&gt;&lt;img src=x onerror=alert(1)&gt;</title>
<circle cx="320" cy="120" r="8"/></g></g></svg>
"""
SCRIPT = "#!/bin/bash\n#SBATCH --nodes=2\nsrun python train.py \\\n\t--name '</pre><b>x</b>'\n"


def drawn(name: str = "efficiency") -> Figure:
    numbers = ReportTable(
        title=f"{name} by run",
        columns=(Column(key="run_id", heading="run", align="left"), Column(key="y", heading="y")),
        rows=(
            (Cell(text=WORDS, value=WORDS), Cell(text="1.0", value=1.0)),
            (Cell(text="srun-1-0", value="srun-1-0"), Cell(text="0.9", value=0.9)),
        ),
    )
    return Figure(
        name=name, caption=f"Efficiency, {ATTRIBUTE}", images={"inline": INLINE.encode()},
        data=numbers,
    )  # fmt: skip


def whole() -> Report:
    made = report()
    return msgspec.structs.replace(
        made,
        title=f"resnet {WORDS}",
        figures=(drawn(), drawn("again")),
        notes=(*made.notes, WORDS, TURNED),
        checks=(*made.checks, ATTRIBUTE),
        partial=True,
        provenance=(
            Fact(name="partition", values=(("gpu", 18),)),
            Fact(name="torch", values=(("2.4.0+cu124", 15), (WORDS, 3))),
        ),
        details=tuple(_detail(str(row["run_id"]), row) for row in made.run_rows),
        scripts={"a" * 64: SCRIPT, "b" * 64: SCRIPT.replace("nodes=2", "nodes=4")},
    )


def _detail(run: str, row: dict[str, object]) -> RunDetail:
    failed = row["state"] != "COMPLETED"
    return RunDetail(
        run_id=run,
        state=str(row["state"]),
        problem=str(row["problem"]),
        script=("b" if run.startswith("torchrun") else "a") * 64,
        settings=(
            ("launcher", run.partition("-")[0], "study.yaml:4"),
            ("partition", "gpu", "site_profiles/x.yaml:12"),
            ("name", WORDS, "job.yaml:1"),
        ),
        diagnosis=f"root: rank 3 on host a\n  {HOSTILE}\n{WORDS}" if failed else "",
    )
