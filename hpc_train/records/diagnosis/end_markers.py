"""Lines by which a program reports that its work is done, or that it ended before that."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal

from hpc_train.model.value import Value
from hpc_train.records.line import Line

# `work`: the work is done, but the remaining steps of the program (save, evaluate) may fail;
# `bench`: a measurement is done, perhaps one before the work; `part`: an epoch or a stage is done,
# or all of them: any failure after it counts.
EndingKind = Literal["success", "work", "bench", "part", "restart", "failure"]


class Ending(Value, frozen=True, kw_only=True):
    """A line that reports how the work ended; `restart` cancels the endings before it."""

    kind: EndingKind
    line: int
    text: str


LONGEST = 500
_Pattern = tuple[EndingKind, bytes, re.Pattern[str]]

_MLPERF: tuple[_Pattern, ...] = (
    (
        "success",
        b"run_stop",
        re.compile(r'"(?:status|value)": ?"success"|"success": ?"?[Tt]rue\b'),
    ),
    ("failure", b"run_stop", re.compile(r'"status": ?"aborted"|"success": ?"?[Ff]alse\b')),
    ("restart", b"run_start", re.compile(r":::MLP?.{0,400}\brun_start\b")),
    # The final line of rounds 0.5 and 0.6, and the line of the script that runs the program.
    ("work", b"run_final", re.compile(r":::MLP?.{0,400}\brun_final\b")),
    (
        "work",
        b"RESULT,",
        re.compile(r"^RESULT,[\w .-]{1,60},[\d,]{1,24}[\w .-]{0,40},\d{4}-\d\d-\d\d "),
    ),
)
# Endings by launchers, schedulers and PyTorch's own trainers.
_LAUNCHERS: tuple[_Pattern, ...] = (
    ("success", b"Training completed", re.compile(r"(?:^|- |\] )Training completed\b")),
    *(
        ("success", literal, re.compile(r'@hpct \{[^{}]{0,400}"event": ?"end"'))
        for literal in (b'"event":"end"', b'"event": "end"')
    ),
    ("success", b"exits successfully", re.compile(r"\bProcess \d+ exits successfully")),
    (
        "success",
        b"worker group finished (",
        re.compile(r"worker group finished \((?:WorkerState\.)?SUCCEEDED\)"),
    ),
    ("success", b"successfully finished.", re.compile(r"\] All workers successfully finished\.$")),
    (
        "success",
        b"COMPLETED (exit code 0)",
        re.compile(r"^\s{0,8}State ?: COMPLETED \(exit code 0\)"),
    ),
    ("success", b"Successfully completed.", re.compile(r"^Successfully completed\.$")),
    ("success", b"Reporting training SUCCESS", re.compile(r"\bReporting training SUCCESS$")),
    ("part", b"process to finish... (success)", re.compile(r"finish\.\.\. \(success\)")),
)
_DONE_TRAINING = (
    r"[Tt]raining (?:is )?(?:[Cc]ompleted?|[Ff]inished|[Dd]one)\b"
    r"|TRAINING (?:COMPLETED?|FINISHED|DONE)\b"
)
_TRAINERS: tuple[_Pattern, ...] = (
    ("success", b"[after training is done]", re.compile(r"\[after training is done\]")),
    (
        "work",
        b"exiting program a",
        re.compile(r"exiting program (?:at iteration \d|after [\d.]{1,12} minutes)"),
    ),
    ("success", b"done training in", re.compile(r"\bdone training in \d")),
    ("work", b"'train_runtime':", re.compile(r"(?:^|\s)\{[^{}]{0,400}'train_runtime':")),
    ("work", b"***** train metrics *****", re.compile(r"^\*{5} train metrics \*{5}")),
    (
        "work",
        b"`Trainer.fit` stopped: ",
        re.compile(r"`Trainer\.fit` stopped: `max_\w+=.{1,40} rea"),
    ),
    ("work", b"Training time ", re.compile(r"^Training time \d+(?: days?, \d+)?:\d\d:\d\d")),
    ("work", b"Training time: ", re.compile(r"^Training time: [\d.]{1,16}s$")),
    ("work", b"Total Training Time: ", re.compile(r"^Total Training Time: [\d.]{1,16} min$")),
    ("work", b"FINISHED Optimization", re.compile(r"\bFINISHED Optimization - training time: ")),
    # Detectron2 prints a similar line after an error, but with the time of its hooks.
    (
        "work",
        b"Total training time: ",
        re.compile(r"Total training time: [\d:., day]{4,40} \([\d.]{1,12} s / it\)"),
    ),
    (
        "work",
        b"epochs completed in",
        re.compile(r"^\s{0,8}\d{1,6} epochs completed in [\d.]+ hours"),
    ),
    ("work", b"Run stats:", re.compile(r"\bRun stats:$")),
    ("work", b"Ending Model Training", re.compile(r"\bEnding Model Training \.{3}$")),
    ("work", b"All done!", re.compile(r"\bAll done!$")),
    ("work", b"*** Best metric: ", re.compile(r"\*\*\* Best metric: ")),
    ("work", b"Loss for final step: ", re.compile(r"\bLoss for final step: ")),
    ("work", b"Final validation metrics: ", re.compile(r"\bFinal validation metrics: ")),
    ("work", b"total average iteration time: ", re.compile(r"^total average iteration time: \d")),
    *(
        (
            "part",
            literal,
            re.compile(rf"(?<![\w\"'`])(?:{_DONE_TRAINING})(?! ?\d{{1,9}}/\d)"),
        )
        for literal in (
            *(b"raining complete", b"raining finished", b"raining done"),
            *(b"raining Complete", b"raining Finished", b"raining Done"),
            *(b"raining is complete", b"raining is finished", b"raining is done"),
            *(b"RAINING COMPLETE", b"RAINING FINISHED", b"RAINING DONE"),
        )
    ),
    *(
        ("part", literal.encode(), re.compile(literal))
        for literal in ("训练完成", "训练结束", "訓練完成")
    ),
    *(
        (
            "part",
            literal,
            re.compile(
                r"^(?:\W{0,8}|.{0,120}[\]:-] )(?:Finished|Done|Completed) (?:model )?[Tt]raining"
            ),
        )
        for literal in (
            *(b"Finished Training", b"Finished training", b"Done training"),
            *(b"Completed Training", b"Completed training", b"Completed model training"),
        )
    ),
)
_BENCHMARKS: tuple[_Pattern, ...] = (
    ("bench", b"Avg bus bandwidth", re.compile(r"^#\s*Avg bus bandwidth\s*:\s*[\d.]+")),
    ("bench", b"Collective test concluded", re.compile(r"^#\s*Collective test concluded")),
    (
        "failure",
        b"Out of bounds values",
        re.compile(r"^#\s*Out of bounds values\s*:\s*[1-9]\d* FAIL"),
    ),
    ("work", b"Total img/sec on", re.compile(r"^Total img/sec on \d+ ")),
    ("work", b"total images/sec: ", re.compile(r"^total images/sec: \d")),
    ("bench", b"End of Tests.", re.compile(r"^End of Tests\.$")),
    ("bench", b"entering MPI_Finalize", re.compile(r"^# All processes entering MPI_Finalize")),
)
_PATTERNS = (*_MLPERF, *_LAUNCHERS, *_TRAINERS, *_BENCHMARKS)
_STATUS = re.compile(r'"(?:status|success)": ?(?:"\w{1,40}"|true|false)')


class EndingReader:
    """Finds the endings in one log."""

    literals = tuple(dict.fromkeys(literal for _, literal, _ in _PATTERNS))
    wants_next = False

    def read(self, line: Line) -> Iterator[Ending]:
        """Yield the ending that the line reports."""
        # A traced script contains the line only as a quotation.
        if not line.raw.lstrip().startswith(b"+"):
            yield from _endings_in(line)


def _endings_in(line: Line) -> Iterator[Ending]:
    for kind, literal, pattern in _PATTERNS:
        if literal in line.raw and pattern.search(line.text):
            text = _stop(line.text) if literal == b"run_stop" else line.text
            yield Ending(kind=kind, line=line.number, text=text[:LONGEST])
            return


def _stop(text: str) -> str:
    """Return the status of MLPerf's `run_stop`, without the rest of its line."""
    found = _STATUS.search(text)
    return f"run_stop, {found[0]}" if found else text
