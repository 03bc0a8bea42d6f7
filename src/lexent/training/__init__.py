"""How lexicons are learned: batches, the loop, checkpoints, and a package for each kind of training."""

from lexent.extras import require_torch

require_torch("training")
