"""Metric: one quantity of runs and points, with its properties for tables and reports."""

from typing import Literal

from hpc_train.base.values import Value

Direction = Literal["higher", "lower", ""]
# How the records of a run become its value.
OfRun = Literal["none", "given", "computed", "last", "highest", "median", "rate"]
# How the values of the runs of a point become the value of the point.
OverRuns = Literal["none", "computed", "mean", "harmonic", "same", "least", "most"]
# The scopes of records whose values can be summed; empty means all scopes.
Scopes = tuple[Literal["global", "per_rank", "per_gpu"], ...]


class Basis(Value, frozen=True, kw_only=True):
    """A quantity whose ratio is a speedup: a rate of `item` or, without `item`, a time.

    Of several the one of the lowest `rank` is used. `sentence`, `heading` and `axis` are its unit
    in a sentence, in a table and on an axis, if they differ from those of a rate; the axis of a
    time shows its inverse per `per_s` seconds. The speedup of a time assumes the same `same`
    at every size.
    """

    name: str
    rank: int
    item: str = ""
    sentence: str = ""
    heading: str = ""
    axis: str = ""
    per_s: float = 3600.0
    same: str = ""

    @property
    def is_rate(self) -> bool:
        """Whether a higher value is faster."""
        return bool(self.item)

    @property
    def counted(self) -> str:
        """What a cost is of: `tokens`, else `samples`."""
        return self.item or "samples"

    @property
    def per_step(self) -> bool:
        """Whether it is the time of a step, whose work the batch decides."""
        return self.per_s == 1.0

    @property
    def in_sentence(self) -> str:
        """The unit after a number: `samples/s`, `s an epoch`."""
        return self.sentence or f"{self.item}/s"

    @property
    def in_heading(self) -> str:
        """The unit in a heading: `samples/s`, `epoch time [s]`."""
        return self.heading or f"{self.item}/s"

    @property
    def at_axis(self) -> str:
        """The label of an axis: `throughput [samples/s]`, `epochs per hour`."""
        return self.axis or f"throughput [{self.item}/s]"


class TextColumn(Value, frozen=True, kw_only=True):
    """How the points table shows a metric, always or with `--wide`.

    If the heading contains `{level}`, the level of confidence, the column also shows the interval.
    `{own}` stands for `own-series` where each of several series has its own baseline, `{items}` for
    the samples or tokens that are counted.
    `wide_heading` is the heading of the wide table, if it differs. Values are multiplied by
    `factor` and have four significant digits, or `decimals` decimals; with `whole`, zeros after the
    decimal point are omitted. The column follows that of the previous metric, or of `after`.
    """

    heading: str
    wide_heading: str = ""
    compact: bool = False
    decimals: int | None = None
    factor: float = 1
    whole: bool = False
    after: str = ""


class Metric(Value, frozen=True, kw_only=True):
    """One quantity: `key` is its column in the tables of runs and of points, and in every file.

    `name`: its name in long tables (`-f tidy`), which omit a metric without a name. `direction`:
    the better one. `record`: the metric of the records from which it is computed: those without a
    variant, and those whose variant begins with `variant`; `scopes` are the allowed scopes.
    `of_run` and `over_runs`: how its values are computed; `computed` means a special rule, and
    `none` a table without the metric. `limits`: its interval at points, as one object in JSON or as
    separate `columns`. `json_key`: its key in `rows` of JSON and CSV, if it differs. `basis`: its
    ratio is a speedup. `text`: its column in the points table. `run_heading`: its heading in the
    page's table of runs.
    """

    key: str
    name: str = ""
    unit: str = "1"
    direction: Direction = ""
    record: str = ""
    variant: str = ""
    scopes: Scopes = ()
    of_run: OfRun = "median"
    over_runs: OverRuns = "mean"
    limits: Literal["", "object", "columns"] = ""
    counts: bool = False
    json_key: str = ""
    basis: Basis | None = None
    text: TextColumn | None = None
    run_heading: str = ""


HARDWARE_METRICS: tuple[Metric, ...] = (
    Metric(
        key="mfu", name="mfu", direction="higher", record="mfu", run_heading="MFU",
        text=TextColumn(heading="MFU\n[%]", decimals=1, factor=100),
    ),
    Metric(
        key="tflops_per_gpu", name="tflops_per_gpu", unit="TFLOP/s", direction="higher",
        record="tflops", of_run="computed", run_heading="TFLOP/s per GPU",
        text=TextColumn(heading="TFLOP/s\na GPU"),
    ),
    Metric(
        key="mfu_computed", name="mfu_computed", direction="higher", of_run="computed",
        text=TextColumn(heading="computed\nMFU [%]", decimals=1, factor=100),
    ),
    Metric(
        key="tflops_per_gpu_computed", name="tflops_per_gpu_computed", unit="TFLOP/s",
        direction="higher", of_run="computed",
        text=TextColumn(heading="computed\nTFLOP/s\na GPU"),
    ),
    Metric(
        key="memory_gib", name="memory", unit="GiB", direction="lower", record="memory",
        variant="max_", of_run="highest", over_runs="most", run_heading="memory [GiB]",
        text=TextColumn(heading="memory\n[GiB]"),
    ),
    Metric(
        key="power_w", name="power", unit="W", direction="lower", record="power",
        of_run="computed", run_heading="power [W]", text=TextColumn(heading="power\n[W]"),
    ),
    Metric(
        key="power_per_rank_w", name="power_per_rank", unit="W", direction="lower",
        of_run="computed", text=TextColumn(heading="power of\na rank [W]"),
    ),
    Metric(
        key="energy_j", name="energy", unit="J", direction="lower", record="energy",
        of_run="computed", run_heading="energy [J]", text=TextColumn(heading="energy\n[J]"),
    ),
    Metric(
        key="energy_per_sample_j", name="energy_per_sample", unit="J", direction="lower",
        of_run="computed", run_heading="J per sample", text=TextColumn(heading="J per\nsample"),
    ),
    Metric(
        key="energy_per_token_j", name="energy_per_token", unit="J", direction="lower",
        of_run="computed", text=TextColumn(heading="J per\ntoken"),
    ),
)  # fmt: skip


_RANKS: Scopes = ("global", "per_rank")
_ALL: Scopes = ("global", "per_rank", "per_gpu")
_WIDE_STEP = "step [ms]\n{level}"


def _quantile(percent: str) -> Metric:
    return Metric(
        key=f"step_p{percent}_s", name=f"step_time_p{percent}", unit="s", direction="lower",
        of_run="computed", text=TextColumn(heading=f"p{percent}\n[ms]", factor=1e3),
    )  # fmt: skip


METRICS: tuple[Metric, ...] = (
    Metric(
        key="global_batch", name="global_batch_size", unit="samples", record="global_batch_size",
        scopes=("global",), of_run="computed", over_runs="same", run_heading="batch",
        text=TextColumn(heading="batch", compact=True, whole=True),
    ),
    Metric(
        key="tokens_per_step", name="tokens_per_step", unit="tokens", record="tokens_per_step",
        scopes=("global",), of_run="computed", over_runs="same", run_heading="tokens a step",
        text=TextColumn(heading="tokens\na step", compact=True, whole=True),
    ),
    Metric(
        key="steps", name="steps", of_run="computed", over_runs="least", counts=True,
        text=TextColumn(heading="steps", whole=True, after="warmup_steps"),
    ),
    Metric(
        key="warmup_steps", name="warmup_steps", of_run="computed", over_runs="most", counts=True,
        text=TextColumn(heading="warm-up\nsteps", whole=True),
    ),
    Metric(
        key="step_time_s", name="step_time", unit="s", direction="lower", record="step_time",
        scopes=_RANKS, of_run="computed", limits="columns", run_heading="step [s]",
        basis=Basis(
            name="step time", rank=3, sentence="s a step", heading="step time [s]",
            axis="steps per second", per_s=1.0, same="global batch",
        ),
        text=TextColumn(
            heading="step\n[ms]", wide_heading=_WIDE_STEP, compact=True, factor=1e3,
        ),
    ),
    Metric(
        key="step_time_mean_s", name="step_time_mean", unit="s", direction="lower",
        of_run="computed", over_runs="none",
    ),
    *map(_quantile, ("05", "25", "75", "95")),
    Metric(
        key="epoch_time_s", name="epoch_time", unit="s", direction="lower", record="epoch_time",
        scopes=_RANKS, of_run="computed", run_heading="epoch time [s]",
        basis=Basis(
            name="epoch time", rank=2, sentence="s an epoch", heading="epoch time [s]",
            axis="epochs per hour", same="data in an epoch",
        ),
        text=TextColumn(heading="epoch\ntime [s]", compact=True, after="tokens_per_second"),
    ),
    Metric(
        key="epochs", of_run="computed", over_runs="none", counts=True,
    ),
    Metric(
        key="samples_per_second", name="samples_per_second", unit="1/s", direction="higher",
        record="samples_per_second", scopes=_ALL, of_run="computed", over_runs="harmonic",
        limits="object", json_key="throughput", run_heading="samples/s",
        basis=Basis(name="throughput", rank=0, item="samples"),
        text=TextColumn(heading="samples/s", wide_heading="samples/s\n{level}", compact=True),
    ),
    Metric(
        key="samples_per_second_per_rank", unit="1/s", direction="higher", of_run="none",
        over_runs="computed", json_key="throughput_per_rank",
        text=TextColumn(heading="samples/s\na rank"),
    ),
    Metric(
        key="tokens_per_second", name="tokens_per_second", unit="1/s", direction="higher",
        record="tokens_per_second", scopes=_ALL, of_run="rate", over_runs="harmonic",
        run_heading="tokens/s", basis=Basis(name="token throughput", rank=1, item="tokens"),
        text=TextColumn(heading="tokens/s", compact=True),
    ),
    Metric(
        key="ideal", of_run="none", over_runs="computed",
        text=TextColumn(heading="ideal", compact=True, whole=True, after="speedup"),
    ),
    Metric(
        key="speedup", direction="higher", of_run="none", over_runs="computed", limits="object",
        text=TextColumn(heading="{own}speedup\n{level}", compact=True, decimals=2),
    ),
    Metric(
        key="efficiency", direction="higher", of_run="none", over_runs="computed", limits="object",
        text=TextColumn(
            heading="{own}efficiency\n[%] {level}", compact=True, decimals=0, factor=100
        ),
    ),
    Metric(
        key="doubling", direction="higher", of_run="none", over_runs="computed", limits="object",
        text=TextColumn(heading="doubling\n{level}", decimals=2),
    ),
    Metric(
        key="karp_flatt", direction="lower", of_run="none", over_runs="computed", limits="object",
        text=TextColumn(heading="Karp-Flatt\n{level}", decimals=4),
    ),
    Metric(
        key="cv", direction="lower", of_run="none", over_runs="computed",
        text=TextColumn(heading="cv\n[%]", decimals=1, factor=100, after="samples_seen"),
    ),
    Metric(
        key="accuracy", name="accuracy", direction="higher", record="accuracy", scopes=_RANKS,
        of_run="computed", run_heading="accuracy",
        text=TextColumn(heading="accuracy\n[%] (change)", compact=True),
    ),
    Metric(key="accuracy_change_pp", of_run="none", over_runs="computed"),
    Metric(
        key="loss", name="loss", direction="lower", record="loss", scopes=_RANKS, of_run="last",
        run_heading="loss", text=TextColumn(heading="loss"),
    ),
    Metric(
        key="learning_rate", name="learning_rate", record="learning_rate", of_run="highest",
        over_runs="same", text=TextColumn(heading="learning\nrate"),
    ),
    Metric(
        key="optimiser_steps", name="optimiser_steps", record="steps", of_run="computed",
        text=TextColumn(heading="optimiser\nsteps", whole=True),
    ),
    Metric(
        key="samples_seen", name="samples_seen", record="samples", scopes=_RANKS,
        of_run="computed", text=TextColumn(heading="samples\nseen"),
    ),
    Metric(
        key="first_step_time_s", name="first_step_time", unit="s", direction="lower",
        record="first_step_time", scopes=_RANKS, of_run="highest",
        text=TextColumn(heading="first step\n[s]"),
    ),
    Metric(
        key="time_to_train_s", name="time_to_train", unit="s", direction="lower",
        record="time_to_train", scopes=_RANKS, of_run="highest", run_heading="time to train [s]",
        basis=Basis(
            name="time to train", rank=4, sentence="s to train", heading="time to train [s]",
            axis="trainings per hour", same="training",
        ),
        text=TextColumn(heading="time to\ntrain [s]", compact=True, after="epoch_time_s"),
    ),
    Metric(
        key="wall_s", name="wall_time", unit="s", direction="lower", of_run="given",
        run_heading="wall [s]", text=TextColumn(heading="wall\n[s]"),
    ),
    Metric(
        key="gpu_hours_per_million", unit="h", direction="lower", of_run="none",
        over_runs="computed", text=TextColumn(heading="GPU-h per\n1e6 {items}"),
    ),
    Metric(
        key="node_hours_per_million", unit="h", direction="lower", of_run="none",
        over_runs="computed", text=TextColumn(heading="node-h per\n1e6 {items}"),
    ),
    Metric(
        key="gpu_hours_spent", unit="h", of_run="none", over_runs="computed",
        text=TextColumn(heading="GPU-h\nspent"),
    ),
    *HARDWARE_METRICS,
    Metric(
        key="data_share", name="data_share", direction="lower", of_run="computed",
        text=TextColumn(
            heading="data\n[%]", decimals=1, factor=100, after="communication_share"
        ),
    ),
    Metric(
        key="communication_share", name="communication_share", direction="lower",
        of_run="computed",
        text=TextColumn(heading="communication\n[%]", decimals=1, factor=100),
    ),
    Metric(
        key="restarts", name="restarts", direction="lower", of_run="given", over_runs="none",
        counts=True, run_heading="restarts",
    ),
    Metric(
        key="lost_to_restarts_s", name="lost_to_restarts", unit="s", direction="lower",
        of_run="given", run_heading="lost to restarts [s]",
        text=TextColumn(heading="lost to\nrestarts [s]", compact=True),
    ),
)  # fmt: skip
RUN_METRICS = tuple(metric for metric in METRICS if metric.of_run != "none")
POINT_METRICS = tuple(metric for metric in METRICS if metric.over_runs != "none")
# What a speedup is the ratio of, what assumes least first, and the column of each.
_BASES = sorted(
    ((metric.basis, metric.key) for metric in METRICS if metric.basis),
    key=lambda basis: basis[0].rank,
)
BASES = {basis.name: basis for basis, _ in _BASES}
BASIS_COLUMNS = {basis.name: key for basis, key in _BASES}
# One of these is enough for a row of a speedup table.
RESULTS = tuple(metric for metric in METRICS if metric.basis)
RATE_RECORDS = tuple(m.record for m in RESULTS if m.basis and m.basis.is_rate)


def in_text_order() -> tuple[Metric, ...]:
    """Return the metrics that the points table shows, in the order of its columns."""
    shown = [metric for metric in METRICS if metric.text and not metric.text.after]
    for metric in METRICS:
        if metric.text and metric.text.after:
            keys = [one.key for one in shown]
            shown.insert(keys.index(metric.text.after) + 1, metric)
    return tuple(shown)


# Those that become metrics of runs, and those that stay what one line says.
UNITS: dict[str, str] = {
    **{metric.record: metric.unit for metric in METRICS if metric.record},
    "global_batch_size": "1",
    "phase_time": "s",
    "compute_time": "s",
    "iteration_time": "s",
    "not_finite": "1",
    "grad_norm": "1",
    "gflops": "GFLOP/s",
    "solve_time": "s",
    "residual": "1",
    "algbw": "GB/s",
    "busbw": "GB/s",
    "message_size": "B",
    "latency": "us",
    "wrong_values": "1",
    "batch_size": "1",
    "sequence_length": "1",
    "world_size": "1",
    "examples": "1",
    "parameters": "1",
    "state_memory": "GiB",
    "sent_bytes": "B",
    "exposed_communication": "1",
    "epoch": "1",
    "seed": "1",
    "threads": "1",
    "condition": "1",
}
