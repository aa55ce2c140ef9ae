"""Rules of backends, a site and a torch -> the report of `hpctrain advise backend`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from hpc_train.model.backend_rules import BUILDS, CARRIERS, OPERATIONS, RULES
from hpc_train.model.hardware import Torch
from hpc_train.model.report import Cell, Column, Report, ReportTable
from hpc_train.model.value import Value
from hpc_train.reports.value_format import ABSENT

_SOURCE = "Rules and operations: {}. MPI: if the MPI that torch was built with can."
NOTES = (
    "gloo and mpi as backends are independent of the launcher: mpirun starts ranks of every one.",
    "From torch 2.15 on, nccl is a new implementation; TORCH_DIST_USE_NCCL2=0 or the name "
    "nccl-legacy selects the former one. Compare times of one implementation only.",
)
_NO_TORCH = (
    "What torch was built with is unknown: python cannot import it. "
    "`pip install 'hpctrain[torch]'` installs one for CPUs."
)


class BackendInput(Value, frozen=True, kw_only=True):
    """The site, the backend that `auto` selects on its nodes by kind, and the torch of python.

    `automatic` is the kind of nodes (`with GPUs`) -> backend and reason; `fabric` may be empty.
    `source` is that of the rules.
    """

    site: str
    fabric: str
    automatic: Mapping[str, tuple[str, str]]
    torch: Torch | None
    source: str


def backend_report(found: BackendInput) -> Report:
    """Return the report; JSON has `rules`, `operations`, `torch` and `automatic`."""
    torch = found.torch
    return Report(
        title="Backends of torch.distributed",
        summary=(*_on_site(found), *((_built(torch),) if torch else ())),
        tables=(_rules(), _operations(), *((_builds(torch),) if torch else ())),
        notes=(_SOURCE.format(found.source), *NOTES, *(() if torch else (_NO_TORCH,))),
        name="backend",
        conditions={
            "site": found.site,
            "fabric": found.fabric or None,
            "automatic": {kind: backend for kind, (backend, _) in found.automatic.items()},
            "torch": torch.version if torch else None,
        },
        kind="Advice",
        all_met="",
        of_runs=False,
    )


def _on_site(found: BackendInput) -> Iterator[str]:
    fabric = f", {found.fabric}" if found.fabric else ""
    for kind, (backend, reason) in found.automatic.items():
        yield f"{found.site}{fabric}, nodes {kind}: {backend} ({reason})."


def _built(torch: Torch) -> str:
    device = f"CUDA {torch.cuda}" if torch.cuda else f"ROCm {torch.hip}" if torch.hip else "CPUs"
    nccl = f", NCCL {torch.nccl}" if torch.nccl else ""
    names = ", ".join(torch.backends) or "no backend"
    return f"This torch, {torch.version} for {device}{nccl}, has {names}."


def _text(text: str) -> Cell:
    return Cell(text=text or ABSENT, value=text or None)


def _rules() -> ReportTable:
    names = ("device", "network", "backend", "otherwise", "reason")
    rows = [tuple(str(getattr(rule, name)) for name in names) for rule in RULES]
    return _table("Rules", "rules", names, rows)


def _operations() -> ReportTable:
    rows = [(name, *carried) for name, carried in OPERATIONS.items()]
    return _table("Operations", "operations", ("operation", *CARRIERS), rows)


def _builds(torch: Torch) -> ReportTable:
    rows = [
        (name, "yes" if name in torch.backends else "no", where) for name, where in BUILDS.items()
    ]
    return _table("This torch", "torch", ("backend", "has", "which torch has it"), rows)


def _table(
    title: str, key: str, names: Sequence[str], rows: Sequence[tuple[str, ...]]
) -> ReportTable:
    """Return a table of texts, whose first and last columns may be wrapped."""
    last = len(names) - 1
    columns = tuple(
        Column(
            key=name.replace(", ", "_").replace(" ", "_").lower(),
            heading=name.replace(", ", "\n"),
            align="left",
            prose=n in (0, last),
        )
        for n, name in enumerate(names)
    )
    keys = [column.key for column in columns]
    return ReportTable(
        title=title,
        columns=columns,
        rows=tuple(tuple(map(_text, row)) for row in rows),
        key=key,
        records=tuple(dict(zip(keys, (cell or None for cell in row), strict=True)) for row in rows),
    )
