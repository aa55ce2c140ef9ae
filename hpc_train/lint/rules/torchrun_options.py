"""The rule on misspelled options of torchrun."""

from __future__ import annotations

import difflib
from collections.abc import Iterator

from hpc_train.lint.launch_commands import LaunchCommand
from hpc_train.lint.rule import RuleHit, Subject, rule
from hpc_train.lint.rules.rank_and_node_counts import torchruns

OPTIONS = (
    "help", "nnodes", "nproc-per-node", "rdzv-backend", "rdzv-endpoint", "rdzv-id", "rdzv-conf",
    "standalone", "max-restarts", "monitor-interval", "start-method", "event-log-handler", "role",
    "module", "no-python", "run-path", "log-dir", "redirects", "tee", "local-ranks-filter",
    "duplicate-stdout-filters", "duplicate-stderr-filters", "node-rank", "master-addr",
    "master-port", "local-addr", "logs-specs", "numa-binding", "signals-to-handle",
    "shutdown-timeout", "virtual-local-rank", "log-line-prefix-template", "use-env",
)  # fmt: skip


@rule(
    "HT233",
    "error",
    "misspelled option of torchrun",
    why="torchrun stops at an option that it does not know (unrecognized arguments). Only names "
    "that are almost those of an option are reported.",
    advice="torchrun --help lists the options",
)
def misspelt(subject: Subject) -> Iterator[RuleHit]:
    for launch in torchruns(subject.script):
        for name, meant in list(misspelt_options(launch).items())[:1]:
            yield RuleHit(
                line=launch.starter_line,
                message=f"torchrun has no --{name}; did you mean --{meant}?",
                advice=f"write --{meant}",
            )


def misspelt_options(launch: LaunchCommand) -> dict[str, str]:
    """Return the options that torchrun does not have, with those that are meant."""
    # argparse completes the beginning of a name.
    unknown = [n for n in launch.flags if len(n) > 1 and not any(o.startswith(n) for o in OPTIONS)]
    near = {name: difflib.get_close_matches(name, OPTIONS, n=1, cutoff=0.8) for name in unknown}
    return {name: found[0] for name, found in near.items() if found}
