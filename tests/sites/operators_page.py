"""The jobs that operators publish beside ours, as data and as the page docs/operators.md."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Literal

import msgspec
import yaml

from hpc_train.data_folders import template_path
from hpc_train.model.job import JobSpec
from hpc_train.model.site import Source
from hpc_train.model.value import Value, decode_unit
from hpc_train.plans.build import make_plan
from hpc_train.scripts.render import render_script
from hpc_train.sites.load import load_site
from hpc_train.specs.job import build_job

FOLDER = Path(__file__).parent / "operators"
PAGE = Path(__file__).parents[2] / "docs" / "operators.md"
_RIGHT = {"operator": "the operator", "ours": "hpctrain", "both": "both", "open": "open"}
_HEAD = """\
# The operators' own PyTorch jobs beside those of hpctrain

What the operator of a shipped site publishes for PyTorch or NCCL, what `hpctrain render` writes for
two nodes of the site, which of both is right, and why. The facts are in our words, each with its
source; a test renders the job of each table and looks for the texts of the column hpctrain. *open*
means that a fact is missing or that the decision is the user's.
"""


class Row(Value, frozen=True, kw_only=True):
    """One fact of the operator; the script contains `ours` and does not contain `not`."""

    about: str
    operator: str
    ours: str | tuple[str, ...] = ()
    absent: str | None = msgspec.field(name="not", default=None)
    right: Literal["operator", "ours", "both", "open"]
    why: str = ""
    source: int = 1

    @property
    def texts(self) -> tuple[str, ...]:
        """Return the texts of the script."""
        return (self.ours,) if isinstance(self.ours, str) else self.ours


class Comparison(Value, frozen=True, kw_only=True):
    """The table of one site: what was read, the job that is rendered, and the rows."""

    sample: str
    sources: tuple[Source, ...]
    job: dict[str, Any]
    rows: tuple[Row, ...]


def comparisons() -> dict[str, Comparison]:
    """Return site -> table."""
    return {path.stem: _read(path) for path in sorted(FOLDER.glob("*.yaml"))}


def script_of(site: str, comparison: Comparison) -> str:
    """Return the script of the table's job without comments, each command on one line."""
    data = {"name": "two-nodes", "command": ["python", "train.py"], **comparison.job}
    job = build_job(data, {"": "job.yaml"}, (), Path("job.yaml"))
    assert isinstance(job.value, JobSpec)
    text = render_script(make_plan(job, load_site(site)), template_path(Path("job.yaml"))).text
    lines = (
        line.partition("  # ")[0]
        for line in text.replace("\\\n", " ").splitlines()
        if not line.startswith("# ")
    )
    return "\n".join(re.sub(" +", " ", line) for line in lines)


def page() -> str:
    """Return docs/operators.md."""
    tables = comparisons()
    toc = ", ".join(f"[{name}](#{name})" for name in tables)
    return f"{_HEAD}\n{len(tables)} sites: {toc}\n" + "".join(
        _table(name, one) for name, one in tables.items()
    )


def _table(name: str, comparison: Comparison) -> str:
    rows = ["| about | operator | hpctrain | right | why | source |", f"|{' --- |' * 6}"]
    for row in comparison.rows:
        ours = ", ".join(f"`{text}`" for text in row.texts)
        none = f"no `{row.absent}`" if row.absent else ""
        found = "; ".join(filter(None, (ours, none)))
        cells = (row.about, row.operator, found, _RIGHT[row.right], row.why, f"[{row.source}]")
        rows.append(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |")
    sources = [
        f"{number}. {one.what}{f', {one.date}' if one.date else ''}: {one.confidence}"
        for number, one in enumerate(comparison.sources, 1)
    ]
    parts = (f"\n## {name}\n", f"Read: {comparison.sample}.\n", *rows, "", *sources)
    return "\n".join(parts) + "\n"


def _read(path: Path) -> Comparison:
    data = yaml.safe_load(path.read_text(encoding="utf-8"))
    for source in data["sources"]:
        source.update({"date": str(source["date"])} if "date" in source else {})
    return msgspec.convert(data, Comparison, dec_hook=decode_unit)
