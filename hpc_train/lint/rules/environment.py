"""Rules on what ranks find around them: containers and conda environments."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import takewhile

from hpc_train.base.finding import Severity
from hpc_train.base.shell import Word
from hpc_train.lint.launches import flatten
from hpc_train.lint.rule import RuleHit, Subject, rule
from hpc_train.lint.script import rank_launches, starts_several

_PROGRAMS = ("apptainer", "singularity")
_TRAINS = re.compile(r"^(?:python[\d.]{0,9}|torchrun|accelerate|deepspeed)$")
_WHOLE = re.compile(r"\$(?:\w+|\{\w+\})|\"?\$\{\w+\[[@*]\]\}\"?")
_SET = re.compile(r"(?:SINGULARITY|APPTAINER)_(?:NV|ROCM|NVCCLI)\b|--(?:nv|rocm|nvccli)\b")
_NVIDIA = re.compile(r"nvidia|cuda|nccl|(?<![a-z])(?:[abhv][12]00|[alt]40?|gh200)\b", re.IGNORECASE)
# Containers on AMD's GPUs find the devices without an option, where the libraries are inside.
_AMD = re.compile(
    r"rocm|rocr_|hip_|miopen|\bmi[23]\d\d|lumi\b|lumi[-_]|(?:standard|small|dev)-g\b", re.I
)


@rule(
    "HT115",
    "info",
    "container without GPUs",
    why="Without --nv (AMD: --rocm) Apptainer and Singularity mount neither the driver nor its "
    "libraries, and torch.cuda.is_available() is false in the container, unless the site's "
    "configuration or module sets it. A warning where the script names NVIDIA's software.",
    advice="write apptainer exec --nv IMAGE … (--rocm for AMD)",
)
def container_without_gpus(subject: Subject) -> Iterator[RuleHit]:
    script = subject.script
    if not script.asked.gpus:
        return
    if _SET.search(script.text) or _AMD.search(script.text):
        return
    for command in script.commands:
        words = flatten(command.words, script.values)
        for index, word in enumerate(words[:-1]):
            name = word.text.rpartition("/")[2]
            if name in _PROGRAMS and words[index + 1].text in ("exec", "run"):
                rest = words[index + 1 :]
                # A program that is not Python may need no GPU.
                runscript = rest[0].text == "run" and len(rest) == 2 and rest[1].text[0] != "$"
                if runscript or _trains(rest):
                    sure = not runscript and _NVIDIA.search(script.text)
                    severity: Severity = "warning" if sure else "info"
                    message = f"{name} {words[index + 1].text} without --nv in a job with GPUs"
                    yield RuleHit(word.line, message, severity=severity)
                break


def _trains(words: tuple[Word, ...]) -> bool:
    """Whether a container certainly starts Python, and no unknown word can hold an option."""
    program = next(
        (i for i, word in enumerate(words) if _TRAINS.match(word.text.rpartition("/")[2])), 0
    )
    following = [word.text for word in words[program + 1 : program + 3]]
    asks = following[:1] in ([], ["-c"], ["-V"], ["--version"]) or following == ["-m", "pip"]
    # An unknown word other than the image may hold options.
    hidden = any(_WHOLE.fullmatch(word.raw) for word in words[: max(program - 1, 0)])
    return program > 0 and not hidden and not asks


@rule(
    "HT119",
    "warning",
    "container without the variables of its rank",
    why="--cleanenv (-e) and --containall (-C) keep the host's variables out of the container, "
    "also SLURM_PROCID, RANK and MASTER_ADDR: each rank believes that it is alone.",
    advice="leave the option out, or pass them: --env MASTER_ADDR=…,SLURM_PROCID=…",
)
def clean_environment(subject: Subject) -> Iterator[RuleHit]:
    script = subject.script
    if re.search(r"--env\b|--env-file|(?:SINGULARITY|APPTAINER)ENV_", script.text):
        return
    for launch in rank_launches(script):
        several = launch.outer == "mpirun" or starts_several(launch, script)
        inside = iter(launch.texts)
        if not several or not any(text.rpartition("/")[2] in _PROGRAMS for text in inside):
            continue
        for text in takewhile(lambda text: not _TRAINS.match(text), inside):
            if text in ("--cleanenv", "-e", "--containall", "-C"):
                message = f"{text} drops SLURM_*, RANK and MASTER_ADDR from the environment"
                yield RuleHit(launch.line, message)
                break


_START_UP = re.compile(r"(?:^|/)\.(?:bashrc|bash_profile|profile)$")
_CONDA = ("conda", "mamba", "micromamba")


@rule(
    "HT418",
    "warning",
    "conda activate without its function",
    why="`conda activate` is a function that the start-up file of an interactive shell defines; a "
    "batch script has none (CommandNotFoundError), and goes on with another Python. An info where "
    "it reads .bashrc, which on some systems returns at once when the shell is not interactive.",
    advice='write source "$(conda info --base)/etc/profile.d/conda.sh" before it, or begin the '
    "script with #!/bin/bash -l",
)
def bare_activation(subject: Subject) -> Iterator[RuleHit]:
    script = subject.script
    if not script.asked.batch or re.match(r"#!.{0,99}\s(?:-\w{0,9}[li]|--login)", script.lines[0]):
        return
    start_up = ""
    for command in script.commands:
        texts = [word.text for word in command.words]
        if command.program in ("source", "."):
            if not _START_UP.search("".join(texts[1:2])):
                # The file may define it.
                return
            start_up = f"; {texts[1]} may not define it in a batch script"
        elif command.program == "eval" or re.match(
            r"(?:module|ml) .*(?:conda|mamba|forge)", " ".join(texts)
        ):
            return
        elif command.program in _CONDA and texts[1:2] == ["activate"]:
            message = f"{command.program} activate is not defined here{start_up}"
            severity: Severity | None = "info" if start_up else None
            yield RuleHit(command.line, message, severity=severity)
            return
