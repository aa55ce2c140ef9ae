"""Rules on mpirun and on the settings of Open MPI."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise, takewhile

from hpc_train.lint.launches import LaunchCommand
from hpc_train.lint.rule import RuleHit, Subject, rule
from hpc_train.lint.rules.header import other_system
from hpc_train.lint.script import JobScript, rank_launches

_BINDING = ("--bind-to", "--map-by", "-bind-to", "-map-by", "--rankfile", "-rf", "--cpu-set")
OTHER_MPI = re.compile(r"\b(impi|intel-?mpi|mpich|mvapich2?|hydra)\b|I_MPI_", re.IGNORECASE)
_OPEN_MPI = re.compile(r"open-?mpi|ompi|orte|prte|hpcx|--?mca|--bind-to|--map-by", re.IGNORECASE)
_OTHER_OPTION = re.compile(
    r"^(--?ppn|--cpu-bind|--depth|-perhost|-genv|-genvall|-env|-envall|-f|-hosts|-bootstrap|-iface)"
    r"(=|$)"
)
_STARTED = re.compile(r"(?:.{0,200}/)?(?:python[\d.]{0,9}|bash|sh|torchrun)")
# Its own words on how many ranks each host has.
OWN_PLACES = re.compile(
    r"oversubscribe|overload|ppr:|(?:^| )--?(?:host|H|npernode|N|ppn)\b", re.IGNORECASE
)


def _mpiruns(subject: Subject) -> Iterator[tuple[LaunchCommand, list[str]]]:
    """Yield the launches by Open MPI's mpirun, with its own arguments."""
    site = subject.context.site
    # The mpiexec of Cray PALS is another program.
    of_pals = site is not None and site.pbs is not None and site.pbs.starter == "pals"
    if of_pals or OTHER_MPI.search(subject.script.text) or other_system(subject.script)[1]:
        return
    for launch in subject.script.launches:
        if launch.outer != "mpirun" or len(launch.words) < 2:
            continue
        texts = list(takewhile(lambda text: not _STARTED.fullmatch(text), launch.texts))
        if not any(text == "--version" or _OTHER_OPTION.match(text) for text in texts):
            yield launch, texts


def _is_open_mpi(subject: Subject) -> bool:
    """Whether the script, or the site, names Open MPI; mpirun is also that of other MPIs."""
    site = subject.context.site
    stated = site is not None and site.launchers.openmpi is not None
    return stated or _OPEN_MPI.search(subject.script.text) is not None


@rule(
    "HT601",
    "warning",
    "mpirun with its default binding",
    why="mpirun binds each rank by default, to one core or to a socket: threads and data "
    "loaders then share it.",
    advice="write mpirun --map-by ppr:N:node --bind-to none (or --map-by ppr:N:node:PE=CORES)",
)
def mpirun_binding(subject: Subject) -> Iterator[RuleHit]:
    script, asked = subject.script, subject.script.asked
    if re.search(r"hwloc_base_binding_policy|rmaps_base_mapping_policy|PRTE_MCA_", script.text):
        return
    for launch, texts in _mpiruns(subject):
        # A rank with one core loses nothing by its binding.
        threads = asked.has("exclusive", "cpus-per-gpu") or (asked.cpus_per_task or 1) > 1
        if not threads and (launch.starter == "" or asked.batch):
            continue
        hidden = any(
            text.startswith("$") and not before.startswith("-")
            for before, text in pairwise(["", *texts])
        )
        if not any(text.startswith(_BINDING) for text in texts) and not hidden:
            yield RuleHit(
                launch.line,
                "neither --map-by nor --bind-to",
                severity=None if _is_open_mpi(subject) else "info",
            )


@rule(
    "HT606",
    "error",
    "mpirun with more ranks than tasks",
    why="Inside a Slurm job mpirun uses the tasks as slots, and refuses to start more ranks.",
    advice='write mpirun -np "$SLURM_NTASKS", or omit -np: the default is all slots',
)
def more_than_slots(subject: Subject) -> Iterator[RuleHit]:
    script = subject.script
    for launch, texts in _mpiruns(subject):
        wanted = ranks_wanted(texts, script)
        slots = script.asked.tasks if script.asked.batch else None
        if wanted and slots and wanted > slots and not _placed(texts):
            message = f"-np {wanted}, but the job has {slots} task{'s' * (slots > 1)}"
            # Another MPI starts them, and they share the cores.
            yield RuleHit(
                launch.line, message, severity=None if _is_open_mpi(subject) else "warning"
            )


@rule(
    "HT608",
    "warning",
    "mpirun with fewer ranks than tasks",
    why="The other tasks of the job, with their cores and GPUs, are charged and idle.",
    advice='write mpirun -np "$SLURM_NTASKS", or omit -np: the default is all tasks',
)
def fewer_than_tasks(subject: Subject) -> Iterator[RuleHit]:
    script = subject.script
    runs = [launch for launch in rank_launches(script) if launch.outer == "mpirun"]
    tasks = script.asked.tasks
    if len(runs) != 1 or tasks is None or runs[0].command.ending == "&":
        return
    texts = runs[0].texts
    if runs[0].starter != "python" or _placed(texts) or "-map-by" in " ".join(texts):
        return
    wanted = ranks_wanted(texts, script)
    if wanted is not None and 1 < wanted < tasks and wanted != script.asked.nodes:
        message = f"-np {wanted}, but the job has {tasks} tasks"
        gpus, nodes = script.asked.gpus_per_node, script.asked.nodes
        others = script.asked.has("gpus", "gpus-per-task", "gres")
        # Tasks can be a way to request cores: only idle GPUs are certainly a mistake.
        if gpus and nodes and wanted < gpus * nodes:
            yield RuleHit(runs[0].line, message)
        elif not (gpus and nodes) and "OMP_NUM_THREADS" not in script.text and not others:
            yield RuleHit(runs[0].line, message, severity="info")


def _placed(texts: list[str]) -> bool:
    """Whether an mpirun says itself which hosts have how many ranks, also in a file."""
    text = " ".join(texts)
    return OWN_PLACES.search(text) is not None or re.search("file| -f ", text) is not None


def ranks_wanted(texts: list[str], script: JobScript) -> int | None:
    """Return how many ranks an mpirun starts, if its arguments say it."""
    for text, following in pairwise([*texts, ""]):
        name, equals, value = text.partition("=")
        if name in ("-np", "-n", "--np", "--n", "-c"):
            return script.values.number(value if equals else following)
    return None
