"""Signatures of what sbatch and srun refuse to read, and of steps whose tasks do not start."""

from __future__ import annotations

import re

from hpc_train.records.signatures.base import Signature

_SBATCH = ("https://slurm.schedmd.com/sbatch.html",)
_SRUN = ("https://slurm.schedmd.com/srun.html",)

SLURM_START = (
    Signature(
        id="slurm_task_launch_failed",
        group="slurm",
        severity="fatal",
        literals=(
            b"Task launch for ",
            b"Application launch failed",
            b" launch failed: ",
            b"timeout waiting for task launch",
        ),
        pattern=re.compile(
            r"(?:Task launch for (?:StepId=)?\S{1,40} failed on node (?P<node>[^\s:]{1,80})"
            r"|Application launch failed|error: task \d{1,7} launch failed): "
            r"(?P<reason>[^\n]{1,160})|timeout waiting for task launch, started \d{1,7} of"
        ),
        title="Slurm could not start the tasks",
        cause="The node is ill, a prolog or plug-in (container) failed there, the working folder"
        " is missing, or the binding does not fit.",
        advice="Read the reason in the line; `--exclude` the node if it is only one, and tell the"
        " site: its slurmd.log says more.",
        example="srun: error: Task launch for StepId=71.0 failed on node n3: Unspecified error",
        sources=_SRUN,
    ),
    Signature(
        id="slurm_unknown_option",
        group="slurm",
        severity="fatal",
        literals=(b": unrecognized option '",),
        pattern=re.compile(
            r"(?P<program>sbatch|srun|salloc): (?:error: )?"
            r"unrecognized option '(?P<option>[^'\s]{1,200})'"
        ),
        title="{program} does not know the option {option}",
        cause="A slip, another version of Slurm, or a plug-in that is not there: --container-* are"
        " options of pyxis.",
        advice="`srun --help | grep container`; on a site without pyxis: apptainer.",
        example="srun: unrecognized option '--container-image=pt.sqsh'",
        sources=_SBATCH,
    ),
    Signature(
        id="slurm_dos_line_breaks",
        group="slurm",
        severity="fatal",
        literals=(b"contains DOS line breaks",),
        pattern=re.compile(r"script contains DOS line breaks"),
        title="The job script has the line ends of Windows",
        cause="It was written or copied by an editor of Windows.",
        advice="`dos2unix SCRIPT` (or `sed -i 's/\\r$//' SCRIPT`), then submit it again.",
        example="sbatch: error: Batch script contains DOS line breaks (\\r\\n)",
        sources=_SBATCH,
    ),
    Signature(
        id="slurm_invalid_gres",
        group="slurm",
        severity="fatal",
        literals=(b"error: Invalid generic resource",),
        pattern=re.compile(r"error: Invalid generic resource \(gres\) specification"),
        title="The site knows no GPUs of the kind that the job asks for",
        cause="The name or type in --gres or --gpus-per-node is not that of the partition.",
        advice="`sinfo -o '%P %G'` shows the names.",
        example="sbatch: error: Invalid generic resource (gres) specification",
        sources=("https://slurm.schedmd.com/gres.html",),
    ),
)
