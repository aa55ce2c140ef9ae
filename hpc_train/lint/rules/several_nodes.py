"""Rules on other launchers than torchrun on several nodes: accelerate, DeepSpeed, ssh."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from hpc_train.lint.control_flow import repeats
from hpc_train.lint.job_script import JobScript
from hpc_train.lint.launch_commands import LaunchCommand
from hpc_train.lint.rule import RuleHit, Subject, rule
from hpc_train.lint.rules.rank_and_node_counts import (
    flag_number,
    nodes_of,
    rank_launches,
)
from hpc_train.lint.shell.ast import Command

_RANK = re.compile(r"\$\{?(SLURM_NODEID|SLURM_PROCID)\}?")
_OTHER = {"config-file", "use-deepspeed", "deepspeed-hostfile", "tpu", "rdzv-backend"}
_HOSTS = {"hostfile", "H", "launcher", "no-ssh", "no-ssh-check", "force-multi"}
_MEETS = re.compile(
    r"--(?:nnodes|node[-_]rank|machine[-_]rank|num[-_]machines|rdzv[-_])|\bNODE_RANK=|"
    r"torch\.distributed\.(?:run|launch)|\btorchrun\b"
)
_WITH_VALUE = re.compile(
    r"--(?:(?:main_process|master)[-_](?:ip|addr|port)|num[-_](?:machines|processes|nodes|gpus)|"
    r"machine[-_]rank)"
)
_GROUP_BEHIND = re.compile(r"[)}]\s*&(?![&>])")


@rule(
    "HT230",
    "error",
    "accelerate on several nodes without a rank for each",
    why="accelerate starts one process for each node, which needs its own --machine_rank. Without "
    "it, or with the same rank on every node, the nodes wait for each other until the timeout.",
    advice="pass the rank inside the step: srun … bash -c 'accelerate launch --machine_rank "
    '"$SLURM_NODEID" …\'',
)
def no_machine_rank(subject: Subject) -> Iterator[RuleHit]:
    script = subject.script
    if re.search(r"\bACCELERATE_(?:CONFIG|MACHINE_RANK)", script.text):
        return
    for launch in rank_launches(script):
        machines = flag_number(launch, script, "num-machines")
        if launch.starter != "accelerate" or machines is None or machines < 2:
            continue
        if _OTHER & set(launch.flags) or _hidden(launch) or launch.opaque:
            continue
        said = _wrong_rank(launch, script)
        if said:
            yield RuleHit(line=launch.starter_line, message=said.format(machines))


def _wrong_rank(launch: LaunchCommand, script: JobScript) -> str:
    """Say what is wrong with the rank of an accelerate; empty if it may be right."""
    rank = launch.flags.get("machine-rank")
    if rank is None:
        return "" if "machine-rank" in launch.flags else "--num_machines {}, and no --machine_rank"
    if launch.outer != "srun":
        return ""
    if rank.isdigit() and (nodes_of(launch, script) or 1) > 1:
        return f"--machine_rank {rank} is the same on all {{}} nodes"
    early = {name for word in launch.command.words for name in word.expanded}
    early |= {name for one in script.assignments if one.exported for name in one.word.expanded}
    found = _RANK.fullmatch(script.values.substitute(rank))
    # HT301 finds a rank variable in the command itself, and an exported one.
    if found and not launch.by_shell and found[1] not in early:
        return f"--machine_rank is ${found[1]} of the batch script: 0 on all {{}} nodes"
    return ""


def _hidden(launch: LaunchCommand) -> bool:
    """Whether an unknown word may be an option: it is not the value of one."""
    return any(
        word.text.startswith("$") and not _WITH_VALUE.fullmatch(before.text)
        for before, word in pairwise(launch.command.words)
    )


@rule(
    "HT231",
    "error",
    "deepspeed without a list of hosts",
    why="Without a hostfile the launcher of DeepSpeed uses the GPUs of its own node only, and the "
    "other nodes are idle, or each of them trains for itself.",
    advice="write a hostfile (`HOST slots=GPUS` for each node) and pass --hostfile, or use "
    "srun … torchrun",
)
def no_hostfile(subject: Subject) -> Iterator[RuleHit]:
    script = subject.script
    if re.search(r"/job/hostfile|DLTS_HOSTFILE", script.text):
        return
    for launch in rank_launches(script):
        nodes = nodes_of(launch, script)
        if launch.starter != "deepspeed" or nodes is None or nodes < 2:
            continue
        if _HOSTS & set(launch.flags) or _hidden(launch) or launch.opaque:
            continue
        message = f"deepspeed without --hostfile in a job of {nodes} nodes"
        yield RuleHit(line=launch.starter_line, message=message)


@rule(
    "HT232",
    "error",
    "nodes started one after the other",
    why="ssh and srun return when their command has ended: the loop starts the second node after "
    "the training on the first has ended, which waits for the second.",
    advice="start each in the background and wait for all: ssh … & after the loop: wait",
)
def one_after_another(subject: Subject) -> Iterator[RuleHit]:
    script = subject.script
    if _GROUP_BEHIND.search(script.text):
        return
    for command in (*_ssh_to_variables(script), *_sruns_on_variables(script)):
        text = " ".join(word.text for word in command.words)
        if command.ending not in ("\n", ";") or not _MEETS.search(text) or _behind(text):
            continue
        if repeats(script.around(command)) and not _goes_on(script):
            message = f"{command.program} runs in the foreground of its loop"
            yield RuleHit(line=command.line, message=message)


def _behind(text: str) -> bool:
    """Whether the remote shell puts the command into the background."""
    return "&" in re.sub(r"\d?>&\d?|&>>?|&&", "", text)


def _goes_on(script: JobScript) -> bool:
    """Whether a loop, or a command in one, runs in the background."""
    return any(
        command.ending == "&" and (command.program == "done" or repeats(blocks))
        for command, blocks in script.blocks.items()
    )


def _ssh_to_variables(script: JobScript) -> Iterator[Command]:
    for command in script.runs("ssh"):
        flags = [word.text for word in command.words[1:] if word.text.startswith("-")]
        if "-f" not in flags and any(word.expanded for word in command.words[1:]):
            yield command


def _sruns_on_variables(script: JobScript) -> Iterator[Command]:
    for launch in script.launches:
        option = launch.option("nodelist") if launch.outer == "srun" else None
        if option and "$" in (option.value or ""):
            yield launch.command
