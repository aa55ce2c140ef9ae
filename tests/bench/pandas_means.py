"""What a user writes with pandas: means of a table of jobs by point, speedup and efficiency."""

import sys

import pandas as pd

jobs = pd.read_csv(sys.argv[1])
rate = "samples_per_second"
jobs = jobs[jobs[rate] > 0]
jobs["gpus"] = jobs["nodes"] * jobs["gpus_per_node"]
series = [name for name in ("site", "launcher", "variant") if name in jobs]
points = jobs.groupby([*series, "nodes", "gpus"], as_index=False).agg(
    n=(rate, "size"),
    mean=(rate, "mean"),
    deviation=(rate, "std"),
    batch=("global_batch_size", "mean"),
)
points = points.sort_values([*series, "gpus"])
first = points.groupby(series).transform("first")
points["speedup"] = points["mean"] / first["mean"]
points["ideal"] = points["gpus"] / first["gpus"]
points["efficiency"] = points["speedup"] / points["ideal"]
print(points.to_string(index=False))
