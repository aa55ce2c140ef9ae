"""The rule on containers of Apptainer and Singularity that see no GPU."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from hpc_train.lint.launches import flatten
from hpc_train.lint.rule import RuleHit, Subject, rule
from hpc_train.lint.shell import Word
from hpc_train.model.finding import Severity

_PROGRAMS = ("apptainer", "singularity")
_TRAINS = re.compile(r"^(?:python[\d.]{0,9}|torchrun|accelerate|deepspeed)$")
_WHOLE = re.compile(r"\"?\$(?:\w+|\{\w+(?:\[[@*]\])?\})\"?")
_WITH_VALUE = frozenset(
    """
    -B --bind --pwd --cwd -H --home --env --env-file -o --overlay -W --workdir -S --scratch --mount
    --network --security --app --hostname --fusemount
    """.split()
)
_SET = re.compile(r"(?:SINGULARITY|APPTAINER)_(?:NV|ROCM|NVCCLI)\b")


@rule(
    "HT115",
    "warning",
    "container without GPUs",
    why="Without --nv (AMD: --rocm) Apptainer and Singularity mount neither the driver nor its "
    "libraries, and torch.cuda.is_available() is false in the container.",
    advice="write apptainer exec --nv IMAGE … (--rocm for AMD)",
)
def container_without_gpus(subject: Subject) -> Iterator[RuleHit]:
    script = subject.script
    asked, kind = script.asked, script.asked.value("gres") or ""
    named = asked.has("gpus", "gpus-per-node", "gpus-per-task", "gpus-per-socket")
    if (
        not (named or ("gpu" in kind and kind != "gpu:0"))
        or _SET.search(script.text)
        or re.search(r"--(?:nv|rocm|nvccli)\b", script.text)
    ):
        return
    for command in script.commands:
        words = flatten(command.words, script.values)
        for index, word in enumerate(words[:-1]):
            name = word.text.rpartition("/")[2]
            if name in _PROGRAMS and words[index + 1].text in ("exec", "run"):
                rest = words[index + 1 :]
                # A program that is not Python may need no GPU.
                severity: Severity | None = "warning" if _trains(rest) else None
                if rest[0].text == "run" and len(rest) == 2 and rest[1].text[0] != "$":
                    severity = "info"
                if severity:
                    message = f"{name} {words[index + 1].text} without --nv in a job with GPUs"
                    yield RuleHit(line=word.line, message=message, severity=severity)
                break


def _trains(words: tuple[Word, ...]) -> bool:
    """Whether a container certainly starts Python, and no unknown word can hold an option."""
    program = next(
        (i for i, word in enumerate(words) if _TRAINS.match(word.text.rpartition("/")[2])), 0
    )
    following = [word.text for word in words[program + 1 : program + 3]]
    asks = following[:1] in ([], ["-c"], ["-V"], ["--version"]) or following == ["-m", "pip"]
    # An unknown word is neither the image nor an option's value.
    hidden = any(
        _WHOLE.fullmatch(word.raw) and before.text not in _WITH_VALUE
        for before, word in pairwise(words[: max(program - 1, 0)])
    )
    return program > 0 and not hidden and not asks
