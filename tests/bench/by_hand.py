"""What a user writes without hpctrain: a log -> CSV of file, line, metric, value; no prefix, unit.

The fair measure of `collect` where every line counts: one loop, a word and a pattern per format.
"""

import csv
import re
import sys
from pathlib import Path

FORMATS = [
    ("eta: ", r"Epoch: \[(?P<epoch>\d+)\].* time: (?P<step_time>[\d.]+).*mem: (?P<memory>\d+)"),
    ("eta: ", r" lr: (?P<learning_rate>[\d.]+)"),
    ("samples/sec", r"Speed: (?P<samples_per_second>[\d.]+).*accuracy=(?P<accuracy>\S+)"),
    ("iter ", r"loss (?P<loss>[\d.]+), time (?P<step_time>[\d.]+)ms, mfu (?P<mfu>[-\d.]+)%"),
    ("lm loss", r"\(ms\): (?P<step_time>[\d.]+).*batch size: +(?P<batch>\d+).*loss: (?P<loss>\S+)"),
    ("tps: ", r"loss: +(?P<loss>[\d.]+).*tps: (?P<tps>[\d,]+).*mfu: (?P<mfu>[\d.]+)%"),
    ("per GPU", r"(?P<samples_per_second>[\d.]+) img/sec per GPU"),
    (" float ", r"(?P<size>\d+) +\d+ +float +.*? (?P<time>\d+\.?\d*) +(?P<algbw>[\d.]+)"),
    (":::MLLOG", r'"key": "(?P<key>\w+)", "value": (?P<value>[\d.]+)'),
    ("Validation", r"loss: (?P<loss>[\d.]+) acc: (?P<accuracy>[\d.]+)"),
    ("TimeHistory", r"TimeHistory: (?P<seconds>[\d.]+) seconds, (?P<examples>[\d.]+)"),
]
PATTERNS = [(word, re.compile(pattern)) for word, pattern in FORMATS]
with Path(sys.argv[1]).open(errors="replace") as log, Path(sys.argv[2]).open("w") as out:
    rows, columns = csv.writer(out), [""]
    for number, line in enumerate(log, 1):
        for word, pattern in PATTERNS:
            if word in line and (match := pattern.search(line)):
                for metric, value in match.groupdict().items():
                    rows.writerow((sys.argv[1], number, metric, value))
        cells = line.rstrip().split(",")
        if "step" in cells:
            columns = cells
        elif len(cells) == len(columns) > 1:
            for metric, value in zip(columns, cells, strict=True):
                if value:
                    rows.writerow((sys.argv[1], number, metric, value))
