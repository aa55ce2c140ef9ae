"""The jobs that operators publish beside ours, as data."""

import re
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import yaml

from hpc_train.base.data_folders import template_path
from hpc_train.base.values import Value, decode_unit
from hpc_train.jobs.job import JobSpec
from hpc_train.jobs.read_job import build_job
from hpc_train.plans.build import make_plan
from hpc_train.scripts.render import render_script
from hpc_train.sites.load import load_site
from hpc_train.sites.profile import Confidence

FOLDER = Path(__file__).parent / "operators"
NOT_FOUND = Path(__file__).parent / "no_operators_job.yaml"
_DATE = r"^(\d{4}-\d{2}(-\d{2})?|unknown)$"


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


class OperatorSource(Value, frozen=True, kw_only=True):
    """What was read, and its date: of publication, or when it was read."""

    what: str
    date: Annotated[str, msgspec.Meta(pattern=_DATE)]
    confidence: Confidence


class Comparison(Value, frozen=True, kw_only=True):
    """The table of one site: what was read, the job that is rendered, and the rows."""

    sample: str
    sources: tuple[OperatorSource, ...]
    job: dict[str, Any]
    rows: tuple[Row, ...]


def comparisons() -> dict[str, Comparison]:
    """Return site -> table."""
    return {path.stem: read_table(path) for path in sorted(FOLDER.glob("*.yaml"))}


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


def not_found() -> dict[str, dict[str, str]]:
    """Return site -> where a job of its operator was looked for, and when."""
    data = yaml.safe_load(NOT_FOUND.read_text(encoding="utf-8"))
    return {site: {key: str(text) for key, text in facts.items()} for site, facts in data.items()}


def read_table(path: Path) -> Comparison:
    """Return the table of a file; each source needs a date, which may be `unknown`."""
    data = yaml.safe_load(path.read_text(encoding="utf-8"))
    for source in data["sources"]:
        source.update({"date": str(source["date"])} if "date" in source else {})
    return msgspec.convert(data, Comparison, dec_hook=decode_unit)
