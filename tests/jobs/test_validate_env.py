"""What a job's variables and texts must not hold."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpc_train.base.errors import SpecError
from hpc_train.base.yamlfile import read
from hpc_train.jobs.read_job import build_job
from tests.jobs.read_files import load_job

GIVEN_AWAY = "hf_" + "aB3" * 7
HUSH = "hush"


def refusal(folder: Path, text: str) -> SpecError:
    path = folder / "job.yaml"
    path.write_text(f"command: [a]\n{text}\n" if "command" not in text else text)
    with pytest.raises(SpecError) as failure:
        load_job(path, [])
    said = failure.value.message + failure.value.hint
    assert GIVEN_AWAY not in said
    assert HUSH not in said
    return failure.value


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f"env: {{X: {GIVEN_AWAY}}}", ":2: env.X contains what looks like a secret (hf_…)"),
        (f"command: [a, --hub, {GIVEN_AWAY}]", ":1: command.2 contains what looks like a secret"),
        (f"launcher_args: [--x={GIVEN_AWAY}]", ":2: launcher_args.0 contains what looks like a"),
        (f"comment: for {GIVEN_AWAY}", ":2: comment contains what looks like a secret"),
        (f"setup: [a, 'login {GIVEN_AWAY}']", ":2: setup.1 contains what looks like a secret"),
        ("setup: [export API_TOKEN=hush]", ":2: setup.0 sets API_TOKEN, which looks like a"),
        (
            "env: {DB: 'pg://me:hush@db'}",
            ":2: env.DB contains what looks like a secret (a URL with",
        ),
        ("container: {image: 'docker://a:hush@b/c'}", ":2: container.image contains what looks"),
        ("container: {image: a, env: [HF_TOKEN]}", ":2: container.env.HF_TOKEN looks like a"),
        ("env: {MYSQL_PWD: hush}", ":2: env.MYSQL_PWD looks like a secret"),
    ],
)
def test_a_secret_in_the_open_is_refused(tmp_path: Path, text: str, said: str) -> None:
    failure = refusal(tmp_path, text)
    assert failure.message.startswith(f"{tmp_path}/job.yaml{said}")
    assert "`secrets: {" in failure.hint


def test_a_secret_from_elsewhere_is_fine(tmp_path: Path) -> None:
    text = "command: [a]\nsetup: ['export API_TOKEN=$(cat ~/.t)']\nenv: {MAX_TOKEN: 1}\n"
    (tmp_path / "job.yaml").write_text(text)
    assert load_job(tmp_path / "job.yaml", []).value.env == {"MAX_TOKEN": "1"}


@pytest.mark.parametrize("name", ["PATH", "HOME"])
def test_what_every_script_needs_is_not_emptied(tmp_path: Path, name: str) -> None:
    failure = refusal(tmp_path, f"env: {{{name}: ''}}")
    assert f":2: env.{name} is empty: without it" in failure.message


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
