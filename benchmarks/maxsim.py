"""MaxSim over the same token states: Lexent exact and fast, PLAID, TACHIOM and brute force, side by side in one run.

    python -m benchmarks.maxsim TEXTS --peers-python PYTHON [--passages 50000] [--docs docs/maxsim.md] [--json]

The states are encoded once and kept, and so are the best by brute force over them and the indexes of the peers, with
what those took to build. `--prepare exact,plaid,tachiom` makes only that, or a part of it, where it is missing: several
may run at once, each on one thread. Lexent's index is built in every run. Each peer runs in a process of its own, on
the same core as this one, and is asked in rounds that alternate with Lexent's; each query's median counts.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.timing import Times, one_core

K = 10
PASSAGES = 50_000
CHECKED = 100
"""Queries whose exact answers are held against brute force over the codes, which scores all passages and is slow."""
LEXENT: dict[str, dict[str, int] | None] = {"exact": None} | {
    f"fast {concepts} x {candidates:,}": {"concepts": concepts, "candidates": candidates}
    for concepts in (1, 2, 4, 8)
    for candidates in (100, 500, 2000)
}
"""Where Lexent is measured: the settings of the fast mode, None for the exact one."""
POINTS: dict[str, list[tuple[str, dict[str, Any]]]] = {
    "plaid": [
        ("PLAID, fewest", {"ncells": 1, "centroid_score_threshold": 0.6, "ndocs": 64}),
        ("PLAID, its paper's top 10", {"ncells": 1, "centroid_score_threshold": 0.5, "ndocs": 256}),
        ("PLAID, its paper's top 100", {"ncells": 2, "centroid_score_threshold": 0.45, "ndocs": 1024}),
        ("PLAID, its paper's top 1000", {"ncells": 4, "centroid_score_threshold": 0.4, "ndocs": 4096}),
        ("PLAID, PyLate's defaults", {"ncells": 8, "centroid_score_threshold": 0.35, "ndocs": 8192}),
    ],
    "tachiom": [
        ("TACHIOM, 3 x 25", {"k_centroids": 3, "k_docs_to_score": 25}),
        ("TACHIOM, 5 x 50", {"k_centroids": 5, "k_docs_to_score": 50}),
        ("TACHIOM, 10 x 100", {"k_centroids": 10, "k_docs_to_score": 100}),
        ("TACHIOM, 20 x 200", {"k_centroids": 20, "k_docs_to_score": 200}),
        ("TACHIOM, its defaults", {"k_centroids": 20, "k_docs_to_score": 500}),
        ("TACHIOM, 40 x 1,000", {"k_centroids": 40, "k_docs_to_score": 1000}),
        ("TACHIOM, 80 x 2,000", {"k_centroids": 80, "k_docs_to_score": 2000}),
    ],
}
"""Where each peer is measured: a name, and its settings."""


def main() -> None:
    given = arguments()
    one_core(pinned=not given.prepare)
    from benchmarks import maxsim_data, maxsim_report

    cache = given.cache / "bench-maxsim"
    collection = maxsim_data.collection(given.texts, passages=given.passages, queries=1000)
    passages, queries = maxsim_data.encoded(collection, cache)
    if given.first:
        passages = passages.first(given.first)
    setup = Setup(given, collection, passages, queries, cache)
    if given.prepare:
        for name in given.prepare:
            setup.prepare(name)
        return
    race = Race(setup)
    more = "" if given.passages == PASSAGES else f' ARGS="--passages {given.passages}"'
    found = {
        **maxsim_report.setting(passages, setup.query_numbers, more),
        "lexent": race.lexent_report(),
        "brute": race.brute_report(),
        "peers": [race.run(peer) for peer in given.peers],
    }
    found["lexent"] |= race.points()
    print(json.dumps(found) if given.json else maxsim_report.text(found), flush=True)
    if given.docs:
        maxsim_report.write(given.docs, found)


def arguments() -> argparse.Namespace:
    home = Path(os.environ.get("LEXENT_CACHE") or Path.home() / ".cache" / "lexent")
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("texts", type=Path, help="folder of acl-abstracts.jsonl.gz and pubmed-abstracts.jsonl.gz")
    parser.add_argument("--peers-python", default="", help="the Python of the environment that has the peers")
    parser.add_argument("--passages", type=int, default=PASSAGES)
    parser.add_argument("--first", type=int, help="of the passages only the first so many, for a trial")
    parser.add_argument("--queries", type=int, default=300)
    parser.add_argument("--lexicon", help="name or folder; the shipped one of the recipe ssr where it is left out")
    parser.add_argument("--peers", type=lambda text: [part for part in text.split(",") if part], default=list(POINTS))
    parser.add_argument(
        "--prepare", type=lambda text: text.split(","), help="only make what is kept: some of exact,plaid,tachiom"
    )
    parser.add_argument("--again", action="store_true", help="build the indexes of the peers anew")
    parser.add_argument(
        "--plaid-sample",
        type=int,
        default=0,
        help="passages that PLAID clusters, for a quicker trial; 0 for as many as it takes itself: an hour on one core",
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=30, help="for each setting; a slow one gets fewer rounds")
    parser.add_argument("--cache", type=Path, default=home, help="where states and the peers' indexes are kept")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--docs", type=Path, help="the page to write")
    return parser.parse_args()


@dataclass(frozen=True, slots=True)
class Answers:
    """What a system answered: positions of passages, best first, for each query that was asked."""

    ids: list[list[int]]

    def recall(self, truth: Answers) -> float:
        """The share of the true best that were found."""
        pairs = zip(self.ids, truth.ids, strict=True)
        return sum(len(set(one[:K]) & set(best[:K])) / K for one, best in pairs) / len(self.ids)


class Peer:
    """A peer in its own process."""

    def __init__(self, python: str, name: str, *places: Path) -> None:
        script = Path(__file__).with_name("maxsim_peers.py")
        command = [python, str(script), name, *map(str, places)]
        self.log = places[-1].with_suffix(".log")
        compiled = Path(python).absolute().parents[1] / "torch_extensions"  # of this environment alone
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                bufsize=1,
                env={**os.environ, "TORCH_EXTENSIONS_DIR": str(compiled)},
            )

    def __call__(self, do: str, **given: Any) -> Any:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps({"do": do, **given}) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        answer = json.loads(line) if line else {"error": f"its process ended; see {self.log}"}
        if "error" in answer:
            raise RuntimeError(answer["error"])
        return answer

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


class Setup:
    """What is asked of whom, and what is kept between runs."""

    def __init__(self, given: argparse.Namespace, collection: Any, passages: Any, queries: Any, cache: Path) -> None:
        self.given, self.collection, self.cache = given, collection, cache
        self.passages, self.queries, n = passages, queries, len(passages)
        inside = [number for number, found in enumerate(collection.relevant) if max(found) < n]
        self.query_numbers = inside[: given.queries]
        self.name = f"{collection.fingerprint}-{n}"

    def dense(self) -> tuple[Answers, float]:
        """Exact MaxSim over the states, and the milliseconds of a query."""
        import numpy as np

        from benchmarks.maxsim_exact import best

        file = self.cache / f"exact-{self.name}-{len(self.query_numbers)}.npz"
        if not file.is_file():
            _say("exact MaxSim over the states")
            ids, milliseconds = best(self.passages, [self.queries.of(number) for number in self.query_numbers], k=100)
            np.savez(file, ids=ids, ms=milliseconds)
        kept = np.load(file)
        return Answers(kept["ids"].tolist()), float(kept["ms"])

    def peer(self, name: str) -> tuple[Peer, dict[str, Any]]:
        """A peer with its index built, or opened where it was kept."""
        places = [self.cache / f"{kind}-{self.collection.fingerprint}" for kind in ("document", "query")]
        settings = {"sample": self.given.plaid_sample} if name == "plaid" and self.given.plaid_sample else {}
        folder = self.cache / "-".join([name, self.name, *map(str, settings.values())])
        peer = Peer(self.given.peers_python or sys.executable, name, *places, folder)
        try:
            return peer, peer("build", documents=len(self.passages), again=self.given.again, **settings)
        except BaseException:
            peer.close()
            raise

    def prepare(self, name: str) -> None:
        """Makes what is kept of a peer, or the best by brute force."""
        if name == "exact":
            self.dense()
            return
        peer, built = self.peer(name)
        peer.close()
        _say(f"{name}: {built}")


class Race:
    """Lexent against one peer after the other, on the same states and queries."""

    def __init__(self, setup: Setup) -> None:
        from benchmarks.maxsim_lexent import Lexent

        self.setup, self.given, self.collection, self.query_numbers = (
            setup,
            setup.given,
            setup.collection,
            setup.query_numbers,
        )
        self.lexent = Lexent(setup.collection, setup.passages, setup.queries, setup.given.lexicon)
        self.built = self.lexent.build(setup.cache / f"lexent-{setup.name}")
        _say(f"Lexent: {self.built}")
        self.searches = {name: self.lexent.searching(settings, K) for name, settings in LEXENT.items()}
        self.times: dict[str, list[Any]] = {name: [] for name in (*self.searches, "coding")}
        self.answers = {
            name: Answers([self.lexent.ids(search(number)) for number in self.query_numbers])
            for name, search in self.searches.items()
        }
        self.dense, self.dense_ms = setup.dense()

    # --- references ------------------------------------------------------------------------------------------------

    def brute_report(self) -> dict[str, Any]:
        return {"states": {"mean": self.dense_ms, **self._quality(self.dense)}, "codes": self._over_codes()}

    def _over_codes(self) -> dict[str, Any]:
        """Every passage scored by equation 4, and whether the exact mode gives the same: passages, order and scores."""
        import numpy as np

        right, taken, truth = 0, [], []
        checked = self.query_numbers[:CHECKED]
        for number in checked:
            began = time.perf_counter()
            ids, scores = self.lexent.brute(number, K)
            taken.append((time.perf_counter() - began) * 1e3)
            answer = self.searches["exact"](number)
            right += self.lexent.ids(answer) == ids and np.array_equal(answer.scores[0][: len(ids)], scores)
            truth.append(ids)
        twins = [self.lexent.agrees(number, truth[place]) for place, number in enumerate(checked[:10])]
        if right < len(checked) or not all(twins):
            raise SystemExit(
                f"exact mode is right for {right} of {len(checked)} queries; the slow twin agrees: {twins}"
            )
        self.codes = Answers([*truth, *self.answers["exact"].ids[len(checked) :]])
        found = {"mean": float(np.mean(taken)), "same": right / len(checked), "checked": len(checked)}
        return {**found, **self._quality(self.codes)}

    def _quality(self, answers: Answers) -> dict[str, float]:
        """How well the passages of a title's own text are found by the title."""
        from lexent.evaluation import measures

        rows = range(len(self.query_numbers))
        qrels = {
            str(row): dict.fromkeys(map(str, self.collection.relevant[self.query_numbers[row]]), 1) for row in rows
        }
        runs = {str(row): {str(one): -float(rank) for rank, one in enumerate(answers.ids[row][:K])} for row in rows}
        found = measures.score(qrels, runs, measures.parse(f"nDCG@{K},R@{K}"))
        return {name: round(value, 4) for name, value in found.means.items()}

    # --- Lexent ----------------------------------------------------------------------------------------------------

    def lexent_report(self) -> dict[str, Any]:
        lexicon = self.lexent.lexicon
        return {
            **self.built,
            "lexicon": {"name": lexicon.name, "size": lexicon.token_size, "stand_in": self.lexent.stand_in},
            "k": self.lexent.recipe.k,
        }

    def points(self) -> dict[str, Any]:
        """Times of all rounds, recall and quality at each setting; to be called last."""
        from benchmarks.maxsim_lexent import is_default

        if not self.times["exact"]:
            self._lexent_round()
        times = {name: Times.of(rounds).as_dict() for name, rounds in self.times.items()}
        coding = times["coding"]["mean"]
        points = [
            {
                "label": name,
                "default": is_default(LEXENT[name]),
                **times[name],
                "with_coding": round(times[name]["mean"] + coding, 4),
                "recall": answers.recall(self.codes),
                "recall_states": answers.recall(self.dense),
                **self._quality(answers),
            }
            for name, answers in self.answers.items()
        ]
        return {"points": points, "coding": times["coding"]}

    def _lexent_round(self) -> dict[str, Any]:
        """Milliseconds a query at each setting, and of making the codes of a query from its states."""
        work = {**self.searches, "coding": self.lexent.coded}
        found = {name: _timed(run, self.query_numbers) for name, run in work.items()}
        for name, taken in found.items():
            self.times[name].append(taken)
        return found

    # --- peers -----------------------------------------------------------------------------------------------------

    def run(self, name: str) -> dict[str, Any]:
        """Builds a peer or opens it, and measures it at each of its settings."""
        found: dict[str, Any] = {"name": name, "points": []}
        peer = None
        try:
            peer, built = self.setup.peer(name)
            found |= built
            _say(f"{name}: {found}")
            for label, chosen in POINTS[name]:
                found["points"].append(self._point(peer, label, chosen))
                _say(f"{label}: {found['points'][-1]}")
        except RuntimeError as error:
            found["failed"] = str(error)
            _say(f"{name} failed: {error}")
        finally:
            if peer is not None:
                peer.close()
        return found

    def _point(self, peer: Peer, label: str, settings: dict[str, Any]) -> dict[str, Any]:
        import numpy as np

        options: dict[str, Any] = {"settings": settings, "k": K}
        pace = (
            float(np.mean(peer("run_queries", numbers=self.query_numbers[:20], **options)["ms"]))
            / 1e3
            * len(self.query_numbers)
        )
        rounds = max(1, min(self.given.rounds, round(self.given.seconds / pace)))
        taken, ours = [], []
        for _ in range(rounds):
            ours.append(self._lexent_round())
            taken.append(peer("run_queries", numbers=self.query_numbers, **options))
        times = Times.of([np.array(one["ms"]) for one in taken])
        answers = Answers(taken[0]["ids"])
        beside = {name: Times.of([one[name] for one in ours]).mean for name in ours[0]}
        ratios = {name: round(times.mean / (beside[name] + beside["coding"]), 3) for name in self.searches}
        return {
            "label": label,
            "settings": settings,
            **times.as_dict(),
            "rounds": rounds,
            "ratios": ratios,
            "search_ratios": {name: round(times.mean / beside[name], 3) for name in self.searches},
            "recall_states": answers.recall(self.dense),
            **self._quality(answers),
        }


def _timed(run: Any, numbers: list[int]) -> Any:
    """Milliseconds that each query took."""
    import numpy as np

    taken = np.empty(len(numbers))
    for place, number in enumerate(numbers):
        began = time.perf_counter()
        run(number)
        taken[place] = (time.perf_counter() - began) * 1e3
    return taken


def _say(line: str) -> None:
    print(f"[{time.strftime('%H:%M:%S')}] {line}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    main()
