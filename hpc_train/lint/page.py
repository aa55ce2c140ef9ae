"""The rules as a page of the documentation: docs/lint.md is what `rules_page` returns."""

from __future__ import annotations

import re
import textwrap

from hpc_train.lint.rule import Rule
from hpc_train.lint.rules import all_rules

_WIDTH = 100
_GROUPS = {
    "HT00": "The header",
    "HT01": "Directives",
    "HT1": "Resources",
    "HT20": "srun",
    "HT22": "torchrun",
    "HT3": "Rendezvous and devices",
    "HT40": "Exit codes, signals, requeue",
    "HT41": "Variables",
    "HT50": "Names of variables",
    "HT52": "NCCL",
    "HT53": "NCCL",
    "HT60": "MPI",
    "HT62": "Fabrics",
    "HT7": "The site",
}
_HEAD = """\
# Lint rules

`hpctrain lint FILE…` reads job scripts, written by hand or rendered, and job files, and says what
will go wrong, why, and what to write instead. This page is written by
`hpctrain lint --list --markdown`.

```console
$ hpctrain lint job.sbatch
$ hpctrain lint job.yaml --site slurm-generic
$ hpctrain lint job.sbatch --nccl 2.21 --openmpi 5.0 --json
$ hpctrain lint job.sbatch --fix
```

- **Severity.** An error keeps the job from starting or makes it wrong; a warning costs time or
  hides a failure; an info is worth knowing. What depends on a version that is not given (`--nccl`,
  `--openmpi`) is only an info. `--site` adds what the site's profile knows: partitions and their
  limits, launchers, how GPUs are asked for.
- **Exit code.** 0: nothing of warning or above; 1: findings of warning or error; 2: a file that
  cannot be read, or a wrong option.
- **Silence.** `# hpctrain: ignore HT303` on a line, or on the line above it, silences a rule there;
  `# hpctrain: ignore-file HT303` does so in the whole file, `--ignore HT303,HT5` for one call.
  `--select` names the rules to try. The beginning of an id stands for all ids that begin so.
- **`--fix`** mends what is marked *fixable* below, says so, and keeps every other byte.
- **`--json`** prints
  `{"schema": 1, "findings": [{"file", "id", "severity", "line", "message", "advice"}]}`, with
  `--fix` also `fixed`, a list of the same kind.
- Of a job file the rendered script is checked, and a finding has the line of the job file that it
  comes from. What the site's profile has set is named with its place.
- A script is read, never run. Unknown are options given to sbatch on the command line, and what
  stands in files that the script sources. A rule that cannot be sure is silent.
"""


def rules_page() -> str:
    """Return the page, in Markdown."""
    parts = [_HEAD]
    title = ""
    for rule in all_rules():
        group = _group(rule)
        if group != title:
            title = group
            parts.append(f"\n## {title}\n")
        parts.append(_section(rule))
    return "".join(parts)


def _group(rule: Rule) -> str:
    return next(title for start, title in _GROUPS.items() if rule.id.startswith(start))


def _section(rule: Rule) -> str:
    fixable = ", fixable" if rule.fixable else ""
    body = f"*{rule.severity}{fixable}.* {_code(rule.why)} Instead: {_code(rule.advice)}."
    wrapped = textwrap.fill(body, _WIDTH, break_long_words=False, break_on_hyphens=False)
    return f"\n### {rule.id}: {_code(rule.title)}\n\n{wrapped}\n"


def _code(text: str) -> str:
    """Keep what Markdown would read as emphasis or HTML."""
    plain = re.split(r"(`[^`]*`)", text)
    return "".join(
        part if part.startswith("`") else re.sub(r"([*_<])", r"\\\1", part) for part in plain
    )
