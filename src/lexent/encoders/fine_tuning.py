"""What training changed in an encoder, kept as changes alone: a fraction of the encoder's size.

A patch is a set of tensors by the names of the encoder's parameters: NAME is a parameter as it is now, NAME.a and
NAME.b are a change of low rank that is added to it (b @ a).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from lexent.errors import ArtifactError, InputError

if TYPE_CHECKING:
    import torch
    from numpy.typing import NDArray


def learner(
    model: Any,
    *,
    rank: int | None,
    seed: int,
    device: torch.device,
    last: int | None = None,
    without: tuple[int, ...] = (),
) -> Any:
    """A copy of a SentenceTransformer that can learn, without dropout: all of it, or a change of that rank.

    With rank 0 it stays as it is. last: the last layer whose states are read, of those that are left without some.
    """
    from copy import deepcopy

    import torch
    from torch.nn.functional import linear

    made = deepcopy(model).float().to(device).eval()
    drop(made, without)
    if last is not None:
        shorten(made, last)
    for parameter in made.parameters():
        parameter.requires_grad_(rank is None)
    if rank:
        generator = torch.Generator().manual_seed(seed)
        for _, module in list(_matrices(made)):
            module.add_module("change", _low_rank(module.weight, rank, generator))
            # Two thin products beside the wide one: a gradient of the whole matrix is never made.
            module.register_forward_hook(
                lambda one, given, out: out + linear(linear(given[0], one.change["a"]), one.change["b"])
            )
    return made


def middle(n: int, kept: int) -> tuple[int, ...]:
    """The layers to go without so that `kept` of n are left: those in the middle; 1 is the first."""
    first = kept // 2
    return tuple(range(first + 1, first + 1 + n - kept))


def drop(model: Any, without: tuple[int, ...]) -> None:
    """Takes layers out of a SentenceTransformer, in place; 1 is the first. Each of the others reads the one before."""
    if not without:
        return
    transformer = model[0].auto_model
    stack = _stack(transformer)
    if stack is None or not set(without) <= set(range(1, len(stack))):
        raise InputError(f"layers {list(without)} cannot be taken out of this encoder; leave --shallow out")
    for layer in sorted(without, reverse=True):
        del stack[layer - 1]
    transformer.config.num_hidden_layers = len(stack)


def _stack(transformer: Any) -> Any:
    """The list of a model's layers, None where it cannot be identified."""
    import torch

    n = int(transformer.config.num_hidden_layers)
    found = [one for one in transformer.modules() if isinstance(one, torch.nn.ModuleList) and len(one) == n]
    return found[0] if len(found) == 1 else None


def shorten(model: Any, last: int) -> None:
    """Takes the layers after the last one that is read out of a SentenceTransformer, in place.

    Not where that would change the states of that layer, as in models whose last layer is treated apart.
    """
    import torch

    transformer = model[0].auto_model
    stack = _stack(transformer)
    if stack is None or not 0 < last < len(stack):
        return
    device = next(transformer.parameters()).device
    some = torch.arange(min(8, int(transformer.config.vocab_size)), device=device)[None]

    def states() -> torch.Tensor:
        with torch.inference_mode():
            found: torch.Tensor = transformer(input_ids=some, output_hidden_states=True).hidden_states[last]
            return found

    before, after = states(), list(stack[last:])
    del stack[last:]
    if not torch.equal(states(), before):
        stack.extend(after)


def changes(made: Any) -> dict[str, torch.Tensor]:
    """The patch that turns the model a learner was copied from into the learner."""
    import torch

    found: dict[str, torch.Tensor] = {}
    for name, module in _matrices(made):
        if hasattr(module, "change"):
            found |= {f"{name}.weight.{side}": change for side, change in module.change.items()}
    if not found:
        found = {name: parameter for name, parameter in made.named_parameters() if parameter.requires_grad}
    return {name: tensor.detach().to("cpu", torch.float16).contiguous() for name, tensor in found.items()}


def trained_parameters(made: Any) -> list[torch.nn.Parameter]:
    """The parameters that learn."""
    return [parameter for parameter in made.parameters() if parameter.requires_grad]


def apply(model: Any, patch: Mapping[str, torch.Tensor | NDArray[Any]]) -> None:
    """Change a SentenceTransformer in place."""
    import torch

    known = dict(model.named_parameters())
    names = {name.removesuffix(".a").removesuffix(".b") for name in patch}
    strange = sorted(name for name in names if name not in known)
    if strange:
        raise ArtifactError(f'the changes of an encoder name "{strange[0]}", which it does not have')
    with torch.no_grad():
        for name in sorted(names):
            if name in patch:
                known[name].copy_(torch.as_tensor(patch[name]).float())
            else:
                b, a = (torch.as_tensor(patch[f"{name}.{side}"]).float() for side in "ba")
                known[name] += b @ a


def digest(patch: Mapping[str, NDArray[Any]]) -> str:
    """Changes when the patch does, and not with the machine that applies it."""
    found = hashlib.sha256()
    for name, array in sorted(patch.items()):
        found.update(f"{name}{array.shape}".encode() + np.ascontiguousarray(array).tobytes())
    return found.hexdigest()[:16]


def _matrices(model: Any) -> Iterator[tuple[str, Any]]:
    """The matrices of a model's layers. A pooler's has no part in the states of tokens."""
    import torch

    for name, module in model.named_modules():
        if isinstance(module, torch.nn.Linear) and "pooler" not in name:
            yield name, module


def _low_rank(weight: torch.Tensor, rank: int, generator: torch.Generator) -> torch.nn.ParameterDict:
    """A change of x by x (b @ a)', which begins as 0."""
    import torch

    a = torch.randn(rank, weight.shape[1], generator=generator) / weight.shape[1] ** 0.5
    b = torch.zeros(weight.shape[0], rank, device=weight.device)
    return torch.nn.ParameterDict({"a": a.to(weight.device), "b": b})
