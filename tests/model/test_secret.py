"""Which names and texts are taken for secrets."""

from __future__ import annotations

import pytest

from hpc_train.model.secret import looks_secret, secret_form, secret_set

SECRETS = """
    HF_TOKEN WANDB_API_KEY AWS_SECRET_ACCESS_KEY AWS_ACCESS_KEY_ID ACCESS_KEY_ID API_KEY API_KEYS
    APIKEY SSH_KEY PRIVATE_KEY SIGNING_KEY PGPASSWORD MYSQL_PWD DB_PASS db_password PASSPHRASE
    SSH_PASSPHRASE GITHUB_PAT REDISCLI_AUTH CREDENTIALS CLIENT_SECRET TOKEN ACCESS_TOKEN_2 PASSWORD
    DB_PASSWD SECRET_VALUE
"""
HARMLESS = """
    MAX_TOKEN MAX_TOKENS NUM_TOKENS PAD_TOKEN EOS_TOKEN BOS_TOKEN TOKEN_DIM PAD_TOKEN_ID
    TOKENIZERS_PARALLELISM SORT_KEY KEY_DIM KEYBOARD KEY PASS FORWARD_PASS PWD OLDPWD ORIG_PWD PATH
    PAT AUTH USE_AUTH XAUTHORITY NCCL_DEBUG HF_TOKEN_PATH DB_PASSWORD_FILE SECRETARY COMPASS
    GOOGLE_APPLICATION_CREDENTIALS_FILE
"""
FORMS = [
    ("hf_" + "aB3" * 7, "hf_…"),
    ("--token=ghp_" + "aB3" * 12, "ghp_…"),
    ("github_pat_" + "a_3" * 8, "github_pat_…"),
    ("glpat-" + "aB-3" * 5, "glpat-…"),
    ("sk-" + "a1" * 16, "sk-…"),
    ("sk-proj-" + "a1" * 16, "sk-…"),
    ("AKIA" + "A1" * 8, "AKIA…"),
    ("xoxb-" + "12345-" * 3, "xoxb-…"),
    ("postgres://me:hush@db/x", "a URL with user:password@"),
    ("--proxy=http://:hush@host", "a URL with user:password@"),
]
PLAIN = [
    "hf_model_of_a_long_name_here_1",
    "hf_short",
    "task-" + "a1" * 16,
    "sk-learn-experiment-of-2026-long",
    "postgres://me@db/x",
    "postgres://me:$DB_PASS@db/x",
    "postgres://me:<password>@db/x",
    "http://host:8080/a@b",
    "git@host:group/project",
    "docker://nvcr.io/nvidia/pytorch:25.01",
]
LINES = [
    ("export API_TOKEN=abc", "API_TOKEN"),
    ("A=1; B_PASSWORD='a b' run", "B_PASSWORD"),
    ("true && export X=1 API_KEY=abc", "API_KEY"),
    ("export API_TOKEN=$(cat ~/.token)", ""),
    ('export API_TOKEN="$TOKEN"', ""),
    ("export API_TOKEN=", ""),
    ("export SSH_KEY=~/.ssh/id", ""),
    ("export MAX_TOKENS=4096", ""),
    ("read -r API_TOKEN <~/.token", ""),
]


@pytest.mark.parametrize(
    ("name", "is_secret"),
    [(name, True) for name in SECRETS.split()] + [(name, False) for name in HARMLESS.split()],
)
def test_a_name(name: str, is_secret: bool) -> None:
    assert looks_secret(name) is is_secret


@pytest.mark.parametrize(("text", "form"), FORMS + [(text, "") for text in PLAIN])
def test_a_text(text: str, form: str) -> None:
    assert secret_form(text) == form
    assert secret_form(f"run --with {text} more") == form


@pytest.mark.parametrize(("line", "name"), LINES)
def test_a_line_of_shell(line: str, name: str) -> None:
    assert secret_set(line) == name
