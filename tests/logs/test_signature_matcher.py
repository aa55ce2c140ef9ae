"""Tracebacks, boxes and last words, of one rank and of many in one log."""

from hpc_train.diagnosis.signatures import Sighting, catalogue, explain
from tests.logs.sighted import ids, sighted

BY_ID = catalogue().by_id
BOX = """\
torch.distributed.elastic.multiprocessing.errors.ChildFailedError:
============================================================
train.py FAILED
------------------------------------------------------------
Failures:
[1]:
  time      : 2025-01-31_12:00:09
  host      : n2
  rank      : 12 (local_rank: 4)
  exitcode  : -15 (pid: 812)
  error_file: <N/A>
  traceback : Signal 15 (SIGTERM) received by PID 812
------------------------------------------------------------
Root Cause (first observed failure):
[0]:
  time      : 2025-01-31_12:00:05
  host      : n2
  rank      : 11 (local_rank: 3)
  exitcode  : 1 (pid: 811) {signal}
  error_file: /e/3/error.json
  traceback : Traceback (most recent call last):
    File "/job/train.py", line 7, in main
      step()
      ^^^^^^
  {error}
============================================================
"""


def _groups(sighting: Sighting) -> dict[str, str]:
    return dict(sighting.groups)


def test_the_box_of_torchrun() -> None:
    seen = sighted(BOX.format(error="ValueError: heads: 3", signal=""))
    assert [one.signature for one in seen] == [
        "torchrun_child_failed",
        "torchrun_child_failed_rank",
        "torchrun_child_failed_rank",
        "python_exception",
    ]
    _, victim, root, error = seen
    assert (victim.rank, _groups(victim)["exitcode"]) == (12, "-15")
    assert _groups(victim)["signal"] == "SIGTERM"
    assert "root" not in _groups(victim)
    assert (root.rank, root.node, root.time, root.line) == (11, "n2", "2025-01-31T12:00:05", 19)
    assert _groups(root) == {
        "rank": "11",
        "local_rank": "3",
        "exitcode": "1",
        "pid": "811",
        "error_file": "/e/3/error.json",
        "root": "yes",
    }
    assert (error.rank, error.text) == (11, "ValueError: heads: 3")


def test_boxes_of_two_agents_at_once() -> None:
    first = BOX.format(error="ValueError: one", signal="").splitlines()
    second = (
        BOX.replace("n2", "n7").format(error="ValueError: two", signal="(SIGABRT)").splitlines()
    )
    lines = [
        text for one, two in zip(first, second, strict=True) for text in (f"0: {one}", f"1: {two}")
    ]
    roots = [one for one in sighted("\n".join(lines)) if "root" in _groups(one)]
    assert [(one.node, _groups(one).get("signal")) for one in roots] == [
        ("n2", None),
        ("n7", "SIGABRT"),
    ]


def test_the_box_of_old_versions() -> None:
    text = (
        "Root Cause:\n[0]:\n  time: 2021-06-01_10:00:00\n  rank: 2 (local_rank: 2)\n"
        '  exitcode: 1 (pid: 99)\n  error_file: <N/A>\n  msg: "Process failed with exitcode 1"\n'
    )
    (sighting,) = sighted(text)
    assert (sighting.rank, sighting.time) == (2, "2021-06-01T10:00:00")
    assert _groups(sighting)["root"] == "yes"


def test_the_line_after_last_error_is_the_cause() -> None:
    head = "7: ncclInvalidUsage: This usually reflects invalid usage of NCCL library.\n"
    known = "7: Duplicate GPU detected : rank 1 and rank 0 both on CUDA device 7000\n"
    assert ids(f"{head}7: Last error:\n3: of another\n{known}") == ["nccl_duplicate_gpu"]
    (sighting,) = sighted(f"{head}7: Last error:\n7: net.cc:12 what nobody knows\n7: more\n")
    assert (sighting.signature, sighting.rank) == ("nccl_last_error", 7)
    assert _groups(sighting) == {"text": "net.cc:12 what nobody knows"}


def test_times_and_nodes() -> None:
    text = (
        "2025-01-31 11:59:00,500 - root - INFO - start\n"
        "[rank3]:[E131 12:00:01.25 ProcessGroupNCCL.cpp:832] [Rank 3] To avoid data inconsistency,"
        " we are taking the entire process down.\n"
        "[2025-01-31 12:00:02] n4:811:902 [0] init.cc:9 NCCL WARN Cuda failure 'out of memory'\n"
        "slurmstepd: error: *** STEP 71.0 ON n5 CANCELLED AT 2025-01-31T12:00:03 ***\n"
        "srun: error: n6: task 3: Killed\n"
    )
    assert [(one.time, one.node) for one in sighted(text)] == [
        ("2025-01-31T12:00:01.25", None),
        ("2025-01-31T12:00:02", "n4"),
        ("2025-01-31T12:00:03", "n5"),
        (None, "n6"),
    ]


def test_the_file_names_the_rank_where_no_line_does() -> None:
    (sighting,) = sighted("RuntimeError: CUDA error: unspecified launch failure", rank=5)
    assert sighting.rank == 5


def test_the_root_of_a_box_is_kept_however_many_failed() -> None:
    head, root = BOX.format(error="ValueError: heads: 3", signal="").split("-" * 60 + "\nRoot")
    entry = head[head.index("[1]:") :]
    seen = sighted(head + entry * 300 + "Root" + root)
    entries = [one for one in seen if one.signature == "torchrun_child_failed_rank"]
    assert len(entries) == 201
    assert (entries[-1].rank, "root" in _groups(entries[-1])) == (11, True)


def test_a_traceback_that_rich_has_drawn() -> None:
    frames = "".join(
        f"│ /job/model.py:{number} in forward      │\n│ ❱ {number} │ x = f(x)    │\n"
        for number in range(50)
    )
    text = f"╭── Traceback (most recent call last) ──╮\n{frames}╰───────╯\nValueError: not even\n"
    (sighting,) = sighted(text)
    assert sighting.text == "ValueError: not even"
    assert (_groups(sighting)["file"], _groups(sighting)["line"]) == ("/job/model.py", "49")


def test_an_assertion_without_a_text_is_told_by_its_code() -> None:
    code = '  File "/job/train.py", line 3, in main\n    assert x.size == y.size\n      ^^^^\n'
    text = "Traceback (most recent call last):\n" + code + "AssertionError\n"
    (sighting,) = sighted(text)
    assert explain(BY_ID["python_exception"], sighting).title == (
        "AssertionError: assert x.size == y.size"
    )
