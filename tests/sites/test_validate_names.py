"""Names in a profile: words that would do nothing in silence, and variables that are refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpc_train.base.errors import SiteProfileError
from hpc_train.sites.load import load_site

SITE = """\
schema: 1
name: mine
description: d
scheduler: slurm
"""
LAUNCHERS = "launchers: {default: srun, allowed: [srun]}\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("forbidden: {tyme: why}", "sbatch has no option 'tyme'; did you mean 'time'"),
        ("forbidden: {--memm: no}", "sbatch has no option '--memm'; did you mean 'mem'"),
        ("storage: {x: {request: {foo: bar}}}", r"storage\.x\.request\.foo: sbatch has no option"),
        ("directives: {foo: bar}", "sbatch has no option 'foo'"),
        (
            "partitions: [{name: a, select: {qos: nope}}]\nqos: [{name: note}]",
            "unknown qos 'nope'; did you mean 'note'",
        ),
        ("required: [account]\nforbidden: {account: no}", "account is required, but forbidden"),
    ],
)
def test_a_word_that_nobody_knows(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(f"{SITE}{LAUNCHERS}{text}\n")
    with pytest.raises(SiteProfileError, match=message):
        load_site(str(path))


@pytest.mark.parametrize("key", ["forbidden", "warned"])
def test_a_launcher_that_nobody_knows(tmp_path: Path, key: str) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(f"{SITE}{LAUNCHERS.replace('}', f', {key}: {{mpirunn: x}}}}')}")
    with pytest.raises(SiteProfileError, match="unknown launcher 'mpirunn'; did you mean 'mpirun'"):
        load_site(str(path))


def test_words_of_other_tools_may_be_forbidden(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    text = LAUNCHERS.replace("}", ", forbidden: {mpiexec: no}, warned: {torchrun: slow}}")
    path.write_text(
        f"{SITE}{text}qos: [{{name: a}}, {{name: '*'}}]\n"
        "partitions: [{name: p, select: {qos: b}}]\n"
        "account: {pattern: 'proj[0-9]{4}(_g)?'}\n"
    )
    assert "mpiexec" in load_site(str(path)).value.launchers.forbidden


PROFILE = """\
schema: 1
name: mine
description: d
scheduler: slurm
launchers: {default: srun, allowed: [srun]}
"""
GIVEN_AWAY = "ghp_" + "aB3" * 9
SECRET_HERE = [
    ("env: {WANDB_API_KEY: hush}", "6: env.WANDB_API_KEY looks like a secret"),
    ("env_blocks: [{env: {DB_PASS: hush}}]", "6: env_blocks.0.env.DB_PASS looks like a secret"),
    ("env_blocks: [{env: {X: 'http://a:hush@b'}}]", "6: env_blocks.0.env.X contains what looks"),
    ("setup: [a, export API_TOKEN=hush]", "6: setup.1 sets API_TOKEN, which looks like a"),
    ("containers: {runtime: edf, setup: [A_PAT=hush-hush b]}", "6: containers.setup.0 sets A_PAT"),
    (f"containers: {{runtime: edf, args: [{GIVEN_AWAY}]}}", "6: containers.args.0 contains what"),
]
NEEDED = [
    ("env: {PATH: ''}", "6: env.PATH is empty: without it, the script finds no program"),
    ("env_blocks: [{unset: [A, HOME]}]", "6: env_blocks.0.unset: HOME: without it, ~ is"),
    ("env_blocks: [{env: {PATH: ''}}]", "6: env_blocks.0.env.PATH is empty: without it"),
]


def refusal(folder: Path, text: str) -> SiteProfileError:
    (folder / "mine.yaml").write_text(PROFILE + text)
    with pytest.raises(SiteProfileError) as failure:
        load_site(str(folder / "mine.yaml"))
    return failure.value


@pytest.mark.parametrize(("text", "said"), SECRET_HERE)
def test_a_secret_is_refused_and_jobs_name_it(tmp_path: Path, text: str, said: str) -> None:
    failure = refusal(tmp_path, text)
    assert failure.message.startswith(f"{tmp_path}/mine.yaml:{said}")
    assert "hush" not in failure.message + failure.hint
    assert GIVEN_AWAY not in failure.message + failure.hint
    assert "remove it from the profile" in failure.hint


@pytest.mark.parametrize(("text", "said"), NEEDED)
def test_what_every_script_needs_stays(tmp_path: Path, text: str, said: str) -> None:
    assert refusal(tmp_path, text).message.startswith(f"{tmp_path}/mine.yaml:{said}")


def test_a_path_grows_and_others_go(tmp_path: Path) -> None:
    blocks = "env_blocks: [{unset: [LD_PRELOAD], env: {PATH: /x}, mode: prepend}]"
    (tmp_path / "mine.yaml").write_text(PROFILE + blocks)
    assert load_site(str(tmp_path / "mine.yaml")).value.env_blocks[0].unset == ("LD_PRELOAD",)
