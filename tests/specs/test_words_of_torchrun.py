"""Words of torchrun and sbatch in a job file: the place, the reason and the key that says it."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpc_train.errors import SpecError
from hpc_train.specs.job import build_job
from hpc_train.yamlfile import read

START = "command: [python, train.py]\nlauncher: torchrun\n"


def refused(folder: Path, text: str) -> SpecError:
    path = folder / "job.yaml"
    path.write_text(START + text)
    document = read(path, SpecError)
    with pytest.raises(SpecError) as failure:
        build_job(document.data, document.origins, [], path)
    assert failure.value.message.startswith(f"{path}:3: ")
    return failure.value


@pytest.mark.parametrize(
    "text",
    [
        "nnodes: 2:4\n",
        "resources: {nodes: '2:4'}\n",
        "resources: {nnodes: '2:4'}\n",
        "elastic: {nnodes: '2:4', max_restarts: 3}\n",
    ],
)
def test_a_range_of_nodes_is_answered_with_both_keys(tmp_path: Path, text: str) -> None:
    failure = refused(tmp_path, text)
    assert "2:4 is a range of torchrun; a job requests the most nodes" in failure.message
    assert failure.hint == "resources: {nodes: 4} with elastic: {min_nodes: 2}"


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("nnodes: 4\n", "resources: {nodes: 4}"),
        ("max_restarts: 3\n", "lifecycle: {max_restarts: 3} queues the job again"),
        ("requeue: true\n", "lifecycle: {} queues the job again"),
        ("resubmit_on: [1]\n", "lifecycle: {requeue_on: [75]}"),
        ("lifecycle: {resubmit_on: [75]}\n", "lifecycle: {requeue_on: [75]}"),
        ("lifecycle: {requeue: false}\n", "lifecycle: {} queues the job again"),
        ("lifecycle: {signal_lead: 2m}\n", "signal_before_end: 5m, beside lifecycle"),
    ],
)
def test_other_words_are_answered_with_the_key(tmp_path: Path, text: str, hint: str) -> None:
    assert hint in str(refused(tmp_path, text).hint)


def test_a_job_with_the_own_keys_is_taken(tmp_path: Path) -> None:
    path = tmp_path / "job.yaml"
    path.write_text(START + "resources: {nodes: 4}\nelastic: {min_nodes: 2, max_restarts: 3}\n")
    document = read(path, SpecError)
    assert build_job(document.data, document.origins, [], path).value.elastic
