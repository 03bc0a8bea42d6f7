"""The whole state of a training run in one file, written beside and renamed."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import torch

from lexent.artifact import disk_errors
from lexent.errors import ArtifactError, MismatchError

if TYPE_CHECKING:
    from lexent.training.loop import TrainingRun

CHECKPOINT = "checkpoint.safetensors"


def write_checkpoint(run: TrainingRun[Any]) -> None:
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


def read_checkpoint(run: TrainingRun[Any]) -> bool:
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
    known, own = json.loads(metadata["identity"]), json.loads(json.dumps(run.identity()))
    other = [f"{name} {known.get(name)} (now {own[name]})" for name in sorted(own) if own[name] != known.get(name)]
    if other:
        raise MismatchError(
            f"{path} is of another run: {', '.join(other)}; give the same settings, or delete {path.parent}"
        )
    run.restore(tensors, json.loads(metadata["counters"]))
    return True


def model_tensors(model: torch.nn.Module, name: str) -> dict[str, torch.Tensor]:
    """The tensors of a model under a prefix; they share its memory."""
    return {f"{name}.{key}": tensor for key, tensor in model.state_dict().items()}


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
