"""A run folder -> the explanation of the script that was submitted."""

from pathlib import Path
from typing import NamedTuple

from hpc_train.base.errors import StoreError
from hpc_train.runs.json_files import read_json
from hpc_train.runs.nodes import nodes_of
from hpc_train.runs.run import Manifest, RunFolder
from hpc_train.runs.run_folders import find, is_run, read_run, read_study, run_folders
from hpc_train.runs.run_states import run_of
from hpc_train.scripts.explain import Explained, explain
from hpc_train.sites.batch_system import find_batch_system


class ExplainedRun(NamedTuple):
    """The items of a run; `title` names it if its folder has several.

    The site's profile may have changed since, so that its sources are left out.
    """

    title: str
    items: tuple[Explained, ...]


def find_run(word: Path, root: Path) -> Path | None:
    """Return the folder of a run, job or study that a word means; None if it means a file.

    Raises:
        UnknownNameError: neither a file nor a run has that name.
        StoreError: the prefix of several run ids.
        NewerVersionError: a newer version wrote the run.
    """
    if word.is_file() or word.suffix in (".yaml", ".yml", ".py"):
        return None
    return find(root, str(word))


def explain_run(folder: Path) -> ExplainedRun:
    """Explain a run as it was planned: of a study the first run, of a job the last one.

    Raises:
        StoreError: the folder has no run, or the manifest is damaged.
    """
    if is_run(folder):
        return _explained(RunFolder(path=folder), "")
    runs = run_folders(folder)
    if not runs:
        raise StoreError(f"{folder}: no run of this study was submitted", "hpctrain submit FILE")
    which = "first" if read_study(folder) else "last"
    run = runs[0 if which == "first" else -1]
    return _explained(run, f"{run.run_id}: the {which} of {len(runs)} runs" * (len(runs) > 1))


def _explained(run: RunFolder, title: str) -> ExplainedRun:
    manifest = read_json(run.manifest, Manifest)
    items = explain(manifest.plan, None)
    placed = run_of(read_run(run), None)
    if nodes := nodes_of(placed):
        batch = find_batch_system(placed.submission.executor).title if placed.submission else ""
        node = Explained(kind="node", name="nodes", value=list(nodes), origin=batch, why="")
        items = (*items, node)
    return ExplainedRun(title, tuple(items))
