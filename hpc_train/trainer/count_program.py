"""`python -m hpc_train.trainer.count_program train:make_model`: what a program's model needs.

The function is called on the device `meta` and with fake tensors, so that nothing is allocated. It
returns the model, or the model and one batch of inputs, or also a function of its output that is
the loss. A model alone may have the attribute `dummy_inputs` (transformers) or
`example_input_array` (Lightning). The last line of the output is JSON, with `error`, `line` and
`hint` if the model cannot be counted.
"""

import importlib
import json
import sys
import sysconfig
import traceback
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.autograd.graph import saved_tensors_hooks
from torch.overrides import TorchFunctionMode
from torch.utils.flop_counter import FlopCounterMode

_HALVES = {torch.bfloat16: "bf16", torch.float16: "fp16"}
_INPUTS = ("dummy_inputs", "example_input_array")
# A line of the program itself says more than one of a library that it calls.
_LIBRARIES = (
    str(Path(torch.__file__).parent),
    str(Path(__file__).resolve().parents[1]),
    *(sysconfig.get_paths()[name] for name in ("stdlib", "purelib")),
    "<",
)
# What the program of a user may raise, without the end of this process.
_OF_PROGRAM = (
    ArithmeticError, AssertionError, AttributeError, ImportError, LookupError, NameError, OSError,
    RuntimeError, TypeError, ValueError,
)  # fmt: skip
_WRONG = "name a function, of a module in the current folder, that returns a model"
_HINT = (
    "build the model without values: load no weights, guard what needs them with "
    "`if not x.is_meta:`; or return the model without inputs and state --condition "
    "flops_per_sample=…"
)


def counted(make: Callable[[], Any]) -> dict[str, Any]:
    """Return parameters, those of the largest blocks, and FLOP and activations of a sample.

    FLOP are of the forward and backward pass, counted on `meta` (torch.utils.flop_counter).
    `activation_bytes` are what autograd keeps for the backward pass, beside parameters and inputs;
    on fake tensors of a CPU, where attention is fused as on a GPU.
    """
    with torch.device("meta"), OnDevice("meta"):
        model, inputs, loss = _parts(make())
    found = _sizes(model)
    if inputs is None:
        return found
    with FlopCounterMode(display=False) as counter, torch.device("meta"), OnDevice("meta"):
        _step(model, _on_meta(inputs), loss)
    samples = next(_tensors(inputs)).shape[0]
    with FakeTensorMode(allow_non_fake_inputs=True), OnDevice("cpu"), _replacing():
        model, inputs, loss = _parts(make())
        kept = _Kept(model, list(_tensors(inputs)))
        with kept.hooks():
            _step(model, inputs, loss)
    found["flops_per_sample"] = counter.get_total_flops() / samples
    found["activation_bytes"] = kept.bytes / samples
    return found


class OnDevice(TorchFunctionMode):
    """Keeps all tensors on one device: `.cuda()`, `.to(device)` and `device=` change nothing."""

    def __init__(self, device: str) -> None:
        super().__init__()
        self.device = device

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Call a function of torch without the device that it is given."""
        given = dict(kwargs or {})
        if func in (torch.Tensor.cuda, torch.Tensor.cpu):
            return args[0]
        if func is torch.Tensor.to:
            words = [getattr(one, "dtype", one) for one in (*args[1:], *given.values())]
            dtype = next((one for one in words if isinstance(one, torch.dtype)), None)
            return args[0] if dtype is None else args[0].to(dtype)
        if given.get("device") is not None:
            given["device"] = self.device
        return func(*args, **given)


@contextmanager
def _replacing() -> Iterator[None]:
    """Let a module replace its parameters where it converts them: torch cannot swap fake ones."""
    known: dict[int, tuple[nn.Parameter, nn.Parameter]] = {}

    def convert(module: Any, function: Callable[[Any], Any], recurse: bool = True) -> Any:
        for child in module.children() if recurse else ():
            child._apply(function)
        with torch.no_grad():
            for key, one in module._parameters.items():
                if one is not None and id(one) not in known:  # one that is shared stays shared
                    known[id(one)] = one, nn.Parameter(function(one), one.requires_grad)
                module._parameters[key] = one if one is None else known[id(one)][1]
            for key, one in module._buffers.items():
                module._buffers[key] = one if one is None else function(one)
        return module

    before = nn.Module._apply
    nn.Module._apply = convert  # type: ignore[method-assign]
    try:
        yield
    finally:
        nn.Module._apply = before  # type: ignore[method-assign]


class _Kept:
    """The bytes of all storages that autograd keeps, each once."""

    def __init__(self, model: nn.Module, inputs: list[torch.Tensor]) -> None:
        known = [*model.parameters(), *model.buffers(), *inputs]
        self._seen = {_storage(tensor) for tensor in known}
        self._held: list[torch.Tensor] = []
        self.bytes = 0

    def hooks(self) -> AbstractContextManager[None]:
        """Count what is kept within a block."""
        return saved_tensors_hooks(self._pack, lambda tensor: tensor)

    def _pack(self, tensor: torch.Tensor) -> torch.Tensor:
        storage = _storage(tensor)
        if storage not in self._seen:
            self._seen.add(storage)
            # Else the address of a freed storage would be that of the next one.
            self._held.append(tensor)
            self.bytes += tensor.untyped_storage().nbytes()
        return tensor


def _storage(tensor: torch.Tensor) -> int:
    # Tensors without data have no address.
    return int(tensor.untyped_storage()._cdata)


def _parts(made: Any) -> tuple[nn.Module, Any, Callable[[Any], torch.Tensor] | None]:
    parts = list(made) if isinstance(made, tuple) else [made]
    if not isinstance(parts[0], nn.Module):
        raise TypeError(f"it returned {type(parts[0]).__name__}, not a model (torch.nn.Module)")
    model, inputs, loss = (*parts, None, None)[:3]
    for name in _INPUTS:
        inputs = getattr(model, name, None) if inputs is None else inputs
    return model, inputs, loss


def _on_meta(inputs: Any) -> Any:
    if isinstance(inputs, torch.Tensor):
        return inputs.to("meta")
    if isinstance(inputs, dict):
        return {key: _on_meta(value) for key, value in inputs.items()}
    return tuple(map(_on_meta, inputs)) if isinstance(inputs, tuple | list) else inputs


def _tensors(value: Any) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, dict):
        yield from _tensors(list(value.values()))
    elif isinstance(value, tuple | list):
        for one in value:
            yield from _tensors(one)


def _step(model: nn.Module, inputs: Any, loss: Callable[[Any], torch.Tensor] | None) -> None:
    torch.autograd.backward(_scalar(_called(model, inputs), loss))


def _called(model: nn.Module, inputs: Any) -> Any:
    if isinstance(inputs, dict):
        return model(**inputs)
    return model(*inputs) if isinstance(inputs, tuple) else model(inputs)


def _scalar(output: Any, loss: Callable[[Any], torch.Tensor] | None) -> torch.Tensor:
    if loss is not None:
        return loss(output)
    own = output.get("loss") if isinstance(output, dict) else getattr(output, "loss", None)
    if isinstance(own, torch.Tensor):
        return own
    found = [one for one in _tensors(output) if one.requires_grad]
    return torch.stack([one.float().sum() for one in found]).sum()


def _sizes(model: nn.Module) -> dict[str, Any]:
    """Return parameters, and those that fsdp gathers at once: a block and the rest, or two."""
    whole = sum(one.numel() for one in model.parameters())
    blocks = _blocks(model)
    sizes = [sum(one.numel() for one in block.parameters()) for block in blocks]
    largest = max(sizes, default=whole)
    gathered = largest + max(whole - sum(sizes), largest) if blocks else whole
    trained = [one for one in model.parameters() if one.requires_grad] or list(model.parameters())
    counted = sum(one.numel() for one in trained)
    types = {one.dtype for one in trained}
    found = {
        "parameters": whole,
        "trained_parameters": counted,
        "parameter_bytes": sum(one.nbytes for one in model.parameters()) / (whole or 1),
        "trained_bytes": sum(one.nbytes for one in trained) / (counted or 1),
        "blocks": len(blocks),
        "gathered_parameters": gathered,
    }
    half = _HALVES.get(types.pop()) if len(types) == 1 else None
    return found if half is None else {**found, "precision": half}


def _blocks(model: nn.Module) -> list[nn.Module]:
    """Return the children of one type, at least two of one parent, with the most parameters."""
    groups: dict[tuple[int, type], list[nn.Module]] = defaultdict(list)
    for parent in model.modules():
        for child in parent.children():
            groups[id(parent), type(child)].append(child)
    several = [group for group in groups.values() if len(group) > 1]
    return max(several, key=_weight, default=[])


def _weight(group: list[nn.Module]) -> int:
    return sum(one.numel() for module in group for one in module.parameters())


def _problem(failure: Exception) -> dict[str, str]:
    """Return what went wrong, and the last line of the program before it."""
    frames = traceback.extract_tb(failure.__traceback__)
    own = [one for one in frames if not one.filename.startswith(_LIBRARIES)]
    line = f"{own[-1].filename}:{own[-1].lineno}: {own[-1].line}" if own else ""
    text = f"{type(failure).__name__}: {next(iter(str(failure).strip().splitlines()), '')}"
    return {"error": text, "line": line, "hint": _HINT if line else _WRONG}


def main(word: str) -> int:
    """Print the counts of `module:function`."""
    module, _, function = word.partition(":")
    sys.argv = [module]
    try:
        found = counted(getattr(importlib.import_module(module), function))
    except _OF_PROGRAM as failure:
        found = _problem(failure)
    sys.stdout.write(f"\n{json.dumps(found)}\n")
    return 1 if "error" in found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
