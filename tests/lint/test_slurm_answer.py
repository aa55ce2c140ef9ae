"""An answer of Slurm: the line that it is about, what is allowed, and nothing said twice."""

import pytest

from hpc_train.base.slurm_options import refusal_of
from hpc_train.base.values import LintFinding
from hpc_train.lint.lint_script import chosen_rules, lint_script
from hpc_train.lint.rule import LintContext
from hpc_train.lint.rules.slurm_answer import without_repetition
from hpc_train.slurm.live_cluster import Association, SlurmAnswer, SlurmFacts, nodes, partitions
from tests.cases import cases

NODE = "Arch=x86_64 CPUTot=8 RealMemory=4000 Gres=gpu:a100:4 Partitions=gpu,long"
NODES = nodes(
    f"NodeName=n1 State=IDLE AvailableFeatures=old {NODE}\n"
    f"NodeName=n2 State=IDLE AvailableFeatures=new {NODE}\n"
)
PARTITIONS = partitions(
    "PartitionName=gpu Default=YES MaxTime=01:00:00 MaxNodes=UNLIMITED TotalNodes=2 State=UP\n"
    "PartitionName=long Default=NO MaxTime=UNLIMITED MaxNodes=UNLIMITED TotalNodes=2 State=DRAIN\n"
)
# sacctmgr lists them in another order in each version.
MINE = tuple(
    Association(account=account, partition="", qos=qos, default_qos="", max_submit_jobs=None)
    for account, qos in (("xyz", ("normal", "high")), ("abc", ("high",)))
)
FACTS = SlurmFacts(partitions=PARTITIONS, nodes=NODES, associations=MINE)
NOT_AVAILABLE = "allocation failure: Requested node configuration is not available"
NODE_COUNT = "allocation failure: Node count specification invalid"


def refused(words: str, facts: SlurmFacts = FACTS, **given: object) -> SlurmAnswer:
    refusal = refusal_of(words)
    return SlurmAnswer(outcome="refused", words=words, refusal=refusal, facts=facts, **given)  # type: ignore[arg-type]


def finding(text: str, answer: SlurmAnswer) -> LintFinding:
    """Return the only finding of the rule on refusals; the directives begin on line 2."""
    script = "#!/bin/bash\n" + "".join(f"#SBATCH {line}\n" for line in text.split("; ") if line)
    context = LintContext(answer=answer)
    (one,) = lint_script(f"{script}python train.py\n", context, chosen_rules(["HT801"]))
    return one


@pytest.mark.parametrize(
    ("text", "words", "line", "said"),
    cases("lint/answers.yaml", "the_line_and_what_is_allowed"),
)  # fmt: skip
def test_the_line_and_what_is_allowed(text: str, words: str, line: int, said: str) -> None:
    stray = "word" if "word" in words else ""
    found = finding(text, refused(words, stray=stray))
    assert (found.line, found.severity) == (line, "error")
    assert words in found.message
    assert said in found.advice


def test_without_facts_the_options_are_named_and_none_is_blamed() -> None:
    found = finding("--mem=1G; --gres=gpu:5", refused(NOT_AVAILABLE, SlurmFacts()))
    assert "it is about --gres=gpu:5 (line 3) or --mem=1G (line 2)" in found.advice


def test_a_drained_partition_is_the_reason() -> None:
    drained = nodes(f"NodeName=n1 State=IDLE+DRAIN {NODE}\nNodeName=n2 State=DOWN* {NODE}\n")
    facts = SlurmFacts(partitions=PARTITIONS, nodes=drained)
    found = finding("--mem=1G", refused(NOT_AVAILABLE, facts))
    assert "all 2 nodes of gpu are unusable (DOWN*, IDLE+DRAIN)" in found.advice


def test_an_unknown_refusal_is_shown_as_it_is() -> None:
    found = finding("-p gpu -N 9", refused("allocation failure: Kittens\x1b[31m"))
    assert found.message == "Slurm refuses the script: allocation failure: Kittens?[31m"
    assert found.line == 1
    assert found.advice.startswith("hpctrain does not know this message")
    assert finding("-N 2; -p gpu", refused("lua: --partition is wrong")).line == 3


@pytest.mark.parametrize(
    ("directive", "words", "ids"),
    [
        ("-Y2", "invalid option -- 'Y'", ["HT013"]),
        ("--partition=$P", "invalid partition specified: $P", ["HT010"]),
        ("--nodes=$N --partition=p", NODE_COUNT, ["HT010", "HT801"]),
    ],
)
def test_what_a_rule_has_said_of_the_line_is_not_repeated(
    directive: str, words: str, ids: list[str]
) -> None:
    answer = refused(words)
    text = f"#!/bin/bash\n#SBATCH {directive} --time=1:00:00\npython t.py\n"
    found = without_repetition(lint_script(text, LintContext(answer=answer)), answer)
    assert [one.id for one in found] == ids


def test_another_line_or_a_warning_does_not_stand_for_a_refusal() -> None:
    answer = refused("unrecognized option '--nods=2'")
    for line, severity in ((3, "error"), (2, "warning")):
        found = [
            LintFinding(id="HT013", severity=severity, line=line, message=""),  # type: ignore[arg-type]
            LintFinding(id="HT801", severity="error", line=2, message=""),
        ]
        assert without_repetition(found, answer) == tuple(found)


def test_a_warning_of_sbatch_has_the_line_of_its_option() -> None:
    words = "Ignoring --thread-spec since it's not allowed by configuration"
    answer = SlurmAnswer(outcome="accepted", words="", warnings=(words,))
    script = "#!/bin/bash\n#SBATCH -N 1\n#SBATCH --thread-spec=2\n"
    plan, warning = lint_script(script, LintContext(answer=answer), chosen_rules(["HT802"]))
    assert (plan.line, plan.severity, plan.message) == (1, "info", "Slurm accepts the script")
    assert (warning.line, warning.severity) == (3, "warning")


def test_a_node_that_is_down_offers_nothing() -> None:
    large = NODE.replace("RealMemory=4000", "RealMemory=9000")
    some = nodes(f"NodeName=n1 State=IDLE {NODE}\nNodeName=n2 State=DOWN {large}\n")
    facts = SlurmFacts(partitions=PARTITIONS, nodes=some)
    found = finding("-N 1; --mem=8000M", refused(NOT_AVAILABLE, facts))
    assert (found.line, "at most 4000M" in found.advice) == (3, True)
