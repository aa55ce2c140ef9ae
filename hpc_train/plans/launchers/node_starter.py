"""One process on each node, as the batch system starts it: an agent, a check, or a program."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from hpc_train.model.plan import FirstOf, JobVar, LaunchRequest, Text, Token
from hpc_train.plans.launchers.base import texts
from hpc_train.registry import resolve

NODE_WRAPPER = JobVar(name="node_wrapper")


def each_node(request: LaunchRequest, *words: str) -> tuple[Token, ...]:
    """Return the words that start one process on each node; none if a job has only this machine.

    `words` are options of the program that starts them.
    """
    if not request.batch.starter:
        return ()
    starter = cast(Callable[..., tuple[Token, ...]], resolve(request.batch.starter))
    return starter(request, *words)


def node_rank(request: LaunchRequest) -> Token:
    """Return the number of the node, in a process that `each_node` starts."""
    names = request.batch.node_rank
    if not names:
        return Text(text="0")
    return FirstOf(names=names) if names[1:] else JobVar(name=names[0])


def agents(request: LaunchRequest, agent: tuple[Token, ...], *words: str) -> tuple[Token, ...]:
    """Return argv that starts `agent` once on each node, under the wrapper of a node.

    Without an agent the node's wrapper starts the following command.
    """
    starter = each_node(request, *words)
    shell = "sh" if request.container and request.container.step else "bash"
    return (*starter, *texts(shell, "-c"), NODE_WRAPPER, *texts("node"), *agent)
