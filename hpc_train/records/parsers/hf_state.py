"""Files of Hugging Face's Trainer: trainer_state.json, all_results.json, train_results.json.

The entries of `log_history` are the Trainer's log entries (see `hf_log`), each with its step. The
result files contain the summary, one value per line. Units and scopes are the same as in the log.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping

from hpc_train.model.record import Scope
from hpc_train.records.line import Line
from hpc_train.records.parsing.hf_log import accuracy_hits, hits_of_log, step_of, summary_hits
from hpc_train.records.parsing.log_parser import Hit, Unreadable

_HISTORY = '"log_history": ['
_ENTRY = re.compile(r"\{[^{}]{0,16384}\}")
_LONGEST = 1 << 15
_RESULT = re.compile(
    r'^ *"((?:train|eval)_(?:runtime|samples_per_second|tokens_per_second|accuracy))": '
    r"([-+.\w]{1,40}),?$"
)


class HfState:
    """Parser of the files; remembers the part of an entry that it has seen."""

    title = "Hugging Face Trainer's trainer_state.json and *_results.json"
    literals = (
        _HISTORY.encode(),
        b'"train_runtime": ',
        b'"train_samples_per_second": ',
        b'"train_tokens_per_second": ',
        b'"eval_accuracy": ',
    )
    sample = (
        '  "log_history": [\n    {\n      "epoch": 0.5,\n      "learning_rate": 5e-05,\n'
        '      "loss": 2.41,\n      "step": 10\n    },\n    {\n      "epoch": 1.0,\n'
        '      "step": 20,\n      "train_loss": 2.2,\n      "train_runtime": 38.7,\n'
        '      "train_samples_per_second": 52.9\n    }\n  ],\n'
    )
    states: Mapping[str, Scope] = {
        "loss": "global",
        "learning_rate": "global",
        "time_to_train": "global",
        "samples_per_second": "global",
    }

    def __init__(self) -> None:
        self.wants_next = False
        self._open = ""
        self._step = 0

    def read(self, line: Line) -> Iterator[Hit | Unreadable]:
        """Yield the values of the entries that end on this line, or the result on this line."""
        text = line.text
        if not self.wants_next:
            start = text.find(_HISTORY)
            if start < 0:
                yield from _result(text)
                return
            self.wants_next, self._open, self._step = True, "", 0
            text = text[start + len(_HISTORY) :]
        self._open += text + " "
        end = 0
        for entry in _ENTRY.finditer(self._open):
            end = entry.end()
            yield from self._entry(entry[0])
        self._open = self._open[end:].lstrip(" ,")
        if self._open.startswith("]"):
            self.wants_next = False
        elif len(self._open) > _LONGEST:
            self.wants_next = False
            yield Unreadable()

    def _entry(self, text: str) -> Iterator[Hit | Unreadable]:
        try:
            entry = json.loads(text, parse_int=str, parse_float=str, parse_constant=str)
        except ValueError:
            yield Unreadable()
            return
        log = {key: value for key, value in entry.items() if isinstance(value, str)}
        step = step_of(log)
        steps = max(1, (step or 0) - self._step) if "loss" in log else 1
        if "loss" in log:
            self._step = step or 0
        yield from hits_of_log(log, step, steps)


def _result(text: str) -> Iterator[Hit]:
    result = _RESULT.match(text)
    if result is not None:
        log = {result[1]: result[2]}
        yield from accuracy_hits(log) if "eval_accuracy" in log else summary_hits(log)
