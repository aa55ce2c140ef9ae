"""What a user writes on ReFrame's stored cases: mean and interval of each case, and the change."""

import json
import sqlite3
import sys

import pandas as pd
from scipy import stats

with sqlite3.connect(sys.argv[1]) as base:
    sessions = [json.loads(blob) for (blob,) in base.execute("SELECT json_blob FROM sessions")]
rows = [
    {"name": case["name"], "start": session["session_info"]["time_start_unix"], "value": values[0]}
    for session in sessions
    for run in session["runs"]
    for case in run["testcases"]
    for values in (case["perfvalues"] or {}).values()
]
cases = pd.DataFrame(rows)
cases["old"] = cases["start"] < cases["start"].max() - 5 * 86400
found = cases.groupby(["name", "old"])["value"].agg(["size", "mean", "std"])
t = stats.t.ppf(0.975, (found["size"] - 1).clip(lower=1))
found["half"] = t * found["std"] / found["size"] ** 0.5
print(found.unstack().to_string())
