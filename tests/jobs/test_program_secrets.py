"""A program that will be stored: no secret of this shell, and none written in it."""

from __future__ import annotations

import pytest

from hpc_train.base.errors import SpecError
from hpc_train.scripts.secret_leaks import check_program

SECRETS = [
    "API_KEY = 'abcdefgh1234'",
    "x.auth_token = 'abcdefgh1234'",
    "os.environ['HF_TOKEN'] = 'abcdefgh1234'",
    "d = {'password': 'abcdefgh1234'}",
    "login(api_token='abcdefgh1234')",
    "if True:\n  wandb_api_key = 'abcdefgh1234'",
    "f('hf_abcdefghijklmnopqrstuvwx')  # here",
]
HARMLESS = [
    "token = tokenizer('abcdefgh1234')",
    "API_KEY = os.environ['API_KEY']",
    "max_tokens = '123456789'",
    "key = 'abcdefgh'",
    "pad_token = '<padding-token>'",
    "print('password')",
    "# nothing\n",
    "d = {**{}}",
]


@pytest.mark.parametrize("text", SECRETS)
def test_a_secret_in_a_program_is_refused_and_not_repeated(text: str) -> None:
    with pytest.raises(SpecError, match=r"^cell, line \d: ") as error:
        check_program(text, "cell")
    assert "abcdefgh" not in error.value.message + error.value.hint
    assert "secrets:" in error.value.hint


@pytest.mark.parametrize("text", HARMLESS)
def test_names_that_are_no_secrets_are_accepted(text: str) -> None:
    check_program(text, "cell")


def test_the_value_of_a_secret_variable_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WANDB_API_KEY", "0123456789")
    with pytest.raises(SpecError, match=r"^cell: it contains the value of WANDB_API_KEY") as error:
        check_program("x = 'a-0123456789-b'", "cell")
    assert "0123456789" not in error.value.message


@pytest.mark.parametrize("text", ["x = (", "!ls", "%time x", "a\0b"], ids=repr)
def test_text_that_is_no_program_is_refused(text: str) -> None:
    with pytest.raises(SpecError, match=r"^cell, line 1: not a Python program"):
        check_program(text, "cell")
