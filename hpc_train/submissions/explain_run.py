"""A run folder -> the explanation of the script that was submitted."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from hpc_train.base.errors import HpcTrainError, StoreError
from hpc_train.base.files import sha256_of
from hpc_train.base.values import Sourced
from hpc_train.runs.json_files import read_json
from hpc_train.runs.nodes import nodes_of
from hpc_train.runs.run import PROFILE, PROFILE_DIGEST, Manifest, RunFolder
from hpc_train.runs.run_folders import find, is_run, read_run, read_study, run_folders
from hpc_train.runs.run_states import run_of
from hpc_train.scripts.explain import Explained, explain
from hpc_train.sites.batch_system import find_batch_system
from hpc_train.sites.load import load_site
from hpc_train.sites.profile import SourcedSite


class ExplainedRun(NamedTuple):
    """The items of a run; `title` names it if its folder has several.

    `changed` is the site profile if it is not the file any more that the run was planned with: its
    sources are then left out.
    """

    title: str
    items: tuple[Explained, ...]
    changed: str


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
    site = _unchanged_site(manifest)
    changed = "" if site else str(manifest.provenance.get(PROFILE, "")) or manifest.plan.site
    items = explain(manifest.plan, site)
    placed = run_of(read_run(run), None)
    if nodes := nodes_of(placed):
        batch = find_batch_system(placed.submission.executor).title if placed.submission else ""
        node = Explained(kind="node", name="nodes", value=list(nodes), origin=batch, why="")
        items = (*items, node)
    return ExplainedRun(title, tuple(items), changed)


def _unchanged_site(manifest: Manifest) -> SourcedSite | None:
    """Return the site of a run if its profile is the one that the run was planned with."""
    file = Path(str(manifest.provenance.get(PROFILE, "")))
    try:
        if sha256_of(file) == manifest.provenance.get(PROFILE_DIGEST):
            return _as_planned(load_site(file), manifest)
    except (OSError, HpcTrainError):
        # A file that it inherits from may be gone.
        return None
    return None


def _as_planned(site: SourcedSite, manifest: Manifest) -> SourcedSite:
    """Return a site with the names of its files as in the plan.

    The name of a profile in the folder of the submission was relative to that folder.
    """
    folder = f"{manifest.provenance.get('cwd', '')}/"
    if any(one.origin.startswith(folder) for one in manifest.plan.settings.values()):
        return site
    origins = {key: place.removeprefix(folder) for key, place in site.origins.items()}
    return Sourced(value=site.value, origins=origins)
