"""Job files and scripts on the command line."""

import json
from pathlib import Path

import pytest
import yaml

from hpc_train.base.data_folders import FileKind, profile_folder, schema_file
from hpc_train.base.errors import SpecError
from hpc_train.jobs.override import Override, parse_setting
from hpc_train.jobs.read_job import points_of
from tests.jobs.read_files import load_job

EXAMPLES = Path(__file__).parents[2] / "examples"


def job_file(folder: Path, text: str) -> Path:
    path = folder / "my job.yaml"
    path.write_text(text)
    return path


def test_the_name_defaults_to_that_of_the_file(tmp_path: Path) -> None:
    job = load_job(job_file(tmp_path, "command: [a]\n"), [])
    assert job.value.name == "my-job"
    assert job.origin("name") == "default: the file's name"


@pytest.mark.parametrize(
    ("kind", "text", "valid"),
    [
        ("job", "command: python train.py --epochs 5\n", True),
        ("job", "command: [python, train.py]\nresources: {nodes: 2, time: 30, mem: 480G}\n", True),
        ("job", "command: [python, train.py]\nresources: {gpus: 2}\n", False),
        ("site", "schema: 1\nname: own\nextends: slingshot\nnetwork: {interfaces: null}\n", True),
        ("site", "schema: 1\nname: own\npartitons: []\n", False),
        ("defaults", "sites: {lumi-g: {account: project_1}}\n", True),
        *(("site", path.read_text(), True) for path in sorted(profile_folder().rglob("*.yaml"))),
        *(("study", path.read_text(), True) for path in sorted(EXAMPLES.glob("*/study.yaml"))),
    ],
)
def test_an_editor_accepts_what_a_file_may_say(kind: FileKind, text: str, valid: bool) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    check = jsonschema.Draft202012Validator(json.loads(schema_file(kind).read_bytes()))
    # Editors read YAML 1.2, in which a date is text.
    document = json.loads(json.dumps(yaml.safe_load(text), default=str))
    assert check.is_valid(document) == valid


def test_an_option_wins_over_the_file(tmp_path: Path) -> None:
    path = job_file(tmp_path, "command: [a]\nresources:\n  nodes: 1\n  time: 1h\n")
    job = load_job(path, [Override(key="nodes", value=4, origin="--nodes")])
    assert (job.value.resources.nodes, job.origin("resources.nodes")) == (4, "--nodes")
    assert job.origin("resources.time") == f"{path}:4"


def test_an_option_of_the_wrong_type_names_itself(tmp_path: Path) -> None:
    path = job_file(tmp_path, "command: [a]\n")
    with pytest.raises(SpecError, match=r"--nodes: resources\.nodes: must be a whole number"):
        load_job(path, [Override(key="nodes", value="many", origin="--nodes")])


def test_the_work_folder_is_relative_to_the_file(tmp_path: Path) -> None:
    job = load_job(job_file(tmp_path, "command: [a]\nworkdir: sub\n"), [])
    assert job.value.workdir == str(tmp_path / "sub")


def test_a_variable_that_no_shell_takes(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="'A-B' is not a name of an environment variable"):
        load_job(job_file(tmp_path, "command: [a]\nenv: {A-B: x}\n"), [])


def test_bytes_that_are_no_text_are_refused() -> None:
    with pytest.raises(SpecError, match=r"command line: .* is not UTF-8 text"):
        points_of(Path("train.py"), ["bad\udcff"])


def test_a_python_script_runs_under_python() -> None:
    settings = [parse_setting("tasks_per_node=2")]
    _, (point,) = points_of(Path("train.py"), ["--epochs", "3"], settings)
    job = point.job
    assert job.value.command == ("python", "train.py", "--epochs", "3")
    assert job.value.name == "train"
    assert job.value.resources.tasks_per_node == 2


def test_any_other_script_is_a_program() -> None:
    _, (point,) = points_of(Path("/bin/run.sh"), ["x"])
    assert point.job.value.command == ("/bin/run.sh", "x")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{a-b: env}", "'a-b' is not a name of an environment variable"),
        ("{HF_TOKEN: hush}", r":2: secrets\.HF_TOKEN is neither `env` nor the path of a file"),
    ],
)
def test_a_secret_is_named_and_not_given(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(SpecError, match=said) as failure:
        load_job(job_file(tmp_path, f"command: [a]\nsecrets: {text}\n"), [])
    assert "hush" not in failure.value.message + failure.value.hint


def test_a_secret_is_not_in_env_too(tmp_path: Path) -> None:
    text = "command: [a]\nenv: {X: 1}\nsecrets: {X: env}\n"
    with pytest.raises(SpecError, match=":3: X is also in env"):
        load_job(job_file(tmp_path, text), [])


def test_the_file_of_a_secret_is_relative_to_the_job(tmp_path: Path) -> None:
    text = "command: [a]\nsecrets: {A: ./a, B: ~/b, C: env}\n"
    job = load_job(job_file(tmp_path, text), [])
    found = job.value.secrets
    assert found == {"A": str(tmp_path / "a"), "B": str(Path.home() / "b"), "C": "env"}


@pytest.mark.parametrize("name", ["child", "code", "RANK", "EUID", "HPCTRAIN_RUN"])
@pytest.mark.parametrize("key", ["env", "secrets"])
def test_what_the_script_sets_itself_is_refused(tmp_path: Path, key: str, name: str) -> None:
    with pytest.raises(SpecError, match=rf":2: {key}\.{name}: the script or bash sets {name}"):
        load_job(job_file(tmp_path, f"command: [a]\n{key}: {{{name}: env}}\n"), [])
