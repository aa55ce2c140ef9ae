"""Which names and texts are taken for secrets."""

import time

import pytest

from hpc_train.base.variable_names_and_secrets import looks_secret, secret_form, secret_set
from tests.cases import cases

CASES = "base/secrets.yaml"
# In two parts, which no scanner takes for a secret.
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


@pytest.mark.parametrize(("name", "value", "is_secret"), cases(CASES, "values"))
def test_a_doubtful_name_is_judged_by_its_value(name: str, value: object, is_secret: bool) -> None:
    assert looks_secret(name, value) is is_secret


def test_a_long_word_is_looked_through_at_once() -> None:
    started = time.process_time()
    assert secret_form("a" * 1_000_000) == ""
    assert secret_form("a" * 1_000_000 + "://b:c@d") == ""
    assert time.process_time() - started < 5


@pytest.mark.parametrize(
    ("name", "is_secret"),
    [(name, True) for name in cases(CASES, "secrets").split()]
    + [(name, False) for name in cases(CASES, "harmless").split()],
)
def test_a_name(name: str, is_secret: bool) -> None:
    assert looks_secret(name) is is_secret


@pytest.mark.parametrize(("text", "form"), FORMS + [(text, "") for text in cases(CASES, "plain")])
def test_a_text(text: str, form: str) -> None:
    assert secret_form(text) == form
    assert secret_form(f"run --with {text} more") == form


@pytest.mark.parametrize(("line", "name"), cases(CASES, "lines"))
def test_a_line_of_shell(line: str, name: str) -> None:
    assert secret_set(line) == name
