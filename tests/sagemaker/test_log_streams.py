"""From streams of CloudWatch to the logs of a run, with botocore's Stubber for its answers."""

from pathlib import Path
from typing import Any

import pytest

from hpc_train.runs.run import RunFolder
from hpc_train.sagemaker.job_reports import GROUP, STATE_FILE, fetch

boto3 = pytest.importorskip("boto3")
stub = pytest.importorskip("botocore.stub")
JOB = "hpct-a-0123"
FIRST, SECOND, AGAIN = f"{JOB}/algo-1-1", f"{JOB}/algo-2-1", f"{JOB}/algo-1-2"


class Logs:
    """A client whose answers are stated; each must be used."""

    def __init__(self) -> None:
        keys = {"aws_access_key_id": "a", "aws_secret_access_key": "b"}
        self.client = boto3.client("logs", region_name="eu-west-1", **keys)
        self.stubber = stub.Stubber(self.client)
        self.stubber.activate()

    def streams(self, *names: str) -> None:
        found = [{"logStreamName": name, "creationTime": n} for n, name in enumerate(names)]
        self.stubber.add_response("describe_log_streams", {"logStreams": found})

    def page(self, name: str, token: str | None, lines: list[str], following: str) -> None:
        expected: dict[str, Any] = {
            "logGroupName": GROUP,
            "logStreamName": name,
            "startFromHead": True,
            **({"nextToken": token} if token else {}),
        }
        events = [{"message": line, "timestamp": 1} for line in lines]
        answer = {"events": events, "nextForwardToken": following}
        self.stubber.add_response("get_log_events", answer, expected)

    def error(self, method: str, code: str) -> None:
        self.stubber.add_client_error(method, code)

    def fetch(self, run: RunFolder) -> None:
        fetch(self.client, JOB, run)
        self.stubber.assert_no_pending_responses()


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    (tmp_path / "logs").mkdir()
    return RunFolder(path=tmp_path)


def texts(run: RunFolder) -> dict[str, str]:
    return {path.name: path.read_bytes().decode() for path in run.logs.glob("*.out")}


def test_each_rank_has_its_file_and_the_rest_is_of_the_job(run: RunFolder) -> None:
    logs = Logs()
    logs.streams(FIRST, SECOND)
    logs.page(FIRST, None, ["setup", "[rank 0] a", "[rank 1] b", "[rank 0] "], "1")
    logs.page(FIRST, "1", [], "1")
    logs.page(SECOND, None, ["[rank 10] c", "[rankle] d", "[node 1] e#015f"], "1")
    logs.page(SECOND, "1", [], "1")
    logs.fetch(run)
    assert texts(run) == {
        "job.out": "setup\n[rankle] d\n",
        "rank-0.out": "a\n\n",
        "rank-1.out": "b\n",
        "rank-10.out": "c\n",
        "node-1.out": "e\rf\n",
    }


def test_an_empty_page_is_not_the_end(run: RunFolder) -> None:
    logs = Logs()
    logs.streams(FIRST)
    logs.page(FIRST, None, [], "1")
    logs.page(FIRST, "1", ["[rank 0] a"], "2")
    logs.page(FIRST, "2", [], "2")
    logs.fetch(run)
    assert texts(run) == {"rank-0.out": "a\n"}


@pytest.mark.parametrize("at", ["first", "second"])
def test_after_an_old_token_no_line_is_twice(run: RunFolder, at: str) -> None:
    logs = Logs()
    logs.streams(FIRST)
    logs.page(FIRST, None, ["[rank 0] a", "[rank 0] b"], "1")
    logs.page(FIRST, "1", [], "1")
    logs.fetch(run)
    logs.streams(FIRST)
    taken = ["[rank 0] a", "[rank 0] b"]
    if at == "second":
        logs.page(FIRST, "1", ["[rank 0] c"], "2")
        taken.append("[rank 0] c")
    logs.error("get_log_events", "InvalidParameterException")
    logs.page(FIRST, None, taken[:1], "7")
    logs.page(FIRST, "7", [*taken[1:], "[rank 0] d"], "8")
    logs.page(FIRST, "8", [], "8")
    logs.fetch(run)
    expected = "a\nb\nc\nd\n" if at == "second" else "a\nb\nd\n"
    assert texts(run) == {"rank-0.out": expected}


def test_what_a_killed_reader_appended_is_not_twice(run: RunFolder) -> None:
    logs = Logs()
    logs.streams(FIRST)
    logs.page(FIRST, None, ["[rank 0] a"], "1")
    logs.page(FIRST, "1", [], "1")
    logs.fetch(run)
    with (run.logs / "rank-0.out").open("a") as stream:
        stream.write("b\n")
    (run.logs / "rank-1.out").write_text("c\n")
    logs.streams(FIRST)
    logs.page(FIRST, "1", ["[rank 0] b", "[rank 1] c"], "2")
    logs.page(FIRST, "2", [], "2")
    logs.fetch(run)
    assert texts(run) == {"rank-0.out": "a\nb\n", "rank-1.out": "c\n"}


def test_the_streams_of_a_later_start_are_marked(run: RunFolder) -> None:
    logs = Logs()
    logs.streams(FIRST, SECOND, AGAIN)
    logs.page(FIRST, None, ["[rank 0] a"], "1")
    logs.page(FIRST, "1", [], "1")
    logs.page(SECOND, None, ["[rank 1] b"], "1")
    logs.page(SECOND, "1", [], "1")
    logs.page(AGAIN, None, ["[rank 0] c"], "1")
    logs.page(AGAIN, "1", [], "1")
    logs.fetch(run)
    assert texts(run) == {"rank-0.out": "a\n\nhpctrain: restart\nc\n", "rank-1.out": "b\n"}


def test_before_the_start_there_is_no_stream(run: RunFolder) -> None:
    logs = Logs()
    logs.error("describe_log_streams", "ResourceNotFoundException")
    logs.fetch(run)
    assert texts(run) == {}
    assert not (run.logs / STATE_FILE).exists()
