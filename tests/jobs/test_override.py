"""--set: parsed as YAML, laid over the file, remembered as the origin."""

from typing import Any

import pytest

from hpc_train.base.errors import SpecError
from hpc_train.jobs.override import apply, check_key, full_key, option_override, parse_setting


@pytest.mark.parametrize(
    ("text", "key", "value"),
    [
        ("resources.nodes=2", "resources.nodes", 2),
        ("axes.nodes=[1, 2]", "axes.nodes", [1, 2]),
        ("env.A=a=b", "env.A", "a=b"),
        ("env.A=", "env.A", ""),
        ("resources.time=1:30:00", "resources.time", "1:30:00"),
    ],
)
def test_a_setting_is_a_key_and_a_yaml_value(text: str, key: str, value: Any) -> None:
    override = parse_setting(text)
    assert (override.key, override.value) == (key, value)
    assert override.origin == f"--set {key}"


@pytest.mark.parametrize("text", ["nodes", "=3", "nodes=[1"])
def test_a_setting_that_is_none(text: str) -> None:
    with pytest.raises(SpecError, match="--set"):
        parse_setting(text)


def test_short_keys_are_those_of_resources() -> None:
    assert full_key("nodes") == "resources.nodes"
    assert full_key("launcher") == "launcher"
    assert full_key("env.A") == "env.A"


@pytest.mark.parametrize("key", ["nodez", "resources.nodez", "launcher.x"])
def test_a_key_that_no_job_has(key: str) -> None:
    with pytest.raises(SpecError, match="not a key of a job"):
        check_key(key, "x")


def test_the_value_of_a_variable_is_text_as_written() -> None:
    assert parse_setting("env.A=0777").value == "0777"
    assert parse_setting("env={A: 1e-3, B: true}").value == {"A": "1e-3", "B": "true"}
    assert parse_setting("axes.env.A=[01, 2]").value == ["01", "2"]
    assert parse_setting("resources.nodes=2").value == 2


@pytest.mark.parametrize("key", ["name", "launcher", "partition", "account", "qos", "constraint"])
def test_names_on_the_command_line_are_text(key: str) -> None:
    assert option_override(key, "007").value == "007"


def test_numbers_on_the_command_line_are_numbers() -> None:
    found = option_override("tasks_per_node", "4")
    assert (found.key, found.value, found.origin) == ("tasks_per_node", 4, "--tasks-per-node")


def test_an_override_replaces_what_was_below_it() -> None:
    data = {"env": {"A": "1"}, "command": ["a", "b"]}
    origins = {"env": "f:1", "env.A": "f:2", "command": "f:3", "command.0": "f:3"}
    apply(data, origins, [parse_setting("env={B: 2}"), parse_setting("command.1=c")])
    assert data == {"env": {"B": "2"}, "command": ["a", "c"]}
    assert origins["env.B"] == "--set env"
    assert "env.A" not in origins
    assert origins["command.1"] == "--set command.1"


@pytest.mark.parametrize(
    ("setting", "reason"),
    [
        ("command.7=x", r"command\.7: command has no part 7"),
        ("name.x.y=3", r"name\.x\.y: name\.x has no part y"),
    ],
)
def test_an_override_that_leads_nowhere(setting: str, reason: str) -> None:
    with pytest.raises(SpecError, match=reason):
        apply({"command": ["a"], "name": "n"}, {}, [parse_setting(setting)])
