"""The rule on names of generic resources that are almost `gpu`."""

from __future__ import annotations

import re
from collections.abc import Iterator

from hpc_train.lint.option_parser import Option
from hpc_train.lint.option_values import is_unknown
from hpc_train.lint.rule import RuleHit, Subject, rule

_NAME = re.compile(r"([a-z]{1,9})=?(\d{0,9})")


@rule(
    "HT118",
    "warning",
    "generic resource with almost the name gpu",
    why="--gres takes NAME:NUMBER with the exact name of a resource. sbatch refuses gpus:4, gpu=4 "
    "and gpu4 (Invalid generic resource), unless the site has a resource of this name.",
    advice="write --gres=gpu:N",
)
def almost_gpu(subject: Subject) -> Iterator[RuleHit]:
    for option in _gres_options(subject):
        for request in (option.value or "").split(","):
            meant = "" if is_unknown(request) else _meant(request)
            if meant:
                yield RuleHit(
                    line=option.line,
                    message=f"--gres={option.value}: did you mean {meant}?",
                    advice=f"write {meant} instead of {request}",
                )


def _gres_options(subject: Subject) -> Iterator[Option]:
    for directive in subject.script.live_directives:
        yield from (option for option in directive.options if option.name == "gres")
    for launch in subject.script.launches:
        yield from (option for option in launch.options if option.name == "gres")


def _meant(request: str) -> str:
    """Return the request of GPUs that is meant; empty if the name is gpu, or not like it."""
    name, _, rest = request.removeprefix("gres:").partition(":")
    match = _NAME.fullmatch(name)
    if match is None or name == "gpu":
        return ""
    # Letters that are swapped or doubled, and the plural.
    if set(match[1]) != set("gpu") and match[1] != "gpus":
        return ""
    return ":".join(filter(None, ("gpu", match[2], rest)))
