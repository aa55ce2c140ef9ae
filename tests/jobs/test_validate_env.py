"""What a job's variables and texts must not hold."""

from pathlib import Path

import pytest

from hpc_train.base.errors import SpecError
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
