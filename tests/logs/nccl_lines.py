"""Lines of NCCL -> what they add up to, as a log of them would."""

import io
from pathlib import Path

from hpc_train.logs.line import dispatch
from hpc_train.nccl.transport import Tally, TransportReader, facts, transport_of
from hpc_train.runs.conditions import Transport

LOGS = Path(__file__).parents[1] / "log_files" / "nccl"


def tally(text: str, source: str = "log") -> Tally:
    reader = TransportReader(source)
    assert not list(dispatch(io.BytesIO(text.encode()), (), whole=[reader]))
    return reader.tally


def seen(text: str) -> Transport:
    found = facts(tally(text))
    assert found is not None
    return found


def of_file(name: str) -> Transport:
    found = transport_of(LOGS / name, LOGS)
    assert found is not None
    return found


def channel(tail: str, host: str = "h1", head: str = "Channel 00/0 : 0[1b000] -> 1[1d000]") -> str:
    return f"{host}:10:11 [0] NCCL INFO {head} {tail}\n"
