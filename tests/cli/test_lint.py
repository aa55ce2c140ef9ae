"""`hpctrain lint`: its text, its JSON, its exit codes."""

import json
from pathlib import Path

import pytest

from tests.conftest import Hpctrain

BAD = "#!/bin/bash\n#sbatch --nodes=2\nexport MASTER_PORT=29500\nsrun python train.py\n"
INFO = "#!/bin/bash\n#SBATCH --nodes=1\nsrun python train.py\n"
GOOD = "#!/bin/bash\n#SBATCH --time=1:00:00\nsrun python train.py\n"


@pytest.fixture
def scripts(hpctrain: Hpctrain) -> Hpctrain:
    for name, text in (("bad.sh", BAD), ("info.sh", INFO), ("good.sh", GOOD)):
        Path(name).write_text(text)
    Path("binary").write_bytes(b"\x7fELF\0")
    return hpctrain


def test_text_has_file_line_id_severity_and_advice(scripts: Hpctrain) -> None:
    done = scripts("lint", "bad.sh", "info.sh")
    lines = done.stdout.splitlines()
    assert lines[0] == "bad.sh:2: HT003 warning: `#sbatch` is a comment to sbatch"
    assert lines[1].startswith("    write #SBATCH at the beginning of the line")
    assert [line.split(" ")[1] for line in lines[::2]] == ["HT003", "HT303", "HT105"]
    assert done.stderr == "hpctrain: 2 warnings, 1 info in 2 files\n"
    assert done.returncode == 1


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["good.sh"], 0), (["info.sh"], 0), (["bad.sh"], 1), (["bad.sh", "--select", "HT001"], 0),
        (["bad.sh", "--ignore", "HT003,HT3"], 0), (["bad.sh", "nothing.sh"], 2), (["binary"], 2),
        (["."], 2), ([], 2), (["good.sh", "--select", "HT999"], 2),
        (["good.sh", "--select", ""], 2), (["good.sh", "--nccl", "new"], 2),
        (["good.sh", "--site", "nowhere"], 2), (["-", "--fix"], 2),
    ],
)  # fmt: skip
def test_exit_code(scripts: Hpctrain, words: list[str], code: int) -> None:
    done = scripts("lint", *words)
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    assert done.stderr


def test_json_is_the_contract(scripts: Hpctrain) -> None:
    done = scripts("lint", "bad.sh", "nothing.sh", "--json")
    answer = json.loads(done.stdout)
    assert set(answer) == {"schema", "findings"}
    assert answer["schema"] == 1
    assert [set(row) for row in answer["findings"]] == [
        {"file", "id", "severity", "line", "message", "advice"}
    ] * 2
    assert (answer["findings"][0]["id"], answer["findings"][0]["line"]) == ("HT003", 2)
    assert "nothing.sh: No such file" in done.stderr
    assert json.loads(scripts("lint", "good.sh", "--json").stdout)["findings"] == []


def test_fix_says_what_it_has_changed(scripts: Hpctrain) -> None:
    done = scripts("lint", "bad.sh", "--fix", "--json")
    answer = json.loads(done.stdout)
    assert [row["id"] for row in answer["fixed"]] == ["HT003"]
    assert "HT003" not in [row["id"] for row in answer["findings"]]
    assert Path("bad.sh").read_text() == BAD.replace("#sbatch", "#SBATCH")
    Path("bad.sh").write_text(BAD)
    assert "bad.sh:2: HT003 fixed: " in scripts("lint", "bad.sh", "--fix").stderr
    again = scripts("lint", "bad.sh", "--fix").stderr
    assert again == "hpctrain: nothing to fix; 1 warning, 2 infos in 1 file\n"


def test_annotations_of_github(scripts: Hpctrain) -> None:
    done = scripts("lint", "bad.sh", "info.sh", "--format", "github")
    lines = done.stdout.splitlines()
    assert lines[0].startswith(
        "::warning file=bad.sh,line=2,title=HT003::`#sbatch` is a comment to"
    )
    assert [line.split(" ")[0] for line in lines] == ["::warning", "::warning", "::notice"]
    assert done.returncode == 1


def test_sarif_names_rule_level_file_and_line(scripts: Hpctrain) -> None:
    info = Path("info.sh").resolve()
    done = scripts("lint", "bad.sh", str(info), "--format", "sarif")
    log = json.loads(done.stdout)
    (run,) = log["runs"]
    places = [one["locations"][0]["physicalLocation"] for one in run["results"]]
    found = [
        (
            one["ruleId"],
            one["level"],
            place["artifactLocation"]["uri"],
            place["region"]["startLine"],
        )
        for one, place in zip(run["results"], places, strict=True)
    ]
    assert log["version"] == "2.1.0"
    assert found == [
        ("HT003", "warning", "bad.sh", 2),
        ("HT303", "warning", "bad.sh", 3),
        # A path that begins with a slash is no URI.
        ("HT105", "note", info.as_uri(), 1),
    ]
    assert {one["id"] for one in run["tool"]["driver"]["rules"]} == {one[0] for one in found}
