"""Question -> what is not known, or only assumed, and how to state or measure it."""

from __future__ import annotations

from collections.abc import Iterator

from hpc_train.advice.question import Question
from hpc_train.model.machine_size import MachineSize
from hpc_train.model.program_size import ProgramSize

_COUNT = "--program MODULE:FUNCTION"


def missing(question: Question) -> Iterator[str]:
    """Yield what is not known, and how to get it."""
    yield from _of_program(question)
    yield from _assumed(question.program)
    yield from _of_batch(question.program)
    if question.measured and question.baseline is None:
        yield "the batch of the measured steps, without which they cannot be compared"
    if not question.measured:
        yield "a measured step: run one size, then give the study or run: --measured STUDY"
    yield from _of_machine(question.machine)


def _of_program(question: Question) -> Iterator[str]:
    program = question.program
    peak = any(one.peak_memory_gib for one in question.measured)
    if program.parameters is None:
        yield f"the number of parameters: --condition parameters=124e6, or {_COUNT}"
    elif program.shape is None and program.activation_bytes is None and not peak:
        yield f"the activations of a sample: {_COUNT}, or a measured peak memory"
    if program.flops_per_sample is None:
        yield f"the operations of a sample: {_COUNT}, or --condition flops_per_sample=6e12"


def _assumed(program: ProgramSize) -> Iterator[str]:
    """Yield what a program of the user's own is taken to do, which changes memory and peak."""
    if program.model is not None:
        return
    taken = {"precision": (program.precision, "bf16"), "optimizer": (program.optimizer, "sgd")}
    for name, (value, other) in taken.items():
        if name not in program.sources:
            yield f"the {name}, taken as {value}; if it is another: --condition {name}={other}"


def _of_batch(program: ProgramSize) -> Iterator[str]:
    if program.global_batch is None and program.batch is None:
        yield "the batch: --condition global_batch=512"
    if program.steps is None:
        yield "the steps of the training: --condition steps=100000"
    elif program.global_batch is None:
        yield (
            "the time to the end, which needs one batch for all sizes: --condition global_batch=512"
        )


def _of_machine(machine: MachineSize) -> Iterator[str]:
    if not machine.gpus_per_node:
        return
    if machine.most_gib is None:
        yield f"the memory of the GPU ({machine.gpu or 'no gpu_model in the profile'})"
    if not machine.node_link:
        yield "the speed of the network: nics_per_node and nic_gbps of the partition"
