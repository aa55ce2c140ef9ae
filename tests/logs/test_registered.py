"""What every registered parser promises: its sample, its literals, its documentation."""

from pathlib import Path

import pytest

from hpc_train.base import registry
from hpc_train.base.data_folders import data_file
from hpc_train.base.metrics import UNITS
from hpc_train.logs import formats as parsers
from hpc_train.logs.collect import collect
from hpc_train.logs.formats.formats import FormatError, _own, compiled, maker, read_formats
from hpc_train.logs.read_log import GUESSING, stated
from tests.logs.parse_text import parse

# The generic parser reads logs that these do not know, in a pass of its own.
NAMES = tuple(name for name in registry.BUILT_IN["parsers"] if name != GUESSING)


@pytest.mark.parametrize("name", (*NAMES, GUESSING))
def test_sample_states_what_the_parser_promises(name: str) -> None:
    parser = maker(name)()
    found = parse(parser.sample.encode(), name)
    assert {hit.metric: hit.scope for _, hit, _ in found} == stated(parser) != {}
    assert all(hit.unit or UNITS[hit.metric] for _, hit, _ in found)


@pytest.mark.parametrize("name", NAMES)
def test_sample_is_claimed_by_its_own_parser(name: str) -> None:
    sample = maker(name)().sample.encode()
    assert parse(sample) == parse(sample, name)


@pytest.mark.parametrize("name", NAMES)
def test_samples_of_others_state_nothing(name: str) -> None:
    every = (*NAMES, GUESSING)
    others = {other: maker(other)().sample.encode() for other in every if other != name}
    # Any bar is one of tqdm's, but only the parser of the program that drew it knows its scope.
    stated = {
        o: [h for _, h, _ in parse(s, name) if h.scope != "unknown"] for o, s in others.items()
    }
    assert not [other for other, hits in stated.items() if hits]


def test_parsers_holds_registered_parsers_and_the_plugin_interface_only() -> None:
    modules = {file.stem for file in Path(parsers.__file__).parent.glob("*.py")} - {"__init__"}
    entries = read_formats(data_file("formats.yaml")).value.formats
    assert tuple(entries) == (*NAMES, GUESSING)
    coded = {entry.code.partition(":")[0] for entry in entries.values()} - {""}
    assert coded <= modules
    assert modules - coded == {"base", "formats", "pattern"}


FORMAT = """\
schema: 1
formats:
  ours:
    title: our trainer
    literals: ['it/ms=']
    sample: 'it 20 it/ms=131.5'
    lines:
      - pattern: 'it (?P<step>\\d{1,9}) it/ms=(?P<step_time>{N})'
        values:
          step_time: {scope: per_rank, scale: 1e-3}
"""


@pytest.mark.parametrize(
    ("right", "wrong", "text"),
    [
        ("{scope: per_rank,", "{scop: per_rank,", ":10: "),
        ("per_rank", "per_node", ":10: "),
        ("(?P<step>", "(?P<step>(", ":8: formats.ours.lines.0.pattern: no regular expression"),
        ("step_time: {", "time: {", ":10: formats.ours.lines.0.values.time: the pattern has no"),
        ("step_time", "step_tine", ":10: formats.ours.lines.0.values.step_tine: no metric"),
        ("['it/ms=']", "[]", ":5: "),
    ],
)
def test_a_mistake_is_named_with_its_line(
    right: str, wrong: str, text: str, tmp_path: Path
) -> None:
    path = tmp_path / "formats.yaml"
    path.write_text(FORMAT.replace(right, wrong), "utf-8")
    with pytest.raises(FormatError) as found:
        compiled(read_formats(path), "ours")
    assert str(found.value).startswith(f"{path}{text}")


def test_a_format_of_the_site_is_read_before_those_of_the_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HPCTRAIN_SITE_PATH", str(tmp_path / "site"))
    (tmp_path / "site" / "formats").mkdir(parents=True)
    file, log = tmp_path / "site" / "formats" / "a.yaml", tmp_path / "a.log"
    file.write_text(FORMAT, "utf-8")
    log.write_text("it 20 it/ms=131.5\n", "utf-8")
    (record,) = collect("r", [log])
    assert (record.parser, record.step, record.value) == ("ours", 20, 0.1315)
    for wrong in (
        FORMAT.replace("ours:", "megatron:"),
        FORMAT.replace("sample: 'it", "sample: 'x"),
    ):
        _own.cache_clear()
        file.write_text(wrong, "utf-8")
        with pytest.raises(FormatError, match=r"a\.yaml:3: formats\."):
            collect("r", [log])
    _own.cache_clear()
