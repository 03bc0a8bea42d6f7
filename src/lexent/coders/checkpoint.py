"""The whole state of a training run in one file, written beside and renamed."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from lexent.artifact import disk_errors
from lexent.errors import ArtifactError, MismatchError

if TYPE_CHECKING:
    from lexent.coders.training import Trainer

CHECKPOINT = "checkpoint.safetensors"


def write_checkpoint(trainer: Trainer) -> None:
    """Weights, optimiser, counters and the states not yet trained on; no pickle."""
    from safetensors.torch import save

    assert trainer.folder is not None
    tensors = {f"model.{name}": tensor for name, tensor in trainer.model.state_dict().items()}
    for place, state in trainer.optimizer.state_dict()["state"].items():
        tensors |= {f"optimizer.{place}.{name}": torch.as_tensor(value) for name, value in state.items()}
    tensors |= {"last_fired": trainer.last_fired, "dead": trainer.dead, "rest": trainer.rest}
    counters = {name: getattr(trainer, name) for name in ("next_block", "step", "states", "scale", "mean_length")}
    metadata = {"counters": json.dumps(counters), "identity": json.dumps(trainer.identity(), sort_keys=True)}
    path = trainer.folder / CHECKPOINT
    beside = path.with_suffix(".new")
    data = save({name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}, metadata)
    with disk_errors(path):
        with beside.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)


def read_checkpoint(trainer: Trainer) -> bool:
    """Bring the trainer to where its folder's checkpoint is; False where there is none."""
    from safetensors import SafetensorError, safe_open

    assert trainer.folder is not None
    path = trainer.folder / CHECKPOINT
    if not path.exists():
        return False
    try:
        with safe_open(path, "pt") as file:
            metadata: dict[str, str] = file.metadata()
            tensors: dict[str, torch.Tensor] = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except SafetensorError as error:
        raise ArtifactError(f"the checkpoint {path} is damaged ({error}); begin anew: delete {path.parent}") from error
    _check_identity(trainer, json.loads(metadata["identity"]), path)
    _restore(trainer, tensors, json.loads(metadata["counters"]))
    return True


def _check_identity(trainer: Trainer, found: dict[str, Any], path: Path) -> None:
    mine = json.loads(json.dumps(trainer.identity()))
    other = sorted(name for name in mine if mine[name] != found.get(name))
    if other:
        what = ", ".join(f"{name} {found.get(name)} (now {mine[name]})" for name in other)
        raise MismatchError(f"{path} is of another run: {what}; give the same settings, or delete {path.parent}")


def _restore(trainer: Trainer, tensors: dict[str, torch.Tensor], counters: dict[str, Any]) -> None:
    weights = {name.removeprefix("model."): tensor for name, tensor in tensors.items() if name.startswith("model.")}
    trainer.model.load_state_dict(weights)
    state: dict[int, dict[str, torch.Tensor]] = {}
    for name, tensor in tensors.items():
        if name.startswith("optimizer."):
            _, place, key = name.split(".", 2)
            state.setdefault(int(place), {})[key] = tensor
    groups = trainer.optimizer.state_dict()["param_groups"]
    trainer.optimizer.load_state_dict({"state": state, "param_groups": groups})
    for name in ("last_fired", "dead", "rest"):
        setattr(trainer, name, tensors[name].to(trainer.device))
    for name, value in counters.items():
        setattr(trainer, name, value)
