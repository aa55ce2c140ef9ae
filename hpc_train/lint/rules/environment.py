"""Rules on what ranks find around them: variables and their names, containers, conda."""

import difflib
import re
from collections.abc import Iterator
from functools import cache
from itertools import takewhile
from typing import Literal

from hpc_train.base.decode import load_data
from hpc_train.base.shell import Command, Word, depends
from hpc_train.base.values import Value, older
from hpc_train.base.variable_names_and_secrets import looks_secret, secret_form
from hpc_train.lint.launches import Assignment, flatten
from hpc_train.lint.rule import RuleHit, Subject, rule
from hpc_train.lint.script import JobScript, rank_launches, starts_several, workers_of

_PLACEHOLDER = re.compile(
    r"[<>{}\s]|x{4,}|\*{3,}|your|change-?_?me|/|^\d+$|dummy|fake|example|placeholder|"
    r"not[-_]?needed|replace|insert|_here\b|^(?:empty|none|null|unused|no-key)",
    re.IGNORECASE,
)
_READ_BY_RANKS = re.compile(
    r"(NCCL|UCX|FI|TORCH|PYTORCH|OMP|OMPI_MCA|MPICH|GLOO|HF|WANDB)_\w+|MASTER_(ADDR|PORT)|"
    r"WORLD_SIZE|PYTHONUNBUFFERED"
)
_DEBUG = {
    "CUDA_LAUNCH_BLOCKING": ("1", "makes every kernel launch synchronous"),
    "TORCH_DISTRIBUTED_DEBUG": (
        "DETAIL",
        "checks the consistency of every collective among all ranks",
    ),
    "PYTORCH_NO_CUDA_MEMORY_CACHING": ("1", "allocates every tensor from the driver"),
    "AUTOGRAD_ANOMALY": ("1", "keeps a traceback of every operation"),
    "NCCL_CHECK_POINTERS": ("1", "checks every pointer of every collective"),
}
_USED = re.compile(r"(?:\$\{?|-x\s{1,9})([A-Za-z_]\w*)")


@rule(
    "HT309",
    "error",
    "CUDA_VISIBLE_DEVICES by local rank, and --gpus-per-task",
    advice="do not set CUDA_VISIBLE_DEVICES, and request GPUs with --gpus-per-node",
)
def visible_devices_by_rank(subject: Subject) -> Iterator[RuleHit]:
    script = subject.script
    bound = script.asked.has("gpus-per-task") or any(
        launch.option("gpus-per-task") for launch in script.launches
    )
    for found in script.settings("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES"):
        if bound and {"SLURM_LOCALID", "LOCAL_RANK"} & {*found.word.expanded, *found.word.held}:
            yield RuleHit(
                found.line, f"{found.name} selects a device that is not visible to the rank"
            )


@rule(
    "HT310",
    "info",
    "CUDA_VISIBLE_DEVICES set by the script",
    advice="leave it out; request the GPUs with --gpus-per-node",
)
def visible_devices_by_hand(subject: Subject) -> Iterator[RuleHit]:
    script = subject.script
    for found in script.settings("CUDA_VISIBLE_DEVICES"):
        asked = script.asked.gpus_per_node or script.asked.has("gpus", "gpus-per-task")
        if not re.fullmatch(r"\d+(,\d+)*", found.value) or found.inside == "task":
            continue
        count, workers = found.value.count(",") + 1, _workers(found, script)
        message = f"CUDA_VISIBLE_DEVICES={found.value} replaces what Slurm gives the job"
        if workers > count:
            message = f"CUDA_VISIBLE_DEVICES={found.value} leaves {workers} ranks {count} GPU"
            message += "s" * (count > 1)
            yield RuleHit(found.line, message, severity="warning")
        elif asked:
            yield RuleHit(found.line, message)


def _workers(found: Assignment, script: JobScript) -> int:
    """Return the ranks that one launcher starts with a variable; srun sets it anew for each."""
    is_only = found.name in script.values.once
    for launch in rank_launches(script, outer=""):
        own = found.word in launch.command.assignments
        reaches = own or (is_only and found.exported and found.inside != "command")
        if reaches and not depends(script.around(found)):
            return workers_of(launch, script) or 0
    return 0


@rule("HT311", "warning", "visible GPU that does not exist", advice="set one of them")
def two_device_lists(subject: Subject) -> Iterator[RuleHit]:
    script = subject.script
    first = script.settings("ROCR_VISIBLE_DEVICES")
    left = first[-1].value if first else ""
    one_each = _LOCAL_RANK.fullmatch(left)
    if not one_each and not re.fullmatch(r"\d+(,\d+)*", left):
        return
    count = 1 if one_each else left.count(",") + 1
    for found in script.settings("HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"):
        numbers = [int(text) for text in re.findall(r"\d{1,4}", found.value)]
        if _LOCAL_RANK.fullmatch(found.value) and count == 1:
            message = f"{found.name}={found.value}, but ROCR_VISIBLE_DEVICES leaves only device 0"
            yield RuleHit(found.line, message)
        elif re.fullmatch(r"\d+(,\d+)*", found.value) and max(numbers) >= count:
            left = f"ROCR_VISIBLE_DEVICES leaves 0 to {count - 1}"
            yield RuleHit(found.line, f"{found.name}={found.value}, but {left}")


_LOCAL_RANK = re.compile(r"\$\{?(?:SLURM_LOCALID|LOCAL_RANK|OMPI_COMM_WORLD_LOCAL_RANK)\}?")


@rule(
    "HT410",
    "error",
    "secret in the script",
    advice="export it in the shell that you submit from, or read it from a file that only you "
    "can read: $(cat ~/.config/token)",
)
def secret(subject: Subject) -> Iterator[RuleHit]:
    for found in subject.script.assignments:
        value = found.value
        if not found.literal or len(value) < 8 or found.word.items:
            continue
        named = looks_secret(found.name, value) and not _PLACEHOLDER.search(value)
        if named or secret_form(value):
            yield RuleHit(found.line, f"{found.name} looks like a secret")


@rule("HT413", "warning", "variable that is not exported", advice="write export NAME=value")
def not_exported(subject: Subject) -> Iterator[RuleHit]:
    script = subject.script
    # eval, or an export of computed names, may export any of them.
    if not any(rank_launches(script)) or re.search(r"\beval\b|\bexport +[\"']?\$", script.text):
        return
    used = set(_USED.findall(script.text))
    for found in script.assignments:
        if found.exported or found.inside or not _READ_BY_RANKS.fullmatch(found.name):
            continue
        if found.name not in used:
            message = f"{found.name} is neither exported nor used: the ranks do not inherit it"
            yield RuleHit(found.line, message)


@rule("HT414", "warning", "debug setting left on", advice="remove it when the fault is found")
def debug_left_on(subject: Subject) -> Iterator[RuleHit]:
    for found in subject.script.exported_values(*_DEBUG):
        value, effect = _DEBUG[found.name]
        if found.value.upper() == value:
            yield RuleHit(found.line, f"{found.name}={found.value} {effect}")


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
                    message = f"{name} {words[index + 1].text} without --nv in a job with GPUs"
                    yield RuleHit(word.line, message, severity="warning" if sure else "info")
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
            yield RuleHit(command.line, message, severity="info" if start_up else None)
            return


class NcclVariables(Value, frozen=True, kw_only=True):
    """The table of variables, by name; see the comments of `nccl_variables.yaml`.

    `documented` gives the version that introduced a variable; the items of `undocumented_families`
    are prefixes; `values` are the values that NCCL accepts.
    """

    schema: Literal[1]
    documented: dict[str, str]
    undocumented: tuple[str, ...]
    undocumented_families: tuple[str, ...]
    removed: dict[str, dict[str, str]]
    never_read: dict[str, str]
    read_by_torch: tuple[str, ...]
    values: dict[str, tuple[str, ...]]

    def knows(self, name: str) -> bool:
        """Whether the table contains a variable of that name."""
        tables = (self.documented, self.removed, self.never_read)
        known = {*self.undocumented, *self.read_by_torch}.union(*tables)
        return name in known or name.startswith(self.undocumented_families)


@cache
def nccl_variables() -> NcclVariables:
    """Return the contents of `nccl_variables.yaml`."""
    return load_data("nccl_variables.yaml", NcclVariables)


_PLACES = re.compile(r"_(HOME|ROOT|DIR|PATH|PREFIX|VERSION|LIBRARY|LIB|LIBS|TESTS?|BIN|ARGS|OPTS)$")


def _exported(subject: Subject) -> list[Assignment]:
    """Return the exported NCCL_ variables."""
    return [f for f in subject.script.assignments if f.exported and f.name.startswith("NCCL_")]


@rule("HT501", "warning", "removed NCCL variable", advice="leave it out, or set its successor")
def removed_name(subject: Subject) -> Iterator[RuleHit]:
    version = subject.context.nccl
    for found in _exported(subject):
        removed = nccl_variables().removed.get(found.name)
        if removed is None:
            continue
        gone = removed["version"]
        if not older(version, gone):
            yield RuleHit(
                found.line,
                f"{found.name} has no effect: removed in NCCL {gone}",
                advice=f"instead: {removed['instead']}",
                severity=None if version or older(gone, "2.25") else "info",
            )


@rule("HT502", "warning", "unknown NCCL variable", advice="correct the name, or leave it out")
def unknown_name(subject: Subject) -> Iterator[RuleHit]:
    known = nccl_variables()
    for found in _exported(subject):
        name = found.name
        if name in known.never_read:
            advice = f"instead: {known.never_read[name]}"
            yield RuleHit(found.line, f"no version of NCCL reads {name}", advice=advice)
        elif not known.knows(name) and not _PLACES.search(name):
            read = [*known.documented, *known.undocumented]
            near = difflib.get_close_matches(name, read, n=1, cutoff=0.8)
            hint = f"; did you mean {near[0]}?" if near else ""
            yield RuleHit(
                found.line,
                f"NCCL (up to 2.32) has no variable {name}{hint}",
                # A newer NCCL or a plug-in may read it.
                severity=None if near else "info",
            )


@rule(
    "HT505",
    "warning",
    "NCCL variable from a later version",
    advice="leave it out, or use a newer NCCL",
)
def too_new(subject: Subject) -> Iterator[RuleHit]:
    version = subject.context.nccl
    for found in _exported(subject):
        since = nccl_variables().documented.get(found.name)
        if since and older(version, since):
            yield RuleHit(found.line, f"{found.name} was added in NCCL {since}; this is {version}")


_COMPONENT = re.compile(r"_(?:HET|PACK)_GROUP_\d+$")
_TALK = ("echo", "printf")
_TESTS = ("[", "[[", "test")
_INSTEAD = {
    "SLURM_GPUS_PER_NODE": "use $SLURM_GPUS_ON_NODE, which every job with GPUs has",
    "SLURM_NTASKS_PER_NODE": "add #SBATCH --ntasks-per-node=N",
    "SLURM_CPUS_PER_TASK": "add #SBATCH --cpus-per-task=N",
}


class SlurmVariables(Value, frozen=True, kw_only=True):
    """The names of all variables, and the options without which some are not set."""

    schema: Literal[1]
    names: tuple[str, ...]
    by_option: dict[str, tuple[str, ...]]


@cache
def slurm_variables() -> SlurmVariables:
    """Return the table of Slurm's variables."""
    return load_data("slurm_variables.yaml", SlurmVariables)


def _used(commands: tuple[Command, ...]) -> Iterator[tuple[str, int, Command]]:
    """Yield each use of a Slurm variable, in the batch script or its tasks, with its line."""
    for command in commands:
        for word in (*command.assignments, *command.words):
            for name in word.expanded:
                if name.startswith(("SLURM_", "SLURMD_")):
                    yield name, word.line, command


@rule("HT312", "warning", "unknown Slurm variable", advice="correct the name")
def unknown_variable(subject: Subject) -> Iterator[RuleHit]:
    script = subject.script
    known = slurm_variables().names
    seen = {word.text for command in script.commands for word in command.words}
    seen |= {found.name for found in script.assignments}
    for name, line, _ in _used((*script.commands, *script.task_commands)):
        bare = _COMPONENT.sub("", name)
        # `read` and `for` also give a variable its value.
        if bare in known or name in seen:
            continue
        seen.add(name)
        meant = _meant(bare)
        if meant:
            yield RuleHit(line, f"Slurm sets no variable {name}; did you mean {meant}?")


def _meant(name: str) -> str:
    """Return the variable whose name differs by `_`, `NUM_` for `N`, or a letter; or nothing.

    A site may set any other name, such as SLURM_TMPDIR; CPUS for GPUS is another variable.
    """
    names = slurm_variables().names
    flat, *others = (one.replace("_NUM_", "_N").replace("_", "") for one in (name, *names))
    near = difflib.get_close_matches(flat, others, n=1, cutoff=0.94)
    meant = names[others.index(near[0])] if near else ""
    return meant if ("GPU" in meant) == ("GPU" in name) else ""


@rule(
    "HT313",
    "warning",
    "Slurm variable that is not set",
    advice="request it with the option of the same name",
)
def unset_variable(subject: Subject) -> Iterator[RuleHit]:
    script = subject.script
    if not script.asked.batch or any(directive.group for directive in script.directives):
        return
    # An option of srun sets them for its tasks.
    by_option = slurm_variables().by_option
    seen = {name for one in script.launches for name in by_option if one.option(*by_option[name])}
    for name, line, command in _used((*script.commands, *script.task_commands)):
        options = by_option.get(name)
        if options is None or name in seen or command.program in _TALK:
            continue
        # Whether the script requests what the variable counts, by another option.
        asked = script.asked
        counted = asked.has("nodes", "ntasks", "ntasks-per-node")
        concerns = asked.gpus if name == "SLURM_GPUS_PER_NODE" else counted
        if asked.has(*options) or not concerns or _guarded(script, name):
            continue
        seen.add(name)
        yield RuleHit(line, f"{name} is not set: it needs --{options[0]}", advice=_INSTEAD[name])


def _guarded(script: JobScript, name: str) -> bool:
    """Whether the script sets the variable, tests it, or has a default for it."""
    if script.sets(name) or re.search(rf"\$\{{{name}(?:\[[^]]{{0,9}}\])?[:=?+-]", script.text):
        return True
    tests = [command for command in script.commands if command.program in _TESTS]
    return any(name in word.expanded for command in tests for word in command.words)
