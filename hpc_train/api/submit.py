"""Submit a job, a study or a script."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from hpc_train.api.arguments import (
    AnyPath,
    Number,
    checked,
    keyword_request,
    path_of,
    results_of,
    text_of,
    words_of,
)
from hpc_train.api.run import RunStatesOfFolder, SubmittedRun
from hpc_train.api.study import SubmittedStudy
from hpc_train.scripts.prepare import prepare
from hpc_train.submissions.submit import submit as submit_prepared

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from hpc_train.api.arguments import JobKeys


def submit(
    file: AnyPath,
    args: Iterable[object] = (),
    *,
    site: AnyPath | None = None,
    results: AnyPath | None = None,
    settings: Mapping[str, Any] | None = None,
    max_gpu_hours: float | None = None,
    rerun_failed: bool = False,
    **keys: Unpack[JobKeys],
) -> SubmittedRun | SubmittedStudy:
    """Submit a job, a study or a script, as `hpctrain submit` does; return without waiting.

    `file` is a job or study in YAML, or a program with its arguments `args`. `site` names a site
    profile or its file. Keywords are keys of a job (`nodes=2`, `time="1h"`, `env={"X": "1"}`);
    `settings` sets any key by its dotted name (`{"env.X": "1", "repetitions": 1}`). None leaves a
    key out. The job starts in the current folder unless the job file has `workdir`.
    A study runs only what is missing, with `rerun_failed` also its failed runs.

    Raises:
        ArgumentError: an argument of a wrong type or value.
        SpecError, PlanError: an unknown key, a wrong value, a job that does not fit the site, or a
            cost above `max_gpu_hours`. Nothing is submitted.
        UnknownNameError, SiteProfileError: no such site, or an error in its profile.
        SubmitError, StoreError: the scheduler refuses; `results` cannot be written.
    """
    path, words = path_of(file, "file"), words_of(args, "args")
    named = None if site is None else text_of(site, "site")
    request = keyword_request(
        path, words, named, keys, checked(settings, dict[str, Any] | None, "settings") or {}
    )
    again = checked(rerun_failed, bool, "rerun_failed")
    most = checked(max_gpu_hours, Number | None, "max_gpu_hours")
    prepared = prepare(msgspec.structs.replace(request, starts=True))
    notices = [*prepared.notices]
    argv = ["hpc_train.submit", str(request.path), *request.arguments]
    done = submit_prepared(
        prepared,
        results_of(results),
        argv,
        notices.append,
        rerun_failed=again,
        max_gpu_hours=most,
    )
    told = (*prepared.warnings, *notices)
    if prepared.study is not None:
        states = RunStatesOfFolder(done.home)
        return SubmittedStudy(done.home, states, told)
    folder = done.new[0].path
    return SubmittedRun(folder, RunStatesOfFolder(folder), told)
