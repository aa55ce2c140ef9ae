"""What a failure signature is, and what is seen where one matches."""

from __future__ import annotations

import re
from typing import Literal

from hpc_train.model.value import Value

Group = Literal[
    "slurm",
    "lsf",
    "mpi",
    "torchrun",
    "c10d",
    "nccl",
    "cuda",
    "gpu_hardware",
    "software",
    "filesystem",
    "container",
    "python",
]
Severity = Literal["fatal", "warning", "info", "benign"]
Role = Literal["cause", "consequence"]


class Signature(Value, frozen=True, kw_only=True):
    """One kind of trouble, and the line that tells it.

    `literals`: every line of it holds at least one of them. `pattern` is searched in `Line.text`;
    its named groups fill the `{name}` of `title`, where `{of_rank}` is ` of rank 3` or nothing (see
    `explain`). `role`: whether such a line tells why a job failed, or what followed. `example` is
    what a log says, one line or more.
    """

    id: str
    group: Group
    severity: Severity
    role: Role = "cause"
    literals: tuple[bytes, ...]
    pattern: re.Pattern[str]
    title: str
    cause: str
    advice: str
    example: str
    sources: tuple[str, ...] = ()


class Sighting(Value, frozen=True, kw_only=True):
    """A signature seen in a log.

    `text` is the line, or what the lines of a box or traceback come down to, at most 500
    characters. `time` is ISO 8601 text without a zone, if the line states one. `groups` are the
    named groups of the pattern that took part; those of several lines are put together.
    """

    signature: str
    source: str
    line: int
    text: str
    rank: int | None = None
    node: str | None = None
    time: str | None = None
    groups: tuple[tuple[str, str], ...] = ()
