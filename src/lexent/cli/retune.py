"""lexent retune: other settings for an index, without encoding anything again."""

from __future__ import annotations

from lexent.cli import options
from lexent.cli.console import command, say_next, show, show_json


def retune(
    path: options.IndexPath,
    k1: options.K1 = None,
    b: options.B = None,
    idf: options.Idf = None,
    k2: options.K2 = None,
    formula: options.Formula = None,
    query_k: options.QueryK = None,
    function_words: options.FunctionWords = None,
    emphasis: options.Emphasis = None,
    power: options.Power = None,
    query_power: options.QueryPower = None,
    document_cap: options.DocumentCap = None,
    query_cap: options.QueryCap = None,
    prune: options.Prune = None,
    adaptive_k: options.AdaptiveK = None,
    whole: options.Whole = None,
    buckets: options.Buckets = None,
    predicted: options.Predicted = None,
    json: options.Json = False,
) -> None:
    """Change how an index weighs, without encoding its documents again.

    Scores then equal those of an index that was built with these settings.
    """
    from lexent.errors import InputError
    from lexent.search import Index

    asked = {
        "k1": k1,
        "b": b,
        "idf": idf,
        "k2": k2,
        "formula": formula,
        "query_k": query_k,
        "function_words": function_words,
        "emphasis": emphasis,
        "power": power,
        "query_power": query_power,
        "document_cap": document_cap,
        "query_cap": query_cap,
        "prune": prune,
        "adaptive_k": adaptive_k,
        "whole": whole,
        "buckets": options.weights_of(buckets),
        "predicted": predicted,
    }
    given = {name: value for name, value in asked.items() if value is not None}
    if not given:
        raise InputError(f"nothing to change; give a setting, for example: lexent retune {path} --k1 3 --b 0.4")
    with Index.open(path) as index:
        index.retune(**given)
        facts = index.info()
    if json:
        show_json(facts)
        return
    settings = ", ".join(f"{name} {value}" for name, value in given.items())
    show(f"retuned  {path}: {settings}")
    say_next(command("lexent", "search", path, "your question"))
