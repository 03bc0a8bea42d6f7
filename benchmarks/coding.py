"""How fast recipes turn texts into sparse vectors: texts a second, and processor time a text.

    python -m benchmarks.coding [TEXTS] [--recipes uhd,latent-terms] [--documents 300] [--words 90] [--rounds 3]

TEXTS as for benchmarks/indexing.py; each text is cut to its first words, and shorter ones are left out. The recipes
take turns. Processor time is that of all threads: it changes less than texts a second where other programs run beside.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from datetime import date

from benchmarks.indexing import _cpu, corpus


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("texts", nargs="?", help="a corpus that lexent index reads")
    parser.add_argument("--recipes", default="uhd,latent-terms")
    parser.add_argument("--documents", type=int, default=300)
    parser.add_argument("--words", type=int, default=90)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()

    import torch

    from lexent import recipes
    from lexent.models import load_encoder, load_lexicon
    from lexent.pipeline import Pipeline

    name, documents = corpus(given.texts, 10 * given.documents)
    words = [document.content.split() for document in documents]
    texts = [" ".join(one[: given.words]) for one in words if len(one) >= given.words][: given.documents]
    pipelines = {}
    for recipe in map(recipes.get, given.recipes.split(",")):
        lexicon = load_lexicon(None, recipe=recipe)
        pipelines[recipe.name] = Pipeline(load_encoder(lexicon.encoder_id, device="cpu"), lexicon, recipe)
    seconds: dict[str, list[tuple[float, float]]] = {recipe: [] for recipe in pipelines}
    for pipeline in pipelines.values():  # kernels are compiled before they are timed
        pipeline.represent(texts[:16], kind="document")
    for _ in range(given.rounds):
        for recipe, pipeline in pipelines.items():
            began = time.perf_counter(), time.process_time()
            pipeline.represent(texts, kind="document")
            seconds[recipe].append((time.perf_counter() - began[0], time.process_time() - began[1]))
    print(f"command   python -m benchmarks.coding {' '.join(sys.argv[1:])}")
    print(f"data      {name}: {len(texts)} texts of {given.words} words")
    print(
        f"machine   {_cpu()}, {os.cpu_count()} cores, {torch.get_num_threads()} threads; load {os.getloadavg()[0]:.1f}"
    )
    print(f"date      {date.today().isoformat()}\n")
    print(f"{'':14} {'texts/s, median':>16} {'best':>6} {'processor ms/text, median':>26} {'best':>6}")
    for recipe, times in seconds.items():
        rates = [len(texts) / wall for wall, _ in times]
        costs = [1000 * processor / len(texts) for _, processor in times]
        numbers = (
            f"{statistics.median(rates):16.1f} {max(rates):6.1f} {statistics.median(costs):26.0f} {min(costs):6.0f}"
        )
        print(f"{recipe:14} {numbers}")


if __name__ == "__main__":
    main()
