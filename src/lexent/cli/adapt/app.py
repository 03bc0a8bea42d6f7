"""lexent adapt: small networks over a frozen retriever, trained, measured and explained."""

from __future__ import annotations

from lexent.cli.adapt.eval import evaluate
from lexent.cli.adapt.explain import deletion, explain
from lexent.cli.adapt.train import train
from lexent.cli.option_groups import command_group

adapt = command_group(
    "Train adapters that improve a frozen retriever on your own judged queries, and see what they changed.",
    train=train,
    eval=evaluate,
    explain=explain,
    deletion=deletion,
)
