"""The whole state of a training run in one file, written beside and renamed."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, Protocol

import torch

from lexent.artifact import disk_errors
from lexent.errors import ArtifactError, MismatchError

CHECKPOINT = "checkpoint.safetensors"


class Run(Protocol):
    """A training run that can be stopped and go on."""

    folder: Path | None

    def identity(self) -> dict[str, Any]:
        """What must be the same for a checkpoint to be continued."""
        ...

    def tensors(self) -> dict[str, torch.Tensor]:
        """Weights, optimiser and counters of latents."""
        ...

    def counters(self) -> dict[str, float]:
        """Plain numbers."""
        ...

    def restore(self, tensors: dict[str, torch.Tensor], counters: dict[str, Any]) -> None:
        """Take what `tensors` and `counters` gave."""
        ...


def write_checkpoint(run: Run) -> None:
    """All that the run is, so that it goes on exactly; no pickle."""
    from safetensors.torch import save

    assert run.folder is not None
    identity = json.dumps(run.identity(), sort_keys=True)
    metadata = {"counters": json.dumps(run.counters()), "identity": identity}
    path = run.folder / CHECKPOINT
    beside = path.with_suffix(".new")
    data = save({name: tensor.detach().cpu().contiguous() for name, tensor in run.tensors().items()}, metadata)
    with disk_errors(path):
        with beside.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)


def read_checkpoint(run: Run) -> bool:
    """Bring the run to where its folder's checkpoint is; False where there is none."""
    from safetensors import SafetensorError, safe_open

    assert run.folder is not None
    path = run.folder / CHECKPOINT
    if not path.exists():
        return False
    try:
        with safe_open(path, "pt") as file:
            metadata: dict[str, str] = file.metadata()
            tensors: dict[str, torch.Tensor] = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except SafetensorError as error:
        raise ArtifactError(f"the checkpoint {path} is damaged ({error}); begin anew: delete {path.parent}") from error
    _check_identity(run, json.loads(metadata["identity"]), path)
    run.restore(tensors, json.loads(metadata["counters"]))
    return True


def model_tensors(model: torch.nn.Module, *, name: str = "model") -> dict[str, torch.Tensor]:
    """The tensors of a model under a prefix."""
    return {f"{name}.{key}": tensor for key, tensor in model.state_dict().items()}


def restore_model(model: torch.nn.Module, tensors: dict[str, torch.Tensor], *, name: str = "model") -> None:
    """Load what `model_tensors` gave."""
    head = f"{name}."
    model.load_state_dict({key.removeprefix(head): tensors[key] for key in tensors if key.startswith(head)})


def optimizer_tensors(optimizer: torch.optim.Optimizer) -> dict[str, torch.Tensor]:
    """The tensors of an optimizer."""
    return {
        f"optimizer.{place}.{name}": torch.as_tensor(value)
        for place, state in optimizer.state_dict()["state"].items()
        for name, value in state.items()
    }


def restore_optimizer(optimizer: torch.optim.Optimizer, tensors: dict[str, torch.Tensor]) -> None:
    """Load what `optimizer_tensors` gave."""
    state: dict[int, dict[str, torch.Tensor]] = {}
    for name, tensor in tensors.items():
        if name.startswith("optimizer."):
            _, place, key = name.split(".", 2)
            state.setdefault(int(place), {})[key] = tensor
    optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})


def _check_identity(run: Run, found: dict[str, Any], path: Path) -> None:
    mine = json.loads(json.dumps(run.identity()))
    other = sorted(name for name in mine if mine[name] != found.get(name))
    if other:
        what = ", ".join(f"{name} {found.get(name)} (now {mine[name]})" for name in other)
        raise MismatchError(f"{path} is of another run: {what}; give the same settings, or delete {path.parent}")
