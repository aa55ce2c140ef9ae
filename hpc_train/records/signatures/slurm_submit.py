"""Signatures of jobs and steps that Slurm does not start: sbatch, srun and the controller."""

from __future__ import annotations

import re

from hpc_train.records.signatures.base import Signature

_SBATCH = ("https://slurm.schedmd.com/sbatch.html",)
_SRUN = ("https://slurm.schedmd.com/srun.html",)
_STEP = (b"Unable to create step for job",)
_JOB = (b"Batch job submission failed", b"Unable to allocate resources")
_REFUSED = r"(?:Batch job submission failed|Unable to allocate resources): "


def _step(reason: str) -> re.Pattern[str]:
    return re.compile(rf"Unable to create step for job (?P<job>\d{{1,12}}): {reason}")


SLURM_SUBMIT = (
    Signature(
        id="slurm_step_too_many_cpus",
        group="slurm",
        severity="fatal",
        literals=_STEP,
        pattern=_step("More processors requested than permitted"),
        title="srun asks for more processors than job {job} has",
        cause="Tasks x cpus of srun are more than sbatch asked for; srun inside srun; since 22.05"
        " srun does not take over --cpus-per-task.",
        advice="`export SRUN_CPUS_PER_TASK=$SLURM_CPUS_PER_TASK`, and the same --ntasks for sbatch"
        " and srun; unset inherited SLURM_* variables.",
        example="srun: error: Unable to create step for job 71: More processors requested than"
        " permitted",
        sources=_SRUN,
    ),
    Signature(
        id="slurm_step_memory",
        group="slurm",
        severity="fatal",
        literals=_STEP,
        pattern=_step("Memory required by task is not available"),
        title="srun asks for more memory than job {job} has left",
        cause="Another step holds the memory, or srun's --mem is larger than the job's.",
        advice="`srun --mem=0` shares the job's memory; `--overlap` beside a running step.",
        example="srun: error: Unable to create step for job 71: Memory required by task is not"
        " available",
        sources=_SRUN,
    ),
    Signature(
        id="slurm_step_configuration",
        group="slurm",
        severity="fatal",
        literals=_STEP,
        pattern=_step("Requested node configuration is not available"),
        title="srun asks for nodes or GPUs that job {job} does not have",
        cause="--nodes, --gpus or --gres of srun do not fit the allocation.",
        advice="Leave out of srun what sbatch already says.",
        example="srun: error: Unable to create step for job 71: Requested node configuration is not"
        " available",
        sources=_SRUN,
    ),
    Signature(
        id="slurm_step_not_created",
        group="slurm",
        severity="fatal",
        literals=_STEP,
        pattern=_step(r"(?P<reason>[^\n]{1,160})"),
        title="Slurm did not start a step of job {job}: {reason}",
        cause="The job ends already, or the step does not fit it.",
        advice="If the job is ending, look for why; else compare srun's options with sbatch's.",
        example="srun: error: Unable to create step for job 71: Job/step already completing or"
        " completed",
        sources=_SRUN,
    ),
    Signature(
        id="slurm_submit_configuration",
        group="slurm",
        severity="fatal",
        literals=_JOB,
        pattern=re.compile(
            f"{_REFUSED}(?P<reason>Requested node configuration is not available"
            r"|Node count specification invalid|Invalid generic resource[^\n]{0,40}"
            r"|Invalid feature specification|CPU count per node can not be satisfied"
            r"|Memory specification can not be satisfied|Invalid Trackable RESource[^\n]{0,40})"
        ),
        title="No node can give what the job asks for: {reason}",
        cause="More GPUs, processors or memory per node than any node of the partition has, or a"
        " gres or feature that it does not know.",
        advice="Compare with `sinfo -p PARTITION -o '%D %c %m %G %f'`; `hpctrain lint --site`.",
        example="sbatch: error: Batch job submission failed: Requested node configuration is not"
        " available",
        sources=_SBATCH,
    ),
    Signature(
        id="slurm_submit_account",
        group="slurm",
        severity="fatal",
        literals=_JOB,
        pattern=re.compile(
            f"{_REFUSED}(?P<reason>Invalid account[^\\n]{{0,60}}|Invalid qos specification"
            r"|Invalid partition name specified|User's group not permitted[^\n]{0,40})"
        ),
        title="The account, partition or qos is not yours: {reason}",
        cause="The account may not use this partition or qos, or a name is mistyped.",
        advice="`sacctmgr show assoc user=$USER format=account,partition,qos` shows what you may"
        " use.",
        example="sbatch: error: Batch job submission failed: Invalid account or account/partition"
        " combination specified",
        sources=_SBATCH,
    ),
    Signature(
        id="slurm_submit_limit",
        group="slurm",
        severity="fatal",
        literals=_JOB,
        pattern=re.compile(
            f"{_REFUSED}(?P<reason>Requested time limit is invalid[^\\n]{{0,60}}"
            r"|Job violates accounting/QOS policy[^\n]{0,120}"
            r"|Job size specification needs[^\n]{0,60})"
        ),
        title="The job is above a limit: {reason}",
        cause="The time, the number of jobs or of GPUs is more than the qos or partition allows.",
        advice="`sacctmgr show qos`, `scontrol show partition`; less time, or wait for your jobs.",
        example="sbatch: error: Batch job submission failed: Requested time limit is invalid"
        " (missing or exceeds some limit)",
        sources=_SBATCH,
    ),
    Signature(
        id="slurm_controller",
        group="slurm",
        severity="warning",
        literals=(
            b"Socket timed out on send/recv",
            b"Unable to contact slurm controller",
            b"Zero Bytes were transmitted",
        ),
        pattern=re.compile(
            r"Socket timed out on send/recv operation|Unable to contact slurm controller"
            r"|Zero Bytes were transmitted or received"
        ),
        title="A daemon of Slurm did not answer",
        cause="It is busy or restarting, or the authentication (munge) failed.",
        advice="See with `squeue --me` whether the job is there before you submit it again.",
        example="sbatch: error: Batch job submission failed: Socket timed out on send/recv"
        " operation",
        sources=("https://slurm.schedmd.com/big_sys.html",),
    ),
    Signature(
        id="slurm_submit_refused",
        group="slurm",
        severity="fatal",
        literals=_JOB,
        pattern=re.compile(_REFUSED + r"(?P<reason>[^\n]{1,160})"),
        title="Slurm refused the job: {reason}",
        cause="An option of the job does not fit the site.",
        advice="`sbatch --test-only`; `hpctrain lint --site`; ask the site.",
        example="sbatch: error: Batch job submission failed: Access/permission denied",
        sources=_SBATCH,
    ),
    Signature(
        id="slurm_tasks_per_node_ignored",
        group="slurm",
        severity="warning",
        literals=(b"can't honor --ntasks-per-node",),
        pattern=re.compile(r"can't honor --ntasks-per-node set to (?P<number>\d{1,6})"),
        title="srun ignores --ntasks-per-node={number}: ranks are laid out in another way",
        cause="SLURM_NTASKS of the surrounding job says another number of tasks.",
        advice="Say --nodes, --ntasks and --ntasks-per-node to srun, so that they agree.",
        example="srun: warning: can't honor --ntasks-per-node set to 8 which doesn't match the"
        " requested tasks 4 with the number of requested nodes 2. Ignoring --ntasks-per-node.",
        sources=_SRUN,
    ),
    Signature(
        id="slurm_layout",
        group="slurm",
        severity="fatal",
        literals=(b"Unable to layout tasks on given cpus", b"Unable to satisfy cpu bind"),
        pattern=re.compile(
            r"Unable to layout tasks on given cpus|Unable to satisfy cpu bind request"
        ),
        title="The tasks do not fit the processors that the job has on a node",
        cause="--cpu-bind, --cpus-per-task or --threads-per-core do not fit the allocation.",
        advice="The same --cpus-per-task for sbatch and srun; no --cpu-bind, or `--exclusive`.",
        example="slurmstepd: error: task/affinity: Unable to layout tasks on given cpus",
        sources=("https://slurm.schedmd.com/mc_support.html",),
    ),
    Signature(
        id="numactl_invalid_cpus",
        group="slurm",
        severity="fatal",
        literals=(b"is a comma delimited list", b"> is invalid", b"sched_setaffinity: Invalid"),
        pattern=re.compile(
            r"<[\d,-]{1,400}> is invalid|<\w{1,20}> is a comma delimited list"
            r"|sched_setaffinity: Invalid argument"
        ),
        title="A binding to processors names some that the job does not have",
        cause="The list of numactl or of a binding script does not fit the job's cpuset.",
        advice="Whole nodes (`--exclusive`), or leave the binding to `srun --cpu-bind`.",
        example="libnuma: Warning: cpu argument <0-7,64-71> is invalid",
    ),
    Signature(
        id="slurm_noise",
        group="slurm",
        severity="benign",
        literals=(
            b"Failed to get Compute running procs",
            b"_is_a_lwp: open()",
            b"Using sched_affinity for tasks",
        ),
        pattern=re.compile(
            r"NVML: Failed to get Compute running procs|_is_a_lwp: open\(\) \S{1,80} failed"
            r"|Using sched_affinity for tasks"
        ),
        title="slurmstepd grumbles about how it counts processes",
        cause="NVML has more processes than expected, or one has just ended.",
        advice="Nothing to do.",
        example="slurmstepd: error: NVML: Failed to get Compute running procs(7): Insufficient"
        " Size",
    ),
)
