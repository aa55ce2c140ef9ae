"""Scripts are read as sbatch and bash read them, and anything can be read."""

import time

import pytest
from hypothesis import example, given, settings, strategies as st

from hpc_train.base.shell import depends, read_blocks, read_commands, repeats
from hpc_train.base.values import Version
from hpc_train.lint.directives import split_directive
from hpc_train.lint.lint_script import lint_script, repair_script
from hpc_train.lint.rule import LintContext
from hpc_train.lint.script import read_script
from hpc_train.sites.profile import SiteProfile

PIECES = st.sampled_from(
    [
        *"'\"`$(){}[]<>|&;#\\\n\r\t =-", "#SBATCH ", "--nodes", "srun ", "bash -c ", "<<E\n", "$((",
        "export A=", "case ", "esac", "python ", "torchrun ", "2", "\udcff", "\ufeff",
        "#!/bin/bash", "#PBS -l select=2:ncpus=4", "#PBS ", "mpirun ", "mpiexec ", "-np ", "-n",
        "--", "eval ", "timeout ", "apptainer exec ", "sbatch --wrap ", "trap ",
        "accelerate launch ", "deepspeed --hostfile h ", "$RUN", "if ",
        "ROCR_VISIBLE_DEVICES=", "HIP_VISIBLE_DEVICES=", "then ", "else ", "fi", "&\n",
    ]
)  # fmt: skip


@given(st.lists(PIECES, max_size=60))
@example(["#!/bin/bash\npython train.py |"])
@example(["#!/bin/bash\n", "#PBS -l select=2:ncpus=4:mpiprocs=2\n", "mpirun ", "python t.py"])
@example(["#!/bin/bash 'python\n", "- -n\n", "#SBATCH --nodes=2\n", "#SBATCH --time=1\n"])
@settings(max_examples=300, deadline=None)
def test_any_text_can_be_checked_and_mended(pieces: list[str]) -> None:
    text = "".join(pieces)
    lines = text.count("\n") + 1
    assert all(1 <= finding.line <= lines for finding in lint_script(text))
    mended, _ = repair_script(text)
    assert repair_script(mended)[0] == mended


@pytest.mark.parametrize(
    "piece", ["$(", "`", "((", "${", "'", '"', "a=(", "<<E\n", 'bash -c "', "("]
)
def test_what_is_never_closed_is_read_in_time(piece: str) -> None:
    lint_script("#!/bin/bash\n" + piece * 5000)


@pytest.mark.parametrize(
    ("text", "words", "unclosed"),
    [
        (" --nodes=2 # two", ["--nodes=2"], ""),
        (' --job-name="a b" -N 2', ["--job-name=a b", "-N", "2"], ""),
        (" --job-name=a#b --nodes=2", ["--job-name=a"], ""),
        (" --comment=a\\ b", ["--comment=a b"], ""),
        (" --comment='a", ["--comment=a"], "'"),
    ],
)
def test_a_directive_is_split_as_sbatch_splits_it(
    text: str, words: list[str], unclosed: str
) -> None:
    assert split_directive(text) == (words, unclosed)


def test_words_know_what_their_quotes_do() -> None:
    (command,) = read_commands("""srun "$A" '$B' "\\$C" \\$D ${E:-x} "a 'b' $F"\n""").commands
    assert [word.text for word in command.words] == [
        "srun", "$A", "$B", "$C", "$D", "${E:-x}", "a 'b' $F",
    ]  # fmt: skip
    assert [name for word in command.words for name in word.expanded] == ["A", "E", "F"]
    assert [name for word in command.words for name in word.held] == ["B", "C", "D"]


def test_here_documents_and_comments_are_no_commands() -> None:
    read = read_commands("cat <<'END' | tee f\nsrun a\nit's\nEND\n# srun b\nsrun c # srun d\n")
    assert [(c.program, c.line) for c in read.commands] == [("cat", 1), ("tee", 1), ("srun", 6)]
    assert [(document.body, document.quoted) for document in read.documents] == [
        ("srun a\nit's", True)
    ]


def test_joined_lines_and_substitutions_keep_their_lines() -> None:
    read = read_commands("srun a \\\n  b &\nx=$(\n  hostname\n)\ncase $x in\n a) srun d;;\nesac\n")
    found = {c.program: (c.line, c.last_line, c.ending) for c in read.commands if c.words}
    assert found["srun"] == (7, 7, ";;")
    assert found["hostname"][0] == 4
    first = read.commands[0]
    assert (first.line, first.last_line, first.ending) == (1, 2, "&")


def test_sizes_follow_from_the_directives() -> None:
    header = "#!/bin/bash\n#SBATCH -N2 --gres=gpu:a100:4,nvme:1 -c 8\n#SBATCH --ntasks-per-node 4\n"
    asked = read_script(header + "srun x\n#SBATCH --nodes=9\n").asked
    assert (asked.nodes, asked.tasks, asked.gpus_per_node, asked.cpus_per_task) == (2, 8, 4, 8)


DIGITS = "9" * 10_000
LONG = {
    "blanks": "x" + " " * 300_000 + "y",
    "dashes": "#SBATCH " + "-" * 300_000,
    "strays": "#SBATCH " + "a " * 30_000,
    "modulo": f"export MASTER_PORT=$(({'12345+' * 50_000}1))",
    "blanks behind modulo": f"export MASTER_PORT='$((%12{' ' * 300_000}'",
    "digits of options": f"#SBATCH --nodes={DIGITS} --time={DIGITS} --mem={DIGITS}G -p gpu\nsrun x",
    "digits of flags": f"srun -n {DIGITS} torchrun --nnodes {DIGITS} --nproc-per-node {DIGITS} x",
    "digits of mpirun": f"#SBATCH --ntasks=2\nmpirun -np {'*'.join(['999999999'] * 1000)} x",
    "values in values": f"A={'x' * 10_000}\nsrun -n {'$A' * 100_000} python t.py",
    "names": "".join(f"export NCCL_SOCKET_IFNAM{i}=1\n" for i in range(5_000)),
    "background": "srun a &\n" * 10_000,
    "traps": "trap x USR1\n" * 5_000 + "srun python t.py\n" * 5_000,
    "settings": "".join(f"NCCL_A{i}=1\n" for i in range(10_000)) + "python t.py",
    "arrays": f"A=({'x ' * 5_000})\n" + "python $A\n" * 300,
    "NUL": "\0" * 100_000,
    "bytes": "\udcff" * 300_000,
}


@pytest.mark.parametrize("text", LONG.values(), ids=LONG)
def test_what_is_long_is_read_in_time(text: str, demo_site: SiteProfile) -> None:
    context = LintContext(site=demo_site, nccl=Version.parse("2.12"))
    begun = time.process_time()
    found = lint_script(f"#!/bin/bash\n{text}\n", context)
    # What takes time by the square takes minutes here.
    assert time.process_time() - begun < 10
    assert all(len(finding.message) <= 400 for finding in found)


@pytest.mark.parametrize(
    ("text", "loop", "branch"),
    [
        ("x", False, False),
        ("for n in a b; do\n x &\ndone", True, False),
        ("while read -r n\ndo\n x\ndone < f", True, False),
        ("if [ -z $A ]; then x; fi", False, True),
        ("if [ -z $A ]\nthen\n :\nelse\n x\nfi", False, True),
        ("if a; then b; elif x; then c; fi", False, True),
        ("[ -z $A ] && x", False, True),
        ("case $a in\n b) x ;;\nesac", False, True),
        ("if a; then for n in b; do x; done; fi", True, True),
        ("if a; then b; fi; x", False, False),
        ("for n in $(if a; then b; fi); do :; done\nx", False, False),
        ("until a; do b; done; x", False, False),
        ("a && b; x", False, False),
    ],
)
def test_a_command_knows_its_loops_and_branches(text: str, loop: bool, branch: bool) -> None:
    blocks = {
        command.program: around for command, around in read_blocks(read_commands(text).commands)
    }
    assert (repeats(blocks["x"]), depends(blocks["x"])) == (loop, branch)
