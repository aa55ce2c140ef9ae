"""SlurmAnswer: what Slurm says of a script that it does not run."""

from typing import Literal

from hpc_train.base.slurm_options import Refusal
from hpc_train.base.value import Value
from hpc_train.slurm.live_cluster import Association, LiveNode, LivePartition, LiveQos


class ShellVariable(Value, frozen=True, kw_only=True):
    """A variable of the shell that sbatch reads as an option.

    A `removed` one is for an option that the script sets; the others were effective.
    """

    name: str
    value: str
    option: str
    removed: bool


class SlurmFacts(Value, frozen=True, kw_only=True):
    """What a live Slurm offers; empty where it did not answer."""

    partitions: tuple[LivePartition, ...] = ()
    nodes: tuple[LiveNode, ...] = ()
    associations: tuple[Association, ...] = ()
    qos: tuple[LiveQos, ...] = ()


class SlurmAnswer(Value, frozen=True, kw_only=True):
    """The answer of `sbatch --test-only`; `words` are Slurm's own.

    `subject` is the script that was judged, `warnings` are errors that sbatch prints although it
    accepts the script. `line` and `stray` are the line and the word that sbatch itself names, or 0
    and an empty text.
    """

    outcome: Literal["accepted", "refused", "unanswered"]
    words: str
    subject: str = "the script"
    warnings: tuple[str, ...] = ()
    refusal: Refusal | None = None
    line: int = 0
    stray: str = ""
    variables: tuple[ShellVariable, ...] = ()
    outer_job: str = ""
    facts: SlurmFacts = SlurmFacts()
