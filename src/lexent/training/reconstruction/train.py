"""From texts to a lexicon on disk: train the autoencoder, name its latents, save both."""

from __future__ import annotations

import shutil
import warnings
from collections.abc import Callable, Container, Iterable, Sequence
from dataclasses import asdict, replace
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast, get_args

import numpy as np

from lexent import arguments
from lexent.artifact import check_target
from lexent.encoders import ArrayEncoder
from lexent.encoders.encoder import DEFAULT
from lexent.errors import InputError, TrainingWarning
from lexent.lexicon.lexicon import Lexicon, LexiconInfo
from lexent.models import load_encoder
from lexent.training.stream import BETWEEN_SENTENCES, StateStream, balanced, check_balance, fits_on_gpu
from lexent.types import Level

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lexent.training.reconstruction.trainer import TrainConfig, Trainer

MAX_NAMING_TEXTS = 50_000
"""Latents are named on so many of the texts at most."""
Report = Callable[[str, float, str], None]
"""Called with the stage, the share of it that is done, and a few words."""


def train(
    texts: str | Path | Iterable[str | Path],
    *,
    out: str | Path,
    encoder: Any = DEFAULT,
    level: Level = "tokens",
    config: TrainConfig | None = None,
    passes: int = 3,
    sentences: int = 4,
    balance: float = 1.0,
    domains: Sequence[str | int] | None = None,
    quotable: Container[str] | None = None,
    bits: Literal[8, 32] = 32,
    name: str | None = None,
    overwrite: bool = False,
    progress: Report | None = None,
) -> Lexicon:
    """Train a lexicon for an encoder and save it to the folder `out`.

    texts: strings, or a file or folder, a list of those, a data frame, or what `lexent.read` gives. They are held in
    memory; their states are not: they are encoded, shuffled and trained on block by block, once a pass. A run that is
    stopped goes on from its last checkpoint, in the folder `out` + ".training", when the same call is made again.
    sentences: up to this many of each text are learned from beside it, as texts of their own, so that short texts such
    as queries are known as well. balance: below 1, domains of text are drawn by this power of their size, 0 alike, and
    none makes up more than a fifth of the states. Each file that is given is a domain; domains: that of each text, for
    strings. quotable: the texts that examples of concepts may be quoted from; all where not given.
    bits=8 stores the matrices in 8 bits, a quarter of the size.
    config: how; where it is not given, what suits the level. batchtopk holds some texts back, to set its threshold on.
    """
    from lexent.lexicon.naming import named_lexicon
    from lexent.training.reconstruction.trainer import TrainConfig, Trainer

    out = arguments.path("out", out)
    arguments.whole("passes", passes, least=1)
    arguments.whole("sentences", sentences, least=0)
    check_balance(balance)
    if quotable is not None and (isinstance(quotable, str | bytes) or not isinstance(quotable, Container)):
        raise arguments.refused("quotable", quotable, "a set of texts, or None")
    arguments.flag("overwrite", overwrite)
    arguments.function("progress", progress)
    arguments.unicode("name", arguments.text_or_none("name", name) or "")
    arguments.choice("level", level, get_args(Level))
    if not isinstance(bits, int) or bits not in (8, 32):
        raise arguments.refused("bits", bits, "8, 32")
    if config is not None:
        arguments.instance("config", config, TrainConfig, allowed="a TrainConfig: TrainConfig.for_level(LEVEL)")
    check_target(out, kind="lexicon", overwrite=overwrite)
    held, of_domain = _held(texts, domains)
    if not held:
        raise InputError("there is no text to train on; give files with prose: lexent train TEXTS --out DIR")
    config = config or TrainConfig.for_level(level)
    model = load_encoder(encoder, engine="torch")
    if isinstance(model, ArrayEncoder):
        sentences = 0  # it knows whole texts only
    learned, kept_back = split(held, seed=config.seed) if config.architecture == "batchtopk" else (held, [])
    lessons, sources = with_sources(learned, sentences, seed=config.seed)
    weights = None
    if balance < 1:
        back = set(kept_back)
        learned_domains = [domain for domain, text in zip(of_domain, held, strict=True) if text not in back]
        weights = balanced(lessons, [learned_domains[source] for source in sources], power=balance)
    keep = passes > 1 and fits_on_gpu(lessons, model, level=level)
    stream = StateStream(lessons, model, level=level, passes=passes, seed=config.seed, weights=weights, keep=keep)
    held_out = with_sentences(kept_back, sentences, seed=config.seed)
    trainer = Trainer(stream, config, folder=training_folder(out), held_out=held_out)
    # A pooled state is of its whole text, so that short texts say best what its latents are about.
    named_on = naming_texts(lessons if level == "pooled" else lessons[: len(learned)], weights, seed=config.seed)
    quotes: list[str] = []
    if quotable is not None:
        quotable = {lessons[place] for place, source in enumerate(sources) if lessons[source] in quotable}
        if level == "pooled":
            named = set(named_on)
            quotes = naming_texts(sorted(text for text in quotable if text not in named), seed=config.seed)
    sae = trainer.run(bits=bits, progress=reporter(progress, "train"))
    warn_of_dead_latents(trainer, passes=passes)
    last = trainer.latest
    measured = {"fvu": round(last.fvu, 4), "states_per_second": round(last.rate)} if last else {}
    facts = {
        "texts": len(held),
        **({"held_out": len(kept_back)} if kept_back else {}),
        "sentences": len(lessons) - len(learned),
        "passes": passes,
        **({"balance": balance, "domains": len(set(of_domain))} if balance < 1 else {}),
        "states": trainer.states,
        **asdict(config),
        **measured,
    }
    info = LexiconInfo(name or out.name, model.id, model.fingerprint, level, facts)
    counter = naming_counter(progress, len(named_on) + len(quotes))
    strongest = sae if config.nested_k is None else sae.configured(k=config.nested_k)
    lexicon = named_lexicon(
        strongest, named_on, encoder=model, info=info, quotable=quotable, quotes=quotes, progress=counter
    )
    lexicon = replace(lexicon, sae=lexicon.sae.configured(k=sae.config.k))
    return saved(lexicon, out, overwrite=overwrite)


def naming_texts(texts: Sequence[str], weights: NDArray[np.float64] | None = None, *, seed: int = 0) -> list[str]:
    """The different texts, or as many as latents are named on, drawn by weights where they are given."""
    unique = {text: place for place, text in enumerate(texts) if text.strip()}
    if len(unique) <= MAX_NAMING_TEXTS:
        return list(unique)
    places = np.array(list(unique.values()))
    shares = None if weights is None else weights[places] / weights[places].sum()
    drawn = np.random.default_rng(seed).choice(len(places), MAX_NAMING_TEXTS, replace=False, p=shares)
    return [texts[place] for place in places[np.sort(drawn)]]


def reporter(progress: Report | None, stage: str, *, part: int = 0, parts: int = 1) -> Callable[[Any], None] | None:
    """Gives the progress of a run to `progress`, as a share of a stage that has so many parts."""
    if progress is None:
        return None
    return lambda now: progress(stage, (part + now.done) / parts, str(now))


def naming_counter(progress: Report | None, total: int) -> Callable[[int], None] | None:
    """Gives the share of texts on which latents are named to `progress`; to be called with more texts."""
    if progress is None:
        return None
    done = 0

    def count(more: int) -> None:
        nonlocal done
        done += more
        progress("name", done / total, f"{done:,} texts")

    return count


def training_folder(out: Path) -> Path:
    """Where the checkpoints of a lexicon in training are."""
    return out.with_name(out.name + ".training")


def saved(lexicon: Lexicon, out: Path, *, overwrite: bool) -> Lexicon:
    """The lexicon, written to its folder; its checkpoints are deleted."""
    lexicon.save(out, card=card(lexicon), overwrite=overwrite)
    shutil.rmtree(training_folder(out), ignore_errors=True)
    return lexicon


def warn_of_dead_latents(trainer: Trainer, *, passes: int) -> None:
    """Warns where there were fewer states than latents, or where most latents do not fire."""
    latents, states = trainer.config.d_sae, trainer.states // passes
    dead = int((trainer.last_fired < max(1, trainer.states - trainer.config.dead_after)).sum())
    if states >= latents and 2 * dead <= latents:
        return
    fewer = max(trainer.config.k, min(states // 10, latents // 2))
    warnings.warn(
        f"the text is too little for this lexicon: {states:,} states a pass for {latents:,} latents, and {dead:,} of "
        f"these ({100 * dead / latents:.0f} %) do not fire; give more text, or fewer latents: --latents {fewer}",
        TrainingWarning,
        stacklevel=3,
    )


def lessons_of(source: str | Path | Iterable[str | Path]) -> Iterable[tuple[int, str]]:
    """The texts of a source, each with its domain: strings are of one, of files and folders each is one."""
    from lexent.corpus import Corpus, files_of, read  # reading files needs packages that training alone does not
    from lexent.corpus import texts as texts_of
    from lexent.corpus.frames import is_frame

    if isinstance(source, Corpus) or is_frame(source):
        return ((0, text) for text in read(source).contents())
    if arguments.is_path(source):
        return texts_of(cast("str | Path", source)).by_source()
    given = arguments.items("texts", source, "strings, or files to read")
    paths = files_of(given, "texts")
    return ((0, text) for text in arguments.texts("texts", given)) if paths is None else texts_of(paths).by_source()


def _held(source: str | Path | Iterable[str | Path], domains: object) -> tuple[list[str], list[int]]:
    """The texts to learn from that are not empty, and the number of the domain of each."""
    found = list(lessons_of(source))
    if domains is not None:
        numbers: dict[object, int] = {}
        allowed = "a name or a number for each text"
        given = arguments.items("domains", domains, allowed)
        for domain in given:
            if isinstance(domain, bool) or not isinstance(domain, str | Integral):
                raise arguments.refused("domains", domain, allowed)
            numbers.setdefault(domain, len(numbers))
        if len(given) != len(found):
            raise InputError(f"there are {len(given)} domains for {len(found)} texts; give one for each text")
        found = [(numbers[domain], text) for domain, (_, text) in zip(given, found, strict=True)]
    held = [(domain, arguments.unicode("a text to train on", text)) for domain, text in found if text.strip()]
    return [text for _, text in held], [domain for domain, _ in held]


def split(texts: Sequence[str], *, seed: int = 0) -> tuple[list[str], list[str]]:
    """Texts to learn from, and texts held back: 2 % of the different ones, at least 512, but at most a fifth."""
    unique = list(dict.fromkeys(texts))
    count = min(max(len(unique) // 50, 512), len(unique) // 5)
    if not count:
        raise InputError(f"there are {len(unique)} different texts; allowed: 5 or more, since some are held back")
    back = {unique[place] for place in np.random.default_rng(seed).permutation(len(unique))[:count]}
    return [text for text in texts if text not in back], [text for text in unique if text in back]


def with_sentences(texts: Sequence[str], each: int, *, seed: int = 0) -> list[str]:
    """The texts, and after them up to `each` sentences of every text that has several, drawn at random."""
    return with_sources(texts, each, seed=seed)[0]


def with_sources(texts: Sequence[str], each: int, *, seed: int = 0) -> tuple[list[str], list[int]]:
    """As `with_sentences`, and for each text or sentence the position of the text that it is of."""
    draw = np.random.default_rng(seed)
    found, sources = list(texts), list(range(len(texts)))
    for number, text in enumerate(texts):
        parts = [part for part in BETWEEN_SENTENCES.split(text) if len(part) > 20]  # shorter: initials, numbers
        if len(parts) > 1:
            chosen = sorted(draw.permutation(len(parts))[:each])
            found += [parts[place] for place in chosen]
            sources += [number] * len(chosen)
    return found, sources


def card(lexicon: Lexicon) -> str:
    """A page that says what the lexicon is, how it was made and what was measured."""
    config, info = lexicon.sae.config, lexicon.info
    kinds = [concept.category for concept in lexicon.concepts]
    shares = ", ".join(f"{kinds.count(kind) / len(kinds):.0%} {kind}" for kind in ("lexical", "narrow", "broad"))
    both = ""
    if lexicon.whole is not None:
        count, k = lexicon.whole.config.d_sae, lexicon.whole.config.k
        both = f" {count:,} of the concepts are of whole texts, from a second autoencoder with k = {k}."
    if info.match == "maxsim":
        both += " Trained on pairs of queries and documents, to be compared token by token (MaxSim): recipe `ssr`."
    reads = f"`{info.encoder_id}`"
    if lexicon.own_encoder is not None:
        n = lexicon.buckets
        reads = f"`{lexicon.own_encoder.base}` as training changed it, in {n} bucket{'s' if n > 1 else ''}"
    settings = "\n".join(f"| {key} | {value} |" for key, value in info.training.items())
    return f"""# Lexicon {info.name}

{lexicon.size:,} named concepts over the {info.level.removesuffix("s")} states of {reads} (fingerprint
`{info.encoder_fingerprint}`), {config.d_in} wide: a {config.architecture} sparse autoencoder with k = {config.k},
{"tied" if config.tied else "untied"}, {config.bits}-bit weights. Names come from the words that a latent fires on,
without a language model: {shares}.{both}

| setting | value |
|---|---|
{settings}
"""
