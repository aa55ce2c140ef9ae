"""Slurm's reason codes of jobs -> sentences with meaning and remedy."""

from __future__ import annotations

import re
from functools import cache
from typing import Literal

from hpc_train.model.value import Value
from hpc_train.typed_values import load_data

_LIMIT = re.compile(
    r"(?P<whose>Assoc|QOS|)(?P<kind>Grp|Max|Min)(?P<what>[A-Z][A-Za-z]*?)"
    r"(?P<minutes>RunMinutes|Minutes|)(?P<per>Per[A-Z][a-z]+|)(?:Limit|NotSatisfied|)"
)
_WHOSE = {"Assoc": "its account", "QOS": "its QOS", "": "its account"}


class _File(Value, frozen=True, kw_only=True):
    """`slurm_reasons.yaml`: code -> sentence; the word for a resource in a code -> the resource."""

    schema: Literal[1]
    reasons: dict[str, str]
    resources: dict[str, str]


@cache
def _file() -> _File:
    return load_data("slurm_reasons.yaml", _File)


def sentence(reason: str) -> str:
    """Return the meaning of a reason of Slurm, and the remedy if any; empty for no reason."""
    code = reason.strip()
    if code.startswith("(") and code.endswith(")"):
        code = code[1:-1]
    if code in ("", "None", "null"):
        return ""
    # scontrol writes underscores in the place of spaces.
    spaced = code.replace("_", " ")
    known = _file().reasons
    if spaced in known:
        return known[spaced]
    name, tail = _split(code)
    if name in known:
        return f"{known[name]} ({tail})" if tail else known[name]
    limit = _LIMIT.fullmatch(code)
    return _limit(limit) if limit else f"Slurm's reason: {code}"


def _split(code: str) -> tuple[str, str]:
    """Split what Slurm appends: `ReqNodeNotAvail, UnavailableNodes:lab2`, `RaisedSignal:9`."""
    mark = re.search("[,:]", code)
    if mark is None:
        return code, ""
    tail = code[mark.end() :].strip(" _")
    return code[: mark.start()], "" if tail.endswith(":") else tail


def _limit(limit: re.Match[str]) -> str:
    owner, kind, per = _WHOSE[limit["whose"]], limit["kind"], limit["per"]
    what = _file().resources.get(limit["what"], limit["what"].lower())
    if limit["minutes"]:
        what = f"minutes of {what}"
    if kind == "Min":
        return f"it requests less than the minimum of {owner} ({what}); request more"
    if per in ("PerJob", "PerNode"):
        one = per.removeprefix("Per").lower()
        return f"it requests more than {owner} allows for one {one} ({what}); request less"
    if limit["minutes"] == "Minutes" or limit["what"] == "Wall":
        return f"{owner} has used up its budget ({what})"
    jobs = f"the user's jobs in {owner}" if per == "PerUser" else f"the jobs of {owner}"
    return f"{jobs} have reached a limit ({what}); it starts when others end"
