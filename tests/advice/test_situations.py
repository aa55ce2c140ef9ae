"""Situations with a known answer: what is recommended, and the reason that must be given."""

from typing import Any

import pytest
from msgspec.structs import replace

from hpc_train.advice.advice import Question
from hpc_train.advice.verdicts import advise
from tests.advice.questions import A100, CPUS, V100, ask, gpt, other, row_of, step
from tests.cases import cases

SLOW_NETWORK = replace(A100, node_link=1.25)
A100_80 = replace(A100, gpus_per_node=8, ranks_per_node=8, least_gib=80, most_gib=80, node_link=200)
H100 = replace(A100_80, gpu="H100", least_gib=64, most_gib=96, gpu_link=450.0, node_link=400.0)


MACHINES = {
    "A100": A100, "V100": V100, "CPUS": CPUS, "SLOW_NETWORK": SLOW_NETWORK, "A100_80": A100_80,
    "H100": H100,
}  # fmt: skip
SITUATIONS = cases("advice/situations.yaml", "situations")


def question_of(asked: dict[str, Any]) -> Question:
    """Return the question that a row of the table describes by what is unusual about it."""
    rest = {"model": "gpt-124m", "machine": "A100", "steps": (), "sizes": (), **asked}
    model, machine = rest.pop("model"), MACHINES[rest.pop("machine")]
    program = replace(other() if model == "own" else gpt(model), **rest.pop("program", {}))
    machine = replace(machine, **rest.pop("changed", {}))
    measured = tuple(step(**one) for one in rest.pop("steps"))
    return ask(program, machine, *rest.pop("sizes"), measured=measured, **rest)


@pytest.mark.parametrize("situation", SITUATIONS.values(), ids=SITUATIONS.keys())
def test_the_answer_is_right_and_says_why(situation: dict[str, Any]) -> None:
    advice = advise(question_of(situation.pop("asked")))
    refused = "; ".join(reason for _, reason in advice.refused)
    said = {"refused": refused, "missing": "; ".join(advice.missing)}
    for key, words in situation.items():
        assert words in (said[key] if key in said else getattr(advice, key))


@pytest.mark.parametrize("situation", cases("advice/situations.yaml", "assumptions"))
def test_the_answer_names_what_it_assumes(situation: dict[str, Any]) -> None:
    question = question_of(situation["asked"])
    stated = dict.fromkeys(situation["asked"]["program"], "stated")
    advice = advise(replace(question, program=replace(question.program, sources=stated)))
    said = [advice.one_rank, advice.recommended, advice.limit, *advice.missing]
    for row in advice.rows:
        where, end = f"{row.strategy} on {row.ranks}", row.step.high or 0.0
        said.append(f"{where}: {row.verdict}: {row.reason}{row.assuming}")
        said.append(f"{where}: {row.step.low:.3g} to {end:.3g} s")
        said += [f"{where}: {row.memory.whole.low / 2**30:.0f} GiB"] if row.memory else []
    assert [one for one in situation["words"] if one not in "\n".join(said)] == []


@pytest.mark.parametrize(
    ("question", "strategy", "ranks", "verdict", "reason"),
    [
        (ask(gpt(global_batch=8)), "fsdp", 4, "not needed", "ddp fits"),
        (ask(gpt("gpt-1.5b", global_batch=8), V100), "ddp", 2, "does not fit", "even with one"),
        (ask(gpt(global_batch=16)), "ddp", 16, "not advised", "1 sample for each rank"),
        (
            ask(gpt(), SLOW_NETWORK, measured=(step(0.1),)),
            "ddp", 16, "not worth it", "even if all communication is hidden",
        ),
    ],
)  # fmt: skip
def test_a_row_has_its_reason(
    question: Question, strategy: str, ranks: int, verdict: str, reason: str
) -> None:
    row = row_of(advise(question), strategy, ranks)
    assert row.verdict == verdict
    assert reason in row.reason
