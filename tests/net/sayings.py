"""What the product says of a fixed set of inputs: each text has a name, and comes from a command.

The commands run in this process, in a folder of their own, without a scheduler on PATH. Texts have
no clock, path, host or noise of floats. `digests.txt` has the digest of each.
"""

import gc
import hashlib
import inspect
import io
import logging
import os
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any
from unittest import mock

import yaml

import hpc_train
from hpc_train.cli.commands import COMMANDS
from hpc_train.cli.main import main
from hpc_train.sites import search

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).parent
DIGESTS = HERE / "digests.txt"
# Real logs that are too large for the repository; without them their lines are left out.
SHARED = Path(os.environ.get("HPCTRAIN_SAMPLE_LOGS") or ROOT.parent / "shared/logs")
LAUNCHERS = (
    "srun", "torchrun", "mpirun", "mpiexec", "ibrun", "accelerate", "deepspeed", "spawn", "single",
)  # fmt: skip
LOGS = (".log", ".out", ".txt", ".csv", ".json", ".jsonl", ".tsv")
# What a rich job has beside the keys that its site asks for.
RICH = {
    "command": ["python", "-u", "train.py", "--note", "it's 5 %", "--lr=1e-3"],
    "env": {"OMP_PROC_BIND": "close", "NOTE": "a, b"},
    "setup": ["module load cuda", "source venv/bin/activate"],
    "lifecycle": {"max_restarts": 3},
    "comment": "nightly run",
}
ENVIRONMENT = {"TZ": "UTC", "COLUMNS": "100", "LANG": "C.UTF-8", "NO_COLOR": "1", "USER": "anna"}
_FLOAT = re.compile(r"(?<![\w.])-?\d+\.\d+(?:e[+-]?\d+)?(?![\w.])")

Say = Callable[[], str]


@contextmanager
def folder() -> Iterator[None]:
    """Make a folder with all inputs, go there, and hide what this machine and its user have."""
    with tempfile.TemporaryDirectory() as name:
        here = Path(name)
        for top in ("tests", "examples", "site_profiles"):
            (here / top).symlink_to(ROOT / top)
        shutil.copytree(ROOT / "results/studies", here / "results/studies")
        shutil.copytree(ROOT / "tests/stored", here / "stored")
        if SHARED.is_dir():
            (here / "logs").symlink_to(SHARED)
        homes = {"HOME": name, "XDG_CONFIG_HOME": f"{name}/config", "XDG_CACHE_HOME": f"{name}/c"}
        before = Path.cwd()
        os.chdir(here)
        try:
            with (
                mock.patch.dict(os.environ, {**ENVIRONMENT, **homes, "PATH": name}, clear=True),
                mock.patch.object(search, "LAB_FOLDER", here / "no-lab"),
            ):
                time.tzset()
                yield
        finally:
            os.chdir(before)
            time.tzset()


def command(*words: str) -> str:
    """Return what `hpctrain WORDS` prints: exit code, stdout, stderr."""
    streams = [io.TextIOWrapper(io.BytesIO(), encoding="utf-8", newline="") for _ in range(2)]
    code: object = None
    with (
        redirect_stdout(streams[0]),
        redirect_stderr(streams[1]),
        mock.patch.object(sys, "argv", ["hpctrain", *words]),
        mock.patch("gc.freeze"),
        # The command's own handler writes to its stderr; those of pytest stay out of it.
        mock.patch.object(logging.getLogger(), "handlers", []),
    ):
        try:
            main()
        except SystemExit as left:
            code = left.code
    texts = []
    for stream in streams:
        stream.flush()
        texts.append(stream.detach().getvalue().decode("utf-8", "replace"))
    errors = f"--- stderr\n{texts[1]}" if texts[1] else ""
    return _steady(f"$ hpctrain {' '.join(words)}\n--- exit {code}\n{texts[0]}{errors}")


def _steady(text: str) -> str:
    """Return a text without this folder, this checkout, and digits that differ by processor."""
    for path, name in ((Path.cwd(), "HERE"), (ROOT, "ROOT"), (SHARED, "LOGS")):
        text = text.replace(str(path), name)
    return _FLOAT.sub(_rounded, text)


def _rounded(match: re.Match[str]) -> str:
    """Return a number with 9 digits at most; one with fewer stays as it was written."""
    digits = match[0].partition("e")[0].strip("-").replace(".", "").lstrip("0")
    return f"{float(match[0]):.9g}" if len(digits) > 9 else match[0]


def scripts() -> Iterator[tuple[str, Say]]:
    """Yield the scripts of two jobs at each site with each launcher, or why there is none."""
    jobs = yaml.safe_load((HERE / "jobs.yaml").read_text(encoding="utf-8"))
    shipped = {path.stem for path in (ROOT / "site_profiles").glob("*.yaml")}
    assert shipped == set(jobs), "tests/net/jobs.yaml has one job for each site"
    plain_job = {"command": ["python", "train.py"]}
    for site, keys in jobs.items():
        for stem, more in (("minimal", plain_job), ("rich", RICH)):
            for launcher in LAUNCHERS:
                for flags in ((), ("--plain",)):
                    document = {**keys, **more, "launcher": launcher}
                    words = (f"{stem}.yaml", "--site", site, *flags)
                    form = "plain" if flags else "tracked"
                    yield f"script {site} {launcher} {stem} {form}", _rendered(document, words)


def _rendered(document: Mapping[str, Any], words: Sequence[str]) -> Say:
    def say() -> str:
        named = {"name": Path(words[0]).stem, **document}
        Path(words[0]).write_text(yaml.safe_dump(named, sort_keys=False), encoding="utf-8")
        return command("render", *words)

    return say


def golden() -> Iterator[tuple[str, Say]]:
    """Yield scripts and explanations of the five golden jobs, and of studies."""
    for path in sorted((ROOT / "tests/golden/jobs").glob("*.yaml")):
        site, job = f"tests/golden/sites/{path.name}", f"tests/golden/jobs/{path.name}"
        for launcher in LAUNCHERS:
            words = (job, "--site", site, "--set", f"launcher={launcher}")
            yield f"render golden {path.stem} {launcher}", _say("render", *words)
            yield f"explain golden {path.stem} {launcher}", _say("explain", *words)
    for path in sorted((HERE / "studies").glob("*.yaml")):
        for verb in ("render", "explain"):
            study = f"tests/net/studies/{path.name}"
            yield f"{verb} study {path.stem}", _say(verb, study, "--site", "slurm-generic")


def _say(*words: str) -> Say:
    return lambda: command(*words)


def texts_about_itself() -> Iterator[tuple[str, Say]]:
    """Yield the help of each command, profiles, schemas, and the public names of the package."""
    yield "help", _say("--help")
    for name in COMMANDS:
        yield f"help {name}", _say(name, "--help")
        for below in _subcommands(name):
            yield f"help {name} {below}", _say(name, below, "--help")
    for path in sorted((ROOT / "site_profiles").glob("*.yaml")):
        yield f"site show {path.stem}", _say("site", "show", path.stem)
        yield f"site show {path.stem} job", _say("site", "show", path.stem, "--job")
    yield "site list", _say("site", "list")
    yield "schema site", _say("site", "schema")
    for kind in ("job", "study"):
        yield f"schema {kind}", _say("render", "--schema", kind)
    for listed in ("lint", "collect", "diagnose"):
        yield f"list {listed}", _say(listed, "--list")
    yield "names", _public_names


def _subcommands(name: str) -> list[str]:
    import importlib

    module, _, attribute = COMMANDS[name][0].partition(":")
    return sorted(getattr(getattr(importlib.import_module(module), attribute), "commands", {}))


def _public_names() -> str:
    lines = []
    for name in sorted(hpc_train.__all__):
        found = getattr(hpc_train, name)
        if not callable(found):
            continue
        lines.append(f"{name}{inspect.signature(found)}")
        if inspect.isclass(found):
            public = (one for one in dir(found) if not one.startswith("_"))
            members = ((one, getattr(found, one)) for one in public)
            lines += [
                f"  .{one}{inspect.signature(member) if inspect.isfunction(member) else ''}"
                for one, member in members
            ]
    return "\n".join(lines) + "\n"


def lint() -> Iterator[tuple[str, Say]]:
    """Yield the findings in each file of pairs, in example jobs and in scripts on record."""
    for path in sorted((ROOT / "tests/lint/pairs").glob("*.txt")):
        yield f"lint pairs {path.stem}", lambda path=path: _lint_pairs(path)  # type: ignore[misc]
    files = [*(ROOT / "examples").glob("*/*.yaml"), *(ROOT / "results/studies").rglob("*.sbatch")]
    files += (ROOT / "tests/golden").glob("*/*.sbatch")
    for path in sorted(files):
        name = str(path.relative_to(ROOT))
        # One run of each study: the others differ in a number.
        if "results/" not in name or name.endswith("-r1/job.sbatch"):
            yield f"lint {name}", _say("lint", name)


def _lint_pairs(path: Path) -> str:
    from hpc_train.lint.lint_script import lint_script
    from tests.lint.conftest import cases_of

    lines = []
    for case in cases_of(path):
        lines.append(f"{case.rule} {case.wrong}")
        lines += [
            f"  {one.id} {one.severity} {one.line} {one.message} | {one.advice}"
            for one in lint_script(case.text, case.context)
        ]
    return "\n".join(lines)


def _inputs(*tops: str) -> Iterator[str]:
    for top in tops:
        paths = sorted(Path(top).rglob("*"))
        yield from (str(path) for path in paths if path.suffix in LOGS and path.is_file())


def logs() -> Iterator[tuple[str, Say]]:
    """Yield records, diagnosis and report of each log."""
    for name in _inputs("tests/log_files", "examples/logs", "logs"):
        for words in (("collect", "--json"), ("diagnose",), ("report",), ("report", "-f", "json")):
            verb, *options = words
            yield " ".join((verb, name, *options)), _say(verb, name, *options)


def tables() -> Iterator[tuple[str, Say]]:
    """Yield the reports of tables, of records and of the stored studies, in each format."""
    names = [*_inputs("tests/scaling/published", "examples/tables"), "examples/mlruns"]
    names += [f"results/studies/{path.name}" for path in sorted(Path("results/studies").iterdir())]
    for name in (*names, "stored/schema-1/results/sweep", "examples/tensorboard"):
        for form in ("text", "csv", "json", "latex", "markdown"):
            yield f"report {name} {form}", _say("report", name, "-f", form)


def runs() -> Iterator[tuple[str, Say]]:
    """Yield states of stored runs, their records and their causes of failure."""
    for results in ("stored/schema-1/results", "results/studies"):
        yield f"status {results}", _say("status", "--results", results)
        for path in sorted(Path(results).iterdir()):
            below = ("--results", results, path.name)
            yield f"status {results} {path.name}", _say("status", *below, "--json")
            yield f"collect {results} {path.name}", _say("collect", *below, "--json")
            yield f"diagnose {results} {path.name}", _say("diagnose", *below)
            yield f"explain {results} {path.name}", _say("explain", *below)


GROUPS: Mapping[str, Callable[[], Iterator[tuple[str, Say]]]] = {
    "scripts": scripts,
    "golden": golden,
    "itself": texts_about_itself,
    "lint": lint,
    "logs": logs,
    "tables": tables,
    "runs": runs,
}


def said(group: str) -> dict[str, str]:
    """Return name -> digest of all texts of a group."""
    # What earlier tests left open complains when it is collected, on whatever stderr then is.
    gc.collect()
    with folder():
        return {name: digest(say()) for name, say in GROUPS[group]()}


def text_of(wanted: str) -> str:
    """Return the text with this name.

    Raises:
        KeyError: no text has it.
    """
    with folder():
        for group in GROUPS.values():
            for name, say in group():
                if name == wanted:
                    return say()
    raise KeyError(wanted)


def digest(text: str) -> str:
    """Return 16 hexadecimal digits."""
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:16]


def stored(path: Path = DIGESTS) -> dict[str, dict[str, str]]:
    """Return group -> name -> digest of the file."""
    found: dict[str, dict[str, str]] = {group: {} for group in GROUPS}
    for line in path.read_text(encoding="utf-8").splitlines():
        group, number, name = line.split(" ", 2)
        found[group][name] = number
    return found


def is_here(name: str) -> bool:
    """Whether the input of a text is on this machine."""
    return SHARED.is_dir() or " logs/" not in f" {name}"
