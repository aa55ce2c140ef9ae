"""The catalogue as a page: docs/failures.md is what `failures_page` returns."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence

from hpc_train.records.signatures.base import PACKAGED, Signature, SignatureGroup

_WIDTH = 100
_GROUPS: dict[SignatureGroup, str] = {
    "gpu_hardware": "GPUs, links and nodes",
    "cuda": "CUDA and HIP",
    "container": "Containers",
    "slurm": "Slurm",
    "lsf": "LSF",
    "mpi": "MPI, PMIx, UCX",
    "nccl": "NCCL and RCCL",
    "c10d": "torch.distributed",
    "torchrun": "torchrun",
    "filesystem": "File systems",
    "software": "Software",
    "python": "Python",
    "site": "This site",
}
_HEAD = """\
# Failure catalogue

What `hpctrain diagnose` knows: the lines by which schedulers, MPI, PyTorch, NCCL, drivers and file
systems say what went wrong, what it means and what to do. This page is written by
`hpctrain diagnose --list --markdown`.

- **Severity.** *Fatal* ends a job, a *warning* may be why it is slow or fails later, an *info* is
  worth knowing, *benign* looks bad and is not.
- **Consequence** marks what follows another failure: the cause is elsewhere, mostly earlier.
- In titles, `{name}` stands for what the line itself states.
- Where several fit a line, the first one has it. Long lines are broken here.
- A site adds texts of its own services in a file: [Adding failure texts](adding-a-signature.md).
"""


def failures_page(signatures: Sequence[Signature]) -> str:
    """Return the page, in Markdown; a site's own signature has the place where it is written."""
    parts = [_HEAD]
    for group, title in _GROUPS.items():
        sections = [_section(one) for one in signatures if one.group == group]
        parts += [f"\n## {title}\n", *sections] if sections else []
    return "".join(parts)


def _section(signature: Signature) -> str:
    role = ", consequence" if signature.role == "consequence" else ""
    title = re.sub(r"\{of_rank\}", "", signature.title)
    title = re.sub(r"(\{\w+\})", r"`\1`", title)
    text = f"*{signature.severity}{role}.* {title}."
    parts = [f"\n### {signature.id}\n\n{_wrapped(text)}"]
    parts.append(_wrapped(f"Why: {_plain(signature.cause)}"))
    parts.append(_wrapped(f"What to do: {_plain(signature.advice)}"))
    example = "\n".join(_wrapped(line, "    ") for line in signature.example.splitlines())
    parts.append(f"```text\n{example}\n```")
    if signature.sources:
        parts.append("See " + ", ".join(f"<{source}>" for source in signature.sources) + ".")
    if signature.origin != PACKAGED:
        parts.append(f"From `{signature.origin}`.")
    return "\n\n".join(parts) + "\n"


def _wrapped(text: str, indent: str = "") -> str:
    return textwrap.fill(
        text, _WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )


def _plain(text: str) -> str:
    """Keep what Markdown would read as emphasis or HTML."""
    parts = re.split(r"(`[^`]*`)", text)
    return "".join(
        part if part.startswith("`") else re.sub(r"([*_<])", r"\\\1", part) for part in parts
    )
