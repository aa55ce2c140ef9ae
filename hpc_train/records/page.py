"""Registered parsers -> the page *Supported logs*."""

from __future__ import annotations

from collections.abc import Mapping

from hpc_train.model.record import UNITS
from hpc_train.records.parsers.base import LogParser

_HEAD = """# Supported logs

`hpctrain collect PATH…` and `hpctrain report PATH…` read logs of runs and studies, and logs
that anybody has. This page is written by `hpctrain collect --list --markdown`.

```console
$ hpctrain collect slurm-4711.out
$ hpctrain collect 'logs/rank-*.out' --json
$ hpctrain collect nccl.log --format nccl_tests -o bandwidth.csv
```

- **Which format.** Each line is offered to every parser that looks for a word on it, in the order
  of this page; the first one that can read it has it. So one file may hold several formats. On
  stderr stand the formats that were found, how many lines of each, and the first one. `--format`
  names one instead.
- **Scope.** `global`: of the whole job; printed by every rank, it counts once. `per_rank`: of the
  rank that printed it; rates are added up over the ranks, of times the slowest counts. `per_gpu`:
  times the number of GPUs gives the job's. `unknown`: a progress bar of tqdm whose loop is not
  known; reports leave it out, and say so. A value in a scope that cannot be added up is refused.
- **Refused.** A value that is not possible is left out, whichever parser or pattern gave it: a
  fraction (`accuracy`, `mfu`) outside 0 to 1; a time of a step, an epoch or a training, or a rate
  of samples or tokens, that is not above 0 and finite; any other time or rate that is negative or
  not finite; a rate more than 1,000 times the median of its neighbours (up to five values before
  it and five after it, of the same parser, metric, scope, rank and message size). Slow first steps
  and stalls are kept. `collect` says on stderr what was refused, `report` in its notes.
- **Who.** Prefixes of srun, mpirun, torchrun and PyTorch are taken off each line, however they are
  stacked, and name the rank and the host; else the file's name names the rank (`rank-3.out`).
  `--prefix '<gpu(?P<local>\\d+)@(?P<host>\\w+)> '` takes off what only your site prints; groups:
  `rank`, `local`, `host`.
- **Which files.** A file that you name is read whatever its name, a pipe (`-`) too; of a folder,
  the logs up to five levels below it: `*.out`, `*.log`, `*.err`, `*.txt`, `*.o123`,
  `stdout`, `stderr`, `metrics.csv`. Rank files of one folder are one run. gzip, xz, zstd and
  bzip2 are known by their first bytes. Binary files are refused.
- **Again.** Of runs, what a log held is kept in `logs.index`: the next time only what was appended
  is read. Nothing is written beside logs of others; `--cache FOLDER` remembers them there.
- **Exit code.** 2 if nothing could be read or no line is of a known format (stderr says which came
  near), 3 if some of the files could not be read.
- **Warm-up.** `collect` gives every value; `report` leaves out the warm-up of a study, and of
  foreign logs the first interval, which holds compilation and the set-up of NCCL. `steps` says of
  how many steps a value is the mean.
- **Python.** `hpc_train.collect(paths)` returns the same as a pandas DataFrame.
- Another format: [events](events.md) that your script prints, a pattern in the study file
  ([files](files.md)), or [a parser of your own](adding-a-parser.md).

## Columns

| column | meaning |
|---|---|
| `run` | the run's id, or the log's name |
| `source`, `line` | file and line, lines count from 1 |
| `parser` | the format, a name of this page |
| `metric`, `value`, `unit` | what was measured, in the unit below |
| `scope` | `global`, `per_gpu`, `per_rank` or `unknown` |
| `step` | number of the step, epoch or iteration within the run |
| `rank`, `node` | global rank and host that printed the line, where they are known |
| `steps` | of how many steps the value is the mean |
| `message_size` | bytes that a bandwidth or latency was measured with |
| `variant` | which of several values of one metric on a line: `in_place`, `max` … |
"""


def supported_markdown(parsers: Mapping[str, LogParser]) -> str:
    """Return docs/logs.md: the columns, the metrics and every parser with a sample."""
    formats = "\n".join(_format(name, parser) for name, parser in parsers.items())
    units = "\n".join(f"| `{metric}` | {unit} |" for metric, unit in UNITS.items())
    return (
        f"{_HEAD}\n## Metrics\n\n| metric | unit |\n|---|---|\n{units}\n\n"
        f"A unit of 1 is a number or, of `accuracy` and `mfu`, a fraction. GB/s are 10^9 bytes.\n\n"
        f"## Formats\n\n{formats}"
    )


def _format(name: str, parser: LogParser) -> str:
    states = ", ".join(f"`{metric}` {scope}" for metric, scope in parser.states.items())
    return f"### {name}\n\n{parser.title}: {states}.\n\n```text\n{parser.sample}\n```\n"
