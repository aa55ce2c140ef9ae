"""Secrets are removed from the members of a bundle, in each form in which a file holds them."""

from __future__ import annotations

import json

import pytest

from hpc_train.secret_leaks import Hidden

VALUE = 'two"words\\of one'


def test_a_secret_is_removed_as_it_is_and_as_json_writes_it() -> None:
    hidden = Hidden({"MINE": VALUE})
    plain = hidden.without("job.sbatch", f"export MINE={VALUE}".encode())
    assert plain == b"export MINE=<MINE>"
    written = hidden.without("run.json", json.dumps({"command": VALUE}).encode())
    assert written == b'{"command": "<MINE>"}'


@pytest.mark.parametrize(("value", "hidden"), [("s3cr3t!x", True), ("s3cr3t!", False)])
def test_a_secret_has_at_least_eight_characters(
    monkeypatch: pytest.MonkeyPatch, value: str, *, hidden: bool
) -> None:
    monkeypatch.setenv("MY_API_TOKEN", value)
    written = Hidden.of(()).without("job.sbatch", f"login {value}".encode())
    assert written == (b"login <MY_API_TOKEN>" if hidden else f"login {value}".encode())
