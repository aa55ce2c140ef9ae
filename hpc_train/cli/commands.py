"""The commands of `hpctrain` and the page of `hpctrain --help`; neither needs click."""

import textwrap

WIDTH = 78
# Name -> `module:attr` and help text; click would import every command to list them.
COMMANDS = {
    "submit": ("hpc_train.cli.submit:submit", "Submit a job, a study or a script."),
    "render": ("hpc_train.cli.render:render", "Print the job script."),
    "explain": (
        "hpc_train.cli.render:explain",
        "Print every setting, directive, variable and argument: value, origin, why.",
    ),
    "advise": (
        "hpc_train.cli.advise:advise",
        "Advise whether to distribute a training, how, and on how many GPUs.",
    ),
    "lint": (
        "hpc_train.cli.lint:lint",
        "Find errors in any job script, and print what to write instead.",
    ),
    "status": (
        "hpc_train.cli.runs:status",
        "Print the state of one run, of the runs of a job or study, or of all runs.",
    ),
    "logs": (
        "hpc_train.cli.runs:logs",
        "Print a run's logs, rank by rank; those of a failed run begin with the rank that failed.",
    ),
    "cancel": ("hpc_train.cli.runs:cancel", "Cancel the unfinished runs of a job or study."),
    "retry": (
        "hpc_train.cli.runs:retry",
        "Resubmit the runs that failed, were lost or were cancelled.",
    ),
    "collect": (
        "hpc_train.cli.report:collect",
        "Print the measurements in the logs of runs and studies, or in any log files.",
    ),
    "report": (
        "hpc_train.cli.report:report",
        "Report how a study, logs, records, or a CSV table scale.",
    ),
    "compare": (
        "hpc_train.cli.report:compare",
        "Compare two results at each point, and list the settings that differ.",
    ),
    "diagnose": (
        "hpc_train.cli.diagnose:diagnose",
        "Print why a run, or the job of any log files, failed: the root cause first.",
    ),
    "site": ("hpc_train.cli.site:site", "List, show, check, draft and test site profiles."),
    "bench": (
        "hpc_train.cli.bench:bench",
        "Measure the collectives of torch.distributed, as nccl-tests does.",
    ),
    "doctor": (
        "hpc_train.cli.doctor:doctor",
        "Inspect this machine and report problems; exit code 1 if jobs cannot work.",
    ),
    "lab": ("hpc_train.cli.lab:lab", "Run a Slurm cluster of several nodes on this machine."),
    "help": (
        "hpc_train.cli.help:help_topic",
        "Print a page of the documentation or the help of a command, or list the pages.",
    ),
    "completion": (
        "hpc_train.cli.help:completion",
        "Print the completion script of a shell.",
    ),
}

# Two worked examples of each command, for the end of its help.
EXAMPLES = {
    "submit": (
        "hpctrain submit train.py --tasks-per-node 2 --wait -- --epochs 3",
        "hpctrain submit job.yaml --site leonardo --set time=2h --dry-run",
    ),
    "render": (
        "hpctrain render job.yaml --site leonardo -o job.sbatch",
        "hpctrain render train.py --nodes 2 --plain",
    ),
    "explain": (
        "hpctrain explain job.yaml --site leonardo",
        "hpctrain explain my-job --json",
    ),
    "advise": (
        "hpctrain advise job.yaml --site perlmutter --gpus 32 --deadline 24h",
        "hpctrain advise study.yaml --measured my-study --json",
    ),
    "lint": ("hpctrain lint job.sbatch", "hpctrain lint job.sbatch --site leonardo --json"),
    "status": ("hpctrain status", "hpctrain status my-study --watch"),
    "logs": ("hpctrain logs my-job --follow", "hpctrain logs my-job --rank 3 --lines 50"),
    "cancel": ("hpctrain cancel my-job", "hpctrain cancel my-study --results /scratch/results"),
    "retry": ("hpctrain retry my-study", "hpctrain retry my-job --set time=2h --wait"),
    "collect": (
        "hpctrain collect my-study -o records.csv",
        "hpctrain collect job.out --pattern 'step_time[ms]=took ([0-9.]+)' --json",
    ),
    "report": (
        "hpctrain report my-study -o report.html",
        "hpctrain report 1-node.log 2-nodes.log --points points.yaml --check",
    ),
    "compare": (
        "hpctrain compare before after",
        "hpctrain compare srun.csv torchrun.csv --check",
    ),
    "diagnose": ("hpctrain diagnose my-job", "hpctrain diagnose slurm-4711.out --json"),
    "site": ("hpctrain site list", "hpctrain site show leonardo"),
    "bench": (
        "hpctrain bench allreduce --ranks 2",
        "hpctrain bench allgather --site leonardo --nodes 2 --gpus-per-node 4 -e 8G --wait",
    ),
    "doctor": ("hpctrain doctor", "hpctrain doctor --json"),
    "lab": ("hpctrain lab up", "hpctrain lab status"),
    "help": ("hpctrain help", "hpctrain help events"),
    "completion": ("hpctrain completion bash", "hpctrain completion fish"),
}

_USAGE = """\
Usage: hpctrain [OPTIONS] COMMAND [ARGS]...

  Run PyTorch training on clusters, and measure how it scales.

  Start with: hpctrain submit train.py --tasks-per-node 2 --wait

Options:
  -v, --version  Show the version and exit.
  -h, --help     Show this message and exit.

Commands:
"""


def help_page() -> str:
    """Return the page of `hpctrain --help`, for a terminal of 80 columns."""
    column = max(map(len, COMMANDS)) + 2
    rows = (
        textwrap.fill(
            text, WIDTH, initial_indent=f"  {name:{column}}", subsequent_indent=" " * (column + 2)
        )
        for name, (_, text) in COMMANDS.items()
    )
    return _USAGE + "\n".join(rows) + "\n"


def examples_text(name: str) -> str:
    """Return the examples of a command as lines that click does not wrap."""
    return "\n".join(["\b", "Examples:", *(f"  {line}" for line in EXAMPLES[name])])
