"""What is kept of a log counts only for the same parser, prefix and patterns."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path

import pytest

from hpc_train.model.log_selection import LogPattern
from hpc_train.records.collect import logs_of, records_of, wanted
from hpc_train.records.parse_stats import ParseStats
from hpc_train.records.read_log import Wanted
from hpc_train.records.record_index import Index

TOOK = LogPattern(regex=r"took (?P<step_time>[\d.]+) s", scope="global")
QUESTIONS = {
    "auto": wanted("auto"),
    "events": wanted("events"),
    "prefix": wanted("auto", r"job \d{1,9}: "),
    "pattern": wanted("auto", patterns=(TOOK,)),
}


def read(log: Path, question: Wanted, kept: bytes = b"") -> tuple[Index, int]:
    index = Index(question, kept)
    return index, len(list(records_of(logs_of("r", [log]), question, ParseStats(), index)))


@pytest.mark.parametrize(("first", "second"), list(permutations(QUESTIONS, 2)))
def test_another_question_reads_the_log_again(tmp_path: Path, first: str, second: str) -> None:
    log = tmp_path / "a.log"
    log.write_text('job 7: took 0.5 s\njob 7: @hpct {"step":1,"step_time":0.5}\n')
    kept = read(log, QUESTIONS[first])[0].content()
    assert kept is not None
    fresh = read(log, QUESTIONS[second])
    assert read(log, QUESTIONS[second], kept)[1] == fresh[1]
    (asked,) = logs_of("r", [log])
    assert Index(QUESTIONS[first], kept).knows(asked)
    assert not Index(QUESTIONS[second], kept).knows(asked)
