"""Which names and texts are taken for secrets."""

from __future__ import annotations

import time

import pytest

from hpc_train.model.variable_names_and_secrets import looks_secret, secret_form, secret_set

SECRETS = """
    HF_TOKEN WANDB_API_KEY AWS_SECRET_ACCESS_KEY AWS_ACCESS_KEY_ID ACCESS_KEY_ID API_KEY API_KEYS
    APIKEY SSH_KEY PRIVATE_KEY SIGNING_KEY PGPASSWORD MYSQL_PWD DB_PASS db_password PASSPHRASE
    SSH_PASSPHRASE GITHUB_PAT REDISCLI_AUTH CREDENTIALS CLIENT_SECRET TOKEN ACCESS_TOKEN_2 PASSWORD
    DB_PASSWD SECRET_VALUE JWT AZURE_STORAGE_CONNECTION_STRING SLACK_WEBHOOK_URL
    HFTOKEN GITLAB_TOKENS
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
    ("AIza" + "aB3-" * 9, "AIza…"),
    ("npm_" + "aB3" * 12, "npm_…"),
    ("pypi-AgEIcHlwaS5vcmc" + "aB3_" * 8, "pypi-…"),
    ("dapi" + "0a" * 16, "dapi…"),
    ("sk_live_" + "aB3" * 8, "sk_live_…"),
    ("-----BEGIN RSA PRIVATE KEY-----", "a private key"),
    ("https://a.blob.example/c?sv=1&sig=" + "aB%2F3" * 5, "a URL with a signature"),
    ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIx.x", "eyJ….eyJ…"),
    ("postgres://me:hush@db/x", "a URL with user:password@"),
    ("--proxy=http://:hush@host", "a URL with user:password@"),
    ("wandb login " + "0a" * 20, "login …"),
    ("curl -H 'Authorization: Bearer " + "ab12" * 5 + "' x", "Bearer …"),
]
PLAIN = [
    "--token 50256000000",
    "--token $HF_TOKEN_OF_MINE",
    "--token ~/.tokens/mine",
    "--tokenizer some-long-name",
    "--secret --verbose-output",
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
    ("python t.py --token abcdefghi1", "token"),
    ("--password=hunter2hunter2", "password"),
    ("t.py --wandb-api-key=abcdef123456", "wandb-api-key"),
    ("--hf_token abcdefgh1", "hf_token"),
    ("--export=ALL,WANDB_API_KEY=abcdef12", "WANDB_API_KEY"),
    ("wandb.api_key=" + "0a" * 20, "wandb.api_key"),
    ("++a/b.hf_token=abcdefgh1 x=1", "a/b.hf_token"),
    ("x.py cfg={wandb: {api-key: " + "0a" * 20 + "}}", "api-key"),
    ('{"client_secret": "ab cd"}', "client_secret"),
    (r"'{\"password\": \"hunter2hunter2\"}'", "password"),
    ("AccountName=a;AccountKey=" + "aB3+" * 9 + "==", "AccountKey"),
    ("accessToken: abcdefgh1", "accessToken"),
    ("model.pad_token='<pad>' data.max_tokens=512 time: 1:00", ""),
    ("trainer.precision=bf16 +key=value {tokens: 4096}", ""),
    ("wandb.api_key=${oc.env:WANDB_API_KEY}", ""),
    ("--token $HF_TOKEN_OF_MINE", ""),
    ("--token ~/.tokens/mine", ""),
    ("--token 50256000000", ""),
    ("--secret --verbose-output", ""),
    ("--tokenizer some-long-name --pad-token '<|pad|>'", ""),
    ("--max-tokens 2048 --sort-key timestamp", ""),
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


VALUES = [
    ("TRAIN_PASS", "1", False),
    ("BOI_TOKEN", 5, False),
    ("END_OF_TEXT_TOKEN", "<|end|>", False),
    ("FILE_PAT", "*.tar", False),
    ("MY_PWD", "/home/x", False),
    ("HF_HUB_DISABLE_IMPLICIT_TOKEN", "1", False),
    ("MAX_NEW_TOKEN", "128", False),
    ("DB_PASS", "hunter2", True),
    ("MY_TOKEN", "abcdefgh", True),
    ("HF_TOKEN", "abc", False),
    ("API_TOKEN", "abc", True),
    ("OPENAI_KEY", "aaaa1111bbbb2222", True),
    ("SORT_KEY", "name", False),
]


@pytest.mark.parametrize(("name", "value", "is_secret"), VALUES)
def test_a_doubtful_name_is_judged_by_its_value(name: str, value: object, is_secret: bool) -> None:
    assert looks_secret(name, value) is is_secret


def test_a_long_word_is_looked_through_at_once() -> None:
    started = time.process_time()
    assert secret_form("a" * 1_000_000) == ""
    assert secret_form("a" * 1_000_000 + "://b:c@d") == ""
    assert time.process_time() - started < 5


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
