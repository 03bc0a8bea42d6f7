"""Mutation check of fast paths and syncs: breaks each by hand in a copy of the package and expects a test to fail.

    python tests/mutants.py            # all: about half an hour, as kernels are compiled again for each
    python tests/mutants.py maxsim     # those whose name contains a word
    python tests/mutants.py --list

A mutant that survives is an error: what it breaks is not tested.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]


@dataclass(frozen=True, slots=True)
class Mutant:
    """One wrong change of a source file, and the tests that must notice it."""

    name: str
    file: str
    """Below src/lexent."""
    old: str
    new: str
    tests: tuple[str, ...]


KERNELS, BINARY = ("tests/test_kernels.py",), ("tests/test_binary.py",)
MAXSIM = ("tests/test_maxsim.py", "tests/test_maxsim_search.py")
PASSAGES = ("tests/test_passages.py",)
PROBES = ("tests/test_kernels.py", "tests/test_explain.py", "tests/test_index.py")
START = ("tests/test_start.py",)
POWER = ("tests/test_power_loss.py",)
MUTANTS = (
    Mutant(
        "bound pruning: threshold too high",
        "topk/bound_pruning.py",
        "required[n - n_by_code :] = threshold",
        "required[n - n_by_code :] = threshold + 9",
        KERNELS,
    ),
    Mutant(
        "bound pruning: residual lists forgotten",
        "topk/bound_pruning.py",
        "required[n_bounded - n_by_code : n - n_by_code] = threshold - residual[1:]",
        "required[n_bounded - n_by_code : n - n_by_code] = threshold",
        KERNELS,
    ),
    Mutant(
        "bound pruning: filter ignored",
        "topk/bound_pruning.py",
        "if document < chunk.n_documents and (len(live) == 0 or live[document]):",
        "if document < chunk.n_documents:",
        (*KERNELS, "tests/test_filters.py"),
    ),
    Mutant(
        "MaxScore: residual counted twice",
        "topk/maxscore.py",
        "required = max(state[THRESHOLD], 1) - suffix_sums(terms.upper_bounds[rest])[1:]",
        "required = max(state[THRESHOLD], 1) - suffix_sums(terms.upper_bounds[rest])[1:] // 2",
        KERNELS,
    ),
    Mutant(
        "upper bounds: rounded down",
        "topk/upper_bounds.py",
        "return min(value // unit + 1, SATURATED)",
        "return min(value // unit, SATURATED)",
        (*KERNELS, "tests/test_bitmaps.py"),
    ),
    Mutant(
        "upper bounds: code tables too low",
        "topk/upper_bounds.py",
        "units = np.int32(contribution(impact, weight) * scale) + 1",
        "units = np.int32(contribution(impact, weight) * scale * 0.5)",
        (*KERNELS, "tests/test_bitmaps.py"),
    ),
    Mutant(
        "accumulation: gaps decoded without their codes",
        "topk/posting_lists.py",
        "d, code = np.uint16(document), np.int64(entry) >> 8",
        "d, code = np.uint16(document), np.int64(entry) >> 9",
        KERNELS,
    ),
    Mutant(
        "probe: gaps without the skip pointers' documents",
        "topk/posting_lists.py",
        "found += at == document and code > 0",
        "found += at == document and code > 0 and entry > start",
        KERNELS,
    ),
    Mutant(
        "probe: code arrays off by one document",
        "topk/posting_lists.py",
        "code = data[first_code + candidates[place]]",
        "code = data[first_code + candidates[place] + 1]",
        KERNELS,
    ),
    Mutant(
        "random access: wrong code of a list of gaps",
        "topk/random_access.py",
        "return np.int64(lists.shorts[entry]) >> 8 if at == document else 0",
        "return np.int64(lists.shorts[entry - 1]) >> 8 if at == document else 0",
        PROBES,
    ),
    Mutant(
        "random access: last document of a list missed",
        "topk/random_access.py",
        "if at < count and np.int64(lists.shorts[start + at]) == document:",
        "if at < count - 1 and np.int64(lists.shorts[start + at]) == document:",
        PROBES,
    ),
    Mutant(
        "random access: wrong code of a bitmap",
        "topk/random_access.py",
        "return np.int64(lists.codes[place]) if place >= 0 else 0",
        "return np.int64(lists.codes[place - 1]) if place >= 0 else 0",
        PROBES,
    ),
    Mutant(
        "documents: too few passages searched",
        "search/document_ranking.py",
        "if len(firsts) < width and n == depth:",
        "if len(firsts) < 1 and n == depth:",
        PASSAGES,
    ),
    Mutant(
        "documents: the last of its passages instead of the best",
        "search/document_ranking.py",
        "np.unique(owners, return_index=True)[1])",
        "len(owners) - 1 - np.unique(owners[::-1], return_index=True)[1])",
        PASSAGES,
    ),
    Mutant(
        "heap: ties by the higher document",
        "topk/heap.py",
        "score == other_score and document > other_document",
        "score == other_score and document < other_document",
        KERNELS,
    ),
    Mutant(
        "bitmaps: ranks of probed documents wrong",
        "indexing/postings/bitmaps.py",
        "places[place] = codes + min(rank, last)",
        "places[place] = codes + min(rank + 1, last)",
        ("tests/test_bitmaps.py", *KERNELS),
    ),
    Mutant(
        "counting: one list too few",
        "topk/counting.py",
        "count_list(data, descriptor, counts)\n",
        "count_list(data, descriptors[0], counts)\n",
        BINARY,
    ),
    Mutant(
        "counting: k-th count too high",
        "topk/counting.py",
        "    while count > 0 and reached < k:",
        "    while count > 0 and reached < k - 1:",
        BINARY,
    ),
    Mutant(
        "MaxSim exact: bounds of documents too low",
        "topk/maxsim.py",
        "scaled[place] = (weights[place] + divisor - 1) // divisor",
        "scaled[place] = weights[place] // divisor // 2",
        MAXSIM,
    ),
    Mutant(
        "MaxSim exact: few documents score nonsense",
        "topk/maxsim.py",
        "scores[place] = best.astype(np.int64).sum()",
        "scores[place] = best.astype(np.int64).sum() + documents[place] % 2",
        MAXSIM,
    ),
    Mutant(
        "MaxSim exact: a token's similarity overwritten",
        "topk/maxsim.py",
        "total = similarities[place] + values[entry_of_query] * value",
        "total = values[entry_of_query] * value",
        MAXSIM,
    ),
    Mutant(
        "MaxSim: filter ignored",
        "topk/maxsim.py",
        "workspace.bounds[document] *= np.int32(live[first + document])",
        "workspace.bounds[document] *= np.int32(1)",
        MAXSIM,
    ),
    Mutant(
        "NumPy: contributions rounded",
        "topk/numpy_scores.py",
        "contributions = np.trunc(impacts * weight)",
        "contributions = np.rint(impacts * weight)",
        START,
    ),
    Mutant(
        "NumPy: skip pointers in other places",
        "indexing/postings/numpy_packing.py",
        "marked = within % SKIP_INTERVAL == 0",
        "marked = within % SKIP_INTERVAL == 1",
        START,
    ),
    Mutant(
        "NumPy: one entry too many",
        "weighting/numpy_pooling.py",
        "return np.sort(order[ranks < cap])",
        "return np.sort(order[ranks <= cap])",
        START,
    ),
    Mutant(
        "NumPy: the wrong block of latents",
        "sae/array_coding.py",
        "least = np.partition(tops, blocks - k, axis=1)[:, blocks - k]",
        "least = np.partition(tops, blocks - k, axis=1)[:, blocks - k] * 1.2",
        START,
    ),
    Mutant(
        "coding: margin of the quantised first pass too small",
        "sae/first_pass.py",
        "return best[k - 1] - margin",
        "return best[k - 1]",
        ("tests/test_first_pass.py",),
    ),
    Mutant(
        "pooling: a token counted twice",
        "weighting/kernels.py",
        "dense[latent] += value",
        "dense[latent] += 2 * value",
        ("tests/test_weighting.py",),
    ),
    Mutant(
        "adapters: closed form without the offset",
        "adapters/kernels.py",
        "y = scale[j] * row[j] + bias[j]",
        "y = scale[j] * row[j]",
        ("tests/test_adapters.py",),
    ),
    Mutant(
        "token store: highest code of a latent wrong",
        "indexing/forward/token_kernels.py",
        "high = store.values[entry : entry + count].max()",
        "high = store.values[entry : entry + count].min()",
        MAXSIM,
    ),
    Mutant(
        "power: manifest renamed before it is synced",
        "artifact.py",
        "fsync(file.fileno(), path)\n        os.replace(beside, path)",
        "pass\n        os.replace(beside, path)",
        POWER,
    ),
    Mutant(
        "power: rename of the manifest not synced",
        "artifact.py",
        "os.replace(beside, path)\n        sync_folder(path.parent)",
        "os.replace(beside, path)",
        POWER,
    ),
    Mutant(
        "power: folders above a new index not synced",
        "artifact.py",
        "    for folder in missing:\n        sync_folder(folder.parent)",
        "",
        POWER,
    ),
    Mutant(
        "power: old index removed before the rename is synced",
        "artifact.py",
        "sync_folder(path.parent)\n            shutil.rmtree(old",
        "shutil.rmtree(old",
        POWER,
    ),
    Mutant("power: files of a lexicon not synced", "artifact.py", "sync(work)\n", "pass\n", POWER),
    Mutant(
        "power: documents not synced",
        "indexing/writer.py",
        "artifact.sync(self.folder)",
        "artifact.sync_folder(self.folder)",
        POWER,
    ),
    Mutant(
        "power: folder of segments not synced",
        "indexing/writer.py",
        "artifact.sync_folder(self.folder.parent)",
        "pass",
        POWER,
    ),
    Mutant(
        "power: the manifest of another writer not synced",
        "indexing/writer.py",
        "artifact.sync_folder(self.path)  #",
        "pass  #",
        POWER,
    ),
    Mutant(
        "power: names of tombstones not synced",
        "indexing/writer.py",
        "artifact.sync_folder(folder)\n            documents",
        "pass\n            documents",
        POWER,
    ),
)


def failed(mutant: Mutant, folder: Path) -> bool:
    """Whether a test fails with the mutant."""
    copy = folder / "src"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(ROOT / "src", copy)
    file = copy / "lexent" / mutant.file
    # Kernels that are compiled already are kept, except those that may have the changed one compiled into them.
    for package in (copy / "lexent" / "topk", file.parent):
        for compiled in (package / "__pycache__").glob("*.nb[ic]"):
            compiled.unlink()
    text = file.read_text()
    if text.count(mutant.old) < 1:
        raise SystemExit(f"{mutant.name}: {mutant.file} has no such line any more; write the mutant anew")
    file.write_text(text.replace(mutant.old, mutant.new, 1))
    environment = {**os.environ, "PYTHONPATH": str(copy), "HF_HUB_OFFLINE": "1"}
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *mutant.tests]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True).returncode == 1


def main() -> int:
    given = sys.argv[1:]
    chosen = [mutant for mutant in MUTANTS if not given or any(word in mutant.name for word in given)]
    if given == ["--list"]:
        print(*(f"{mutant.name}  ({mutant.file})" for mutant in MUTANTS), sep="\n")
        return 0
    survived = 0
    with tempfile.TemporaryDirectory() as folder:
        for mutant in chosen:
            start = time.monotonic()
            caught = failed(mutant, Path(folder))
            survived += not caught
            seconds = time.monotonic() - start
            print(f"{'caught' if caught else 'SURVIVED':8}  {mutant.name}  ({seconds:.0f} s)", flush=True)
    print(f"{len(chosen) - survived} caught, {survived} survived")
    return 1 if survived else 0


if __name__ == "__main__":
    raise SystemExit(main())
