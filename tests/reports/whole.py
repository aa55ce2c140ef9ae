"""A report with everything that a page can show: figures, provenance, details, hostile words."""

import msgspec

from hpc_train.reports.report import Column, Fact, Figure, Report, ReportTable
from tests.reports.finished import HOSTILE, report

# What each of them would do in a page that does not show it as text.
TAKEN = "document.title='taken'"
WORDS = f'</script><script>{TAKEN}</script></style></title><img src=x onerror="{TAKEN}">'
ATTRIBUTE = f'" onmouseover="{TAKEN}" id="main" x="'
TURNED = "abc\u202edcba\x1b[31m\udc80"
DRAWING = b'<svg xmlns="http://www.w3.org/2000/svg" width="640" height="240"/>'


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
        images={"svg": DRAWING},
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
        diagnoses={
            row["run_id"]: f"root: rank 3 on host a\n  at step 7\n{words}"
            for row in made.run_rows
            if row["state"] != "COMPLETED"
        },
        conditions={**made.conditions, "odd": words},
    )
