"""The queries that anything may be learned from. All that trains or tunes gets its collection here.

A test split is refused, whether it is named by an option, by an ir_datasets id or by a loaded collection. Queries that
a test split asks in the same words are left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from lexent.errors import InputError, NotFoundError
from lexent.evaluation import splits
from lexent.evaluation.collections import Collection, folded, id_of, load, tested_queries


def training_split(source: str | Path | Collection, split: str | None = None) -> Collection:
    """A split to learn from: the one that was named, the id's own, or else train. A test split is refused."""
    if isinstance(source, Collection):
        _check(source.split, source.name, "give the collection of a train or dev split")
        return source
    id = id_of(source)
    own = None if id is None else splits.named_in(id)
    wanted = split or own or "train"
    other = None if id is None else splits.beside(id, "train")
    if id is None or own is None or splits.agree(own, wanted):
        _check(wanted, str(source), f"use irds:{other}" if other else "name another: --split train")
    found = load(source, split=wanted)
    _check(found.split, str(source), "name another: --split train")
    return _apart(found, tested_queries(source))


def training_split_beside(
    source: str | Path | Collection, measured: Collection, split: str | None = None
) -> Collection | None:
    """The split to learn from of a collection that is measured; None where there is none beside the measured one."""
    found = split_beside(source, measured, split)
    if found is None or isinstance(source, Collection):
        return None
    return _apart(_apart(found, tested_queries(source)), measured.queries)


def split_beside(source: str | Path | Collection, measured: Collection, split: str | None = None) -> Collection | None:
    """The same split whole, with the queries that are tested too: what a system may have learned from."""
    wanted = split or "train"
    _check(wanted, str(measured.name), "name another, such as train")
    if isinstance(source, Collection):
        return None
    id = id_of(source)
    if id is not None:
        other = splits.beside(id, wanted)
        return None if other is None or other == measured.name else load(f"irds:{other}")
    if wanted == measured.split:
        return None
    try:
        return load(source, split=wanted)
    except NotFoundError:
        return None


def to_measure(source: str | Path) -> str:
    """Where to measure what was learned from this: the folder, or the id of the test split."""
    id = id_of(source)
    other = None if id is None or splits.role(splits.named_in(id) or "test") == "test" else splits.beside(id, "test")
    return str(source) if other is None else f"irds:{other}"


def _check(split: str, name: str, hint: str) -> None:
    role = splits.role(split)
    if role in splits.LEARNABLE:
        return
    what = f'"{split}" of {name} is a test split' if role else f'"{split}" of {name} may be a test split'
    raise InputError(
        f"{what}: what learns from it has seen its answers and cannot be measured there, so it is refused; {hint}"
        + ("" if role else "; a split to learn from has train, dev or valid in its name")
    )


def _apart(train: Collection, tested: Mapping[str, str]) -> Collection:
    """The train split without queries that are tested in the same words; where ids are shared too, it is refused."""
    known = {folded(text) for text in tested.values()}
    shared = [id for id, text in train.queries.items() if id in tested and folded(text) == folded(tested[id])]
    if shared:
        raise InputError(
            f"{len(shared):,} of the {len(train.queries):,} queries of {train.name} ({train.split}), such as "
            f'"{shared[0]}", are test queries too; what learns from them cannot be measured by them; remove them '
            "from the train split"
        )
    kept = {id for id, text in train.queries.items() if folded(text) not in known}
    if not kept:
        raise InputError(
            f"every query of {train.name} ({train.split}) is a test query too; there is none to learn from"
        )
    return train.having(kept)
