"""Which lines say that the work is done, and which only look like it."""

from __future__ import annotations

import io

import pytest

from hpc_train.records.diagnosis.end_markers import EndingReader
from hpc_train.records.diagnosis.scan_logs import EpochReader, StepReader
from hpc_train.records.line_dispatch import dispatch
from hpc_train.records.log_blocks import Block, blocks

MLLOG = '0: :::MLLOG {"time_ms": 5, "key": "%s", "value": null, "metadata": {"status": "%s"}}'


def kinds(text: str, size: int = 1 << 20) -> list[str]:
    """Return how a log ends, read as by `observe`, in blocks of whole lines."""
    endings, steps, epochs = EndingReader(), StepReader(), EpochReader()
    log = text.encode()
    said = [
        (line.number, ending.kind)
        for line, _ in dispatch(io.BytesIO(log), [endings])
        for ending in endings.read(line)
    ]
    number = 1
    for data, end in blocks(io.BytesIO(log), size):
        for counter in (steps, epochs):
            counter.read_block(Block(data, end), number)
        number += data.count(b"\n", 0, end)
    counted = ((one.line, one.kind) for one in (*steps.endings, *epochs.endings))
    return [kind for _, kind in sorted([*said, *counted])]


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("success", MLLOG % ("run_stop", "success")),
        ("failure", MLLOG % ("run_stop", "aborted")),
        ("restart", MLLOG % ("run_start", "")),
        ("success", ':::MLPv0.6.0 ncf 1560.5 (a.py:3) run_stop: {"success": true}'),
        ("success", ':::MLPv0.5.0 resnet 1541.5 (eval.py:270) run_stop: {"success": "true"}'),
        ("failure", ':::MLPv0.5.0 resnet 1541.5 (eval.py:270) run_stop: {"success": "false"}'),
        ("work", ":::MLPv0.5.0 gnmt 1544235123.785375595 (nmt.py:701) run_final"),
        ("work", "RESULT,SINGLE_STAGE_DETECTOR,,1377,nvidia,2019-05-23 12:20:14 AM"),
        ("work", "RESULT,REINFORCEMENT,4727,nvidia,2019-06-18 01:54:43 AM"),
        (
            "success",
            "[INFO] 2020-11-16 05:37:30,257 api: [default] All workers successfully finished.",
        ),
        ("success", "INFO:x.api:Local worker group finished (SUCCEEDED). Waiting 300 seconds"),
        ("success", "State: COMPLETED (exit code 0)"),
        ("success", "Successfully completed."),
        ("part", "wandb: Waiting for W&B process to finish... (success)."),
        ("work", "[exiting program at iteration 500] datetime: 2024-01-01 10:00:00"),
        ("work", "***** train metrics *****"),
        ("work", "Training time: 812.33s"),
        ("work", "INFO: Total training time: 5:07:11.7 (0.2048 s / it)"),
        ("work", "100 epochs completed in 1.234 hours."),
        ("work", "I0131 12:00:00 estimator.py:371] Loss for final step: 0.12."),
        ("work", "Final validation metrics: {'acc': 0.8}"),
        ("work", "total average iteration time: 98.1 ms"),
        ("work", "total images/sec: 5012.33"),
        ("part", "Training finished."),
        ("part", "2024-01-01 10:00:00 INFO - Training is complete"),
        ("part", "Finished Training"),
        ("part", "Training Completed."),
        ("part", "INFO:__main__:TRAINING COMPLETE!"),
        ("part", "Completed model training."),
        ("part", "训练完成!模型已保存至 ./out"),
        ("success", "2026-01-05 16:42:47,154 sagemaker INFO     Reporting training SUCCESS"),
        ("work", "    50 epochs completed in 0.018 hours."),
        ("work", "Total Training Time: 4.15 min"),
        ("work", "I FINISHED Optimization - training time: 0:03:54"),
        ("work", "100%|##| 8/8 [00:11<00:00]      {'train_runtime': 11.2, 'epoch': 1.0}"),
        ("bench", "End of Tests."),
        ("bench", "# All processes entering MPI_Finalize"),
        ("success", "[rank0]:[titan] 2026-05-19 19:31:50,420 - root - INFO - Training completed"),
        ("success", "Training completed. Do not forget to share your model"),
        ("success", "[after training is done] datetime: 2024-01-01 10:00:00"),
        (
            "success",
            "2020-12-10 12:38:53 | INFO | fairseq_cli.train | done training in 62.1 seconds",
        ),
        ("success", '@hpct {"v":1,"event":"end","rank":0,"accuracy":0.9}'),
        (
            "success",
            "[2024-01-01 10:00:00,1] [INFO] [launch.py:348:main] Process 41 exits successfully.",
        ),
        ("work", "{'train_runtime': 91.0, 'train_samples_per_second': 1.0, 'epoch': 1.0}"),
        ("work", "`Trainer.fit` stopped: `max_epochs=3` reached."),
        ("bench", "# Avg bus bandwidth    : 38.25"),
        ("bench", "# Collective test concluded: all_reduce_perf"),
        ("failure", "# Out of bounds values : 2 FAILED"),
        ("work", "Total img/sec on 8 GPU(s): 1428.2 +-25.0"),
        ("work", "Training time 1:02:03"),
        ("work", "0: 2018-10-04 17:37:08,539 INFO All done!"),
        ("work", " iteration      500/     500 | consumed samples: 4000 |"),
        ("work", "[step=740/740,epoch=1]"),
    ],
)
def test_line_says_how_it_ended(kind: str, text: str) -> None:
    assert kinds(text) == [kind]


@pytest.mark.parametrize(
    "text",
    [
        f"+ echo '{MLLOG % ('run_stop', 'success')}'",
        " iteration       50/     500 | consumed samples: 4000 |",
        "# Out of bounds values : 0 OK",
        "[d2.engine.hooks]: Total training time: 0:00:05 (0:00:00 on hooks)",
        "INFO: Local worker group finished (FAILED). Waiting 300 seconds",
        "wandb: Waiting for W&B process to finish... (failed 1). Press Control-C to abort.",
        "RESULT,a,b",
        "resuming untraining completed",
        "RETRAINING COMPLETE",
        "Training Completed 20/48",
        '@hpct {"event":"step","step":3} @hpct {"x":1}',
        '"""Training completed""" is what it prints',
        "# Avg bus bandwidth    : ",
        MLLOG % ("eval_stop", "success"),
        " iteration 5",
    ],
)
def test_line_that_says_nothing_of_the_end(text: str) -> None:
    assert kinds(text) == []


def test_count_of_an_epoch_is_taken_back() -> None:
    lines = "iteration: 10 / 10\niteration: 1 / 10\niteration: 2 / 10\nreiteration: 4 / 4"
    for size in (20, 1 << 20):
        assert kinds(lines, size) == ["work", "restart"]


SUMMARIES = "Epoch 1/3, loss: 0.9\nEpoch 2/3, loss: 0.8\nEpoch 3/3, loss: 0.7\n"
KERAS = (
    "Epoch 1/2\n9/9 [=====] - 61s 7s/step - loss: 2.1\nEpoch 2/2\n"
    "8/9 [====>.] - ETA: 7s - loss: 2.0\r9/9 [=====] - 60s 7s/step - loss: 2.0\n"
)


@pytest.mark.parametrize(
    "text",
    [
        SUMMARIES,
        SUMMARIES.replace(", ", "] [").replace("Epoch ", "[epoch:"),
        SUMMARIES.replace("loss", "Test Acc"),
        SUMMARIES.replace("1/3", "001/003").replace("2/3", "002/003").replace("3/3", "003/003"),
        KERAS,
        KERAS.replace("[=====] -", "━━━━━"),
    ],
)
def test_the_last_epoch_with_its_results_ends_the_training(text: str) -> None:
    assert kinds(text) == ["part"]
    assert kinds(text + "\nEpoch 1/9, loss: 0.5\n") == ["part", "restart"]


@pytest.mark.parametrize(
    "text",
    [
        "Epoch 3/3, loss: 0.7",
        "Epoch 1/1, loss: 0.7",
        SUMMARIES.replace("loss", "rate"),
        SUMMARIES.replace("loss", "batch 7, loss"),
        SUMMARIES.replace("loss", "7/100 loss"),
        KERAS.replace("9/9 [=====] - 60s", "9/9 [=====] - ETA: 0s"),
        KERAS[: KERAS.rindex("9/9")],
    ],
)
def test_an_epoch_that_may_not_be_over(text: str) -> None:
    assert kinds(text) == []


def test_an_epoch_that_is_told_again_ends_nothing() -> None:
    ranks = "".join(line + "\n" + line + "\n" for line in SUMMARIES.splitlines())
    assert kinds(ranks) == []


def test_the_last_epoch_is_found_across_blocks() -> None:
    assert kinds(SUMMARIES, 24) == ["part"]


def test_the_first_step_of_a_line_counts() -> None:
    assert kinds("[step=1/9] iteration: 9 / 9\n") == []
    assert kinds("[step=1/9]\riteration: 9 / 9\n") == ["work"]


def test_the_line_of_a_last_step_is_told() -> None:
    steps = StepReader()
    text = b"iteration 1/ 2\n\n0: iteration 2/ 2 | a\r iteration 1/ 2\n[step=2/2] [step=2/2]"
    steps.read_block(Block(bytearray(text), len(text)), 7)
    assert [(one.kind, one.line, one.text) for one in steps.endings] == [
        ("work", 9, "iteration 2/ 2 | a"),
        ("restart", 9, " iteration 1/ 2"),
        ("work", 10, "[step=2/2] [step=2/2]"),
    ]
