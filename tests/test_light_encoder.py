"""The light engine against torch: states, tokens, pooled vectors, codes and fingerprints; and which engine is used."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lexent import recipes
from lexent.encoders import SentenceEncoder, engines
from lexent.encoders.encoder import encode
from lexent.encoders.engines import TwoEngineEncoder
from lexent.encoders.light import LightEncoder, _runs
from lexent.encoders.model_folder import UnknownModelError
from lexent.encoders.sentence import embedded_model
from lexent.encoders.transformer_kernels import add_and_norm, attend, gelu, linear, padded, tiled
from lexent.errors import ArtifactError, InputError, NotFoundError
from lexent.models import load_encoder, load_lexicon
from lexent.pipeline import Pipeline
from lexent.types import States
from test_encoders import small_model

TEXTS = [
    "Statins lower LDL cholesterol.",
    "A telescope",
    "The préférence for sourdough bread, baked at 230 °C, is measured in twenty-four households over two years.",
    "İstanbul, naïve façade (2020)!",
    "",
    "   \t\n",
    "漢字とカナ, हिन्दी, Ελληνικά, עברית",
    "\U0001f600 a [MASK] in [CLS] the text [SEP] and [PAD]",
    "x" * 300,
    "cholesterol " * 40,
    "bread " * 2000,
    *(f"{'very ' * n}long text" for n in range(1, 70, 7)),
]
KINDS = ["minilm", "bert", "mpnet"]


def mpnet(folder: Path, *, pooling: str = "mean") -> Any:
    """A SentenceTransformer around a small random MPNet; its tokenizer has the places of special tokens of MPNet."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Normalize, Pooling, Transformer
    from transformers import MPNetConfig, MPNetModel, MPNetTokenizer

    names = ["<s>", "<pad>", "</s>", "[UNK]"]
    letters = [chr(place) for place in range(33, 127)]
    words = ["the", "for", "statin", "bread", "cholesterol", "telescope", "very", "long", "text", "##s"]
    pieces = [*names, *letters, *(f"##{letter}" for letter in letters if letter.isalnum()), *words, "<mask>"]
    vocabulary = {piece: place for place, piece in enumerate(dict.fromkeys(pieces))}
    sizes = {"hidden_size": 48, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 80}
    torch.manual_seed(5)
    config = MPNetConfig(vocab_size=len(vocabulary), max_position_embeddings=202, layer_norm_eps=1e-5, **sizes)
    path = folder / "mpnet-base"
    model = MPNetModel(config)
    with torch.no_grad():  # as drawn, distances hardly count
        model.encoder.relative_attention_bias.weight.normal_(0, 1)
    model.save_pretrained(path)
    MPNetTokenizer(vocab=vocabulary, model_max_length=200).save_pretrained(path)
    modules = [Transformer(str(path), max_seq_length=180), Pooling(48, pooling_mode=pooling), Normalize()]
    return SentenceTransformer(modules=modules, device="cpu").eval()


def bert(folder: Path, **more: Any) -> Any:
    """The small BERT of the other tests: a general tokenizer, prompts of both sides."""
    return small_model(folder, "bert", prompts={"query": "query: ", "passage": "passage: "}, **more)


def saved(model: Any, folder: Path) -> Path:
    model.save_pretrained(str(folder))
    return folder


def in_float32(folder: Path) -> SentenceEncoder:
    """The torch engine in float32, whatever the machine prefers."""
    from sentence_transformers import SentenceTransformer

    encoder = SentenceEncoder.open(str(folder), device="cpu")
    encoder.model = SentenceTransformer(str(folder), device="cpu", local_files_only=True).float().eval()
    return encoder


@pytest.fixture(scope="module", params=KINDS)
def pair(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[LightEncoder, Any]:
    """A model by the light engine and by torch in float32."""
    folder = tmp_path_factory.mktemp(request.param)
    made = {"minilm": lambda: embedded_model(), "bert": lambda: saved(bert(folder), folder / "saved")}
    made["mpnet"] = lambda: saved(mpnet(folder), folder / "saved")
    place = made[request.param]()
    return LightEncoder.open(place, id=str(place)), in_float32(place)


@pytest.fixture(scope="module")
def light() -> LightEncoder:
    """The embedded default by the light engine."""
    return LightEncoder.open(embedded_model(), id="all-MiniLM-L6-v2")


# --- the same as torch -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("specials", [True, False])
@pytest.mark.parametrize("kind", ["query", "document"])
def test_states_and_tokens_are_those_of_torch(pair: tuple[Any, Any], kind: Any, specials: bool) -> None:
    mine, theirs = (encode(one, TEXTS, kind=kind, specials=specials) for one in pair)
    assert mine.offsets.tolist() == theirs.offsets.tolist()
    np.testing.assert_allclose(mine.numpy(), theirs.numpy(), atol=1e-4)
    for text, one, other in zip(
        TEXTS, *(each.tokenize(TEXTS, kind=kind, specials=specials) for each in pair), strict=True
    ):
        assert one.strings == other.strings, text
        assert one.spans.tolist() == other.spans.tolist(), text
        assert one.special.tolist() == other.special.tolist(), text


def test_pooled_vectors_and_fingerprints_are_those_of_torch(pair: tuple[Any, Any]) -> None:
    light, heavy = pair
    kinds: tuple[Any, ...] = ("query", "document")
    for kind in kinds:
        mine, theirs = (encode(one, TEXTS, kind=kind, level="pooled").numpy() for one in pair)
        np.testing.assert_allclose(mine, theirs, atol=1e-4)
        beside = [whole.numpy() for _, _, whole in light.batches_with_whole(TEXTS, kind=kind)]
        np.testing.assert_array_equal(np.concatenate(beside), mine)
    assert light.fingerprint == SentenceEncoder.open(light.id, device="cpu").fingerprint == heavy.fingerprint
    assert (light.dim, light.max_tokens, light.prompts) == (heavy.dim, heavy.max_tokens, heavy.prompts)


@pytest.mark.parametrize("pooling", ["cls", "max"])
def test_other_poolings(tmp_path: Path, pooling: str) -> None:
    for number, model in enumerate((mpnet(tmp_path, pooling=pooling), bert(tmp_path, pooling_mode=pooling))):
        folder = saved(model, tmp_path / f"saved-{number}")
        mine, theirs = LightEncoder.open(folder, id="x"), in_float32(folder)
        found = [encode(one, TEXTS, kind="query", level="pooled").numpy() for one in (mine, theirs)]
        np.testing.assert_allclose(*found, atol=1e-4)


def test_a_prompt_that_pooling_leaves_out(tmp_path: Path) -> None:
    folder = saved(bert(tmp_path, include_prompt=False), tmp_path / "saved")
    mine, theirs = LightEncoder.open(folder, id="x"), in_float32(folder)
    some = [text for text in TEXTS if text.strip()]
    found = [encode(one, some, kind="query", level="pooled").numpy() for one in (mine, theirs)]
    np.testing.assert_allclose(*found, atol=1e-4)


def test_a_plain_folder_and_half_precision_weights(tmp_path: Path) -> None:
    """Without modules.json sentence-transformers pools by the mean; many models are saved in float16."""
    from transformers import AutoModel

    bert(tmp_path)
    model = AutoModel.from_pretrained(tmp_path / "bert").half()
    model.save_pretrained(tmp_path / "bert")
    mine, theirs = LightEncoder.open(tmp_path / "bert", id="x"), in_float32(tmp_path / "bert")
    assert mine.fingerprint == theirs.fingerprint
    found = [encode(one, TEXTS, kind="query", level="pooled").numpy() for one in (mine, theirs)]
    np.testing.assert_allclose(*found, atol=1e-4)


def test_texts_are_put_in_lower_case_where_the_folder_says_so(tmp_path: Path) -> None:
    """As in bge: before the tokenizer, whose own normalisation may keep capitals."""
    folder = saved(bert(tmp_path), tmp_path / "saved")
    tokenizer = json.loads((folder / "tokenizer.json").read_text())
    tokenizer["normalizer"]["lowercase"] = False
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    texts = ["The BREAD", "İstanbul STATIN"]
    before = LightEncoder.open(folder, id="x").tokenize(texts, kind="query")
    changed(folder, "sentence_bert_config.json", do_lower_case=True)
    mine, theirs = LightEncoder.open(folder, id="x"), in_float32(folder)
    for one, other, old in zip(*(each.tokenize(texts, kind="query") for each in (mine, theirs)), before, strict=True):
        assert one.strings == other.strings != old.strings
        assert one.spans.tolist() == other.spans.tolist()
    found = [encode(one, texts, kind="query").numpy() for one in (mine, theirs)]
    np.testing.assert_allclose(*found, atol=1e-4)


@pytest.mark.parametrize("name", ["all-MiniLM-L6-v2", "all-MiniLM-L6-v2-ssr", "all-MiniLM-L6-v2-pooled-k32"])
def test_codes_are_those_of_torch_but_for_ties(light: LightEncoder, name: str) -> None:
    """The same states as an array and as a tensor; and the states of both engines."""
    lexicon = load_lexicon(name)
    level: Any = lexicon.info.level
    texts = [text for text in TEXTS if text.strip()]
    heavy = in_float32(embedded_model())
    mine, theirs = (encode(one, texts, kind="query", level=level) for one in (light, heavy))
    assert isinstance(mine.values, np.ndarray)
    k = recipes.get("latent-terms").k if level == "tokens" else 32
    from_array = lexicon.codes(mine, k=k)
    from_tensor = lexicon.codes(States(torch.from_numpy(mine.values), mine.offsets), k=k)
    others = lexicon.codes(theirs, k=k)
    assert from_array.ids.shape == from_tensor.ids.shape == others.ids.shape
    for codes, tolerance, alike in ((from_tensor, 1e-5, 0.999), (others, 1e-3, 0.995)):
        np.testing.assert_allclose(from_array.values, codes.values, rtol=tolerance, atol=tolerance)
        active = from_array.values > tolerance
        assert np.mean(from_array.ids[active] == codes.ids[active]) > alike


def test_few_latents_are_coded_alike_from_arrays_and_tensors() -> None:
    from small import lexicon

    rows = np.random.default_rng(2).normal(size=(50, 32)).astype(np.float32)
    rows[3] = 0
    offsets = np.array([0, 20, 50])
    sae = lexicon().sae
    one, other = (sae.encode(States(values, offsets), k=5) for values in (rows, torch.from_numpy(rows)))
    np.testing.assert_array_equal(one.ids[one.values > 0], other.ids[other.values > 0])
    np.testing.assert_allclose(one.values, other.values, rtol=1e-5, atol=1e-6)
    assert not one.values[3].any()


# --- batches -----------------------------------------------------------------------------------------------------


def test_a_text_has_the_same_states_alone_and_in_a_batch(pair: tuple[Any, Any]) -> None:
    together = encode(pair[0], TEXTS, kind="query")
    for place, text in enumerate(TEXTS):
        np.testing.assert_array_equal(together.of(place), encode(pair[0], [text], kind="query").numpy())


def test_no_texts_and_texts_beyond_one_window(light: LightEncoder, monkeypatch: pytest.MonkeyPatch) -> None:
    assert list(light.batches([], kind="query")) == []
    assert light.tokenize([], kind="query") == []
    assert encode(light, [], kind="query").values.shape == (0, 384)
    wanted = encode(light, TEXTS, kind="document").numpy()
    monkeypatch.setattr("lexent.encoders.light.TEXTS_PER_WINDOW", 4)
    monkeypatch.setattr("lexent.encoders.light.BATCH_TOKENS", 40)
    found = list(light.batches(TEXTS, kind="document"))
    assert np.concatenate([rows for rows, _ in found]).tolist() == list(range(len(TEXTS)))
    np.testing.assert_array_equal(np.concatenate([states.numpy() for _, states in found]), wanted)


def test_runs_hold_every_text_once() -> None:
    assert [rows.tolist() for rows in _runs([5, 5, 11, 1, 1], 10)] == [[0, 1], [2], [3, 4]]
    assert [rows.tolist() for rows in _runs([50], 10)] == [[0]]


# --- the kernels and their slow twins ----------------------------------------------------------------------------


@settings(max_examples=25, deadline=None)
@given(n=st.integers(1, 20), k=st.integers(1, 70), m=st.integers(1, 70), seed=st.integers(0, 9))
def test_products_norms_and_gelu_are_those_of_numpy(n: int, k: int, m: int, seed: int) -> None:
    from scipy.special import erf

    random = np.random.default_rng(seed)
    x, weights, bias = (random.normal(size=size).astype(np.float32) for size in ((padded(n), k), (m, k), m))
    out = np.empty((padded(n), m), np.float32)
    linear(x, n, tiled(weights), bias, out)
    wanted = x.astype(np.float64) @ weights.T.astype(np.float64) + bias
    np.testing.assert_allclose(out[:n], wanted[:n], atol=1e-4)
    normal = np.empty_like(out)
    add_and_norm(out, out, n, bias, bias, np.float32(1e-5), normal)
    centred = 2 * (wanted - wanted.mean(axis=1, keepdims=True))
    expected = centred / np.sqrt((centred**2).mean(axis=1, keepdims=True) + 1e-5) * bias + bias
    np.testing.assert_allclose(normal[:n], expected[:n], atol=2e-2 if m == 2 else 2e-3)
    gelu(out, n)
    np.testing.assert_allclose(out[:n], (wanted * (1 + erf(wanted / 2**0.5)) / 2)[:n], atol=1e-4)


@settings(max_examples=25, deadline=None)
@given(
    lengths=st.lists(st.integers(1, 40), min_size=1, max_size=4),
    heads=st.sampled_from([1, 2, 3]),
    d=st.sampled_from([1, 8, 32, 40]),
    biased=st.booleans(),
    seed=st.integers(0, 9),
)
def test_attention_is_that_of_numpy(lengths: list[int], heads: int, d: int, biased: bool, seed: int) -> None:
    random = np.random.default_rng(seed)
    offsets, width = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64), heads * d
    qkv = (3 * random.normal(size=(padded(offsets[-1]), 3 * width))).astype(np.float32)
    most = 40
    distances = random.normal(size=(heads, 2 * most + 1)).astype(np.float32) if biased else np.empty((0, 0), np.float32)
    out = np.empty((padded(offsets[-1]), width), np.float32)
    attend(qkv, offsets, heads, distances, out)
    for start, stop in pairwise(offsets):
        n = stop - start
        for head in range(heads):
            q, k, v = (qkv[start:stop, part * width + head * d :][:, :d].astype(np.float64) for part in range(3))
            scores = q @ k.T / d**0.5
            if biased:
                scores += distances[head][np.arange(n)[None] - np.arange(n)[:, None] + most]
            powers = np.exp(scores - scores.max(axis=1, keepdims=True))
            wanted = powers / powers.sum(axis=1, keepdims=True) @ v
            np.testing.assert_allclose(out[start:stop, head * d : (head + 1) * d], wanted, atol=5e-5)


@pytest.mark.parametrize("features", ["", "+avx2,+fma"])
def test_other_processors_compute_the_same(light: LightEncoder, features: str, tmp_path: Path) -> None:
    """Without AVX-512, and without AVX2."""
    from lexent.cpu_features import CPU_FEATURES

    if not set(filter(None, features.split(","))) <= CPU_FEATURES:
        pytest.skip("this processor has no AVX2")
    code = (
        "import sys; import numpy as np; from lexent.encoders.encoder import encode;"
        "from lexent.models import load_encoder; encoder = load_encoder(engine='light');"
        "np.save(sys.argv[1], encode(encoder, sys.argv[2:], kind='query').numpy())"
    )
    given: dict[str, str] = {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": features or "+sse2"}
    command = [sys.executable, "-c", code, str(tmp_path / "states.npy"), *TEXTS[:4]]
    subprocess.run(command, check=True, env={**os.environ, **given})
    mine = encode(light, TEXTS[:4], kind="query").numpy()
    np.testing.assert_allclose(np.load(tmp_path / "states.npy"), mine, atol=1e-4)


# --- which engine ------------------------------------------------------------------------------------------------


def test_queries_are_light_and_documents_in_bulk_by_torch(
    shared_encoder: Any, light: LightEncoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = encode(shared_encoder, TEXTS[:3], kind="document")
    np.testing.assert_array_equal(few.values, encode(light, TEXTS[:3], kind="document").numpy())
    monkeypatch.setattr(engines, "BULK_TEXTS", 3)
    assert isinstance(shared_encoder, TwoEngineEncoder)
    assert shared_encoder.fingerprint == light.fingerprint == shared_encoder.with_torch.fingerprint
    queries, documents = (encode(shared_encoder, TEXTS[:3], kind=kind) for kind in ("query", "document"))  # type: ignore[arg-type]
    assert isinstance(queries.values, np.ndarray)
    assert isinstance(documents.values, torch.Tensor)
    np.testing.assert_array_equal(queries.numpy(), encode(light, TEXTS[:3], kind="query").numpy())
    cosines = (queries.numpy() * documents.numpy()).sum(axis=1) / (queries.lengths() * documents.lengths())
    assert cosines.mean() > 0.999


def test_the_engine_can_be_named(monkeypatch: pytest.MonkeyPatch) -> None:
    assert isinstance(load_encoder(engine="light"), LightEncoder)
    assert isinstance(load_encoder(engine="torch"), SentenceEncoder)
    both = load_encoder(engine="auto")
    assert isinstance(both, TwoEngineEncoder)
    assert load_encoder(both, engine="light") is both.light
    assert load_encoder(both, engine="torch") is both.with_torch
    assert load_encoder(both) is both
    for name, kind in (("light", LightEncoder), ("torch", SentenceEncoder)):
        monkeypatch.setenv("LEXENT_ENGINE", name)
        assert isinstance(load_encoder(), kind)
        assert engines.report(load_encoder()) == engines.EngineReport(name, name, f"LEXENT_ENGINE={name}")
    assert isinstance(load_encoder(engine="light"), LightEncoder)
    monkeypatch.setenv("LEXENT_ENGINE", "steam")
    with pytest.raises(InputError, match=r"LEXENT_ENGINE.*auto, light, torch"):
        load_encoder()
    monkeypatch.delenv("LEXENT_ENGINE")
    with pytest.raises(InputError, match="CPU"):
        load_encoder(engine="light", device="cuda")


def test_without_torch_the_light_engine_takes_documents_too(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(engines, "torch_is_installed", lambda: False)
    encoder = load_encoder()
    assert isinstance(encoder, LightEncoder)
    assert engines.report(encoder) == engines.EngineReport("light", "light", "torch is not installed")
    with pytest.raises(NotFoundError, match=r"lexent\[train\]"):
        load_encoder(engine="torch")
    model = small_model(tmp_path, "roberta")
    with pytest.raises(InputError, match=r'architecture is "roberta".*lexent\[train\]'):
        load_encoder(saved(model, tmp_path / "saved"))


def test_an_unknown_architecture_falls_back_to_torch(tmp_path: Path) -> None:
    folder = saved(small_model(tmp_path, "roberta"), tmp_path / "saved")
    encoder = load_encoder(folder)
    assert isinstance(encoder, SentenceEncoder)
    assert encoder.id == str(folder)
    report = engines.report(encoder)
    assert report is not None
    assert (report.queries, report.documents) == ("torch", "torch")
    assert 'architecture is "roberta"' in report.why
    with pytest.raises(InputError, match="roberta"):
        load_encoder(folder, engine="light")


def test_doctor_says_which_engine_and_why(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from lexent.cli.doctor import checks

    def line(encoder: str | None = None) -> str:
        return next(check.detail for check in checks(encoder=encoder) if check.name == "engines")

    assert line().startswith("queries and few documents by light, documents in bulk by torch (")
    assert line("tiny") == "an encoder of its own kind"
    folder = saved(small_model(tmp_path, "roberta"), tmp_path / "saved")
    assert line(str(folder)).startswith("queries and documents by torch (the light engine does not know")
    monkeypatch.setenv("LEXENT_ENGINE", "light")
    assert line() == "queries and documents by light (LEXENT_ENGINE=light)"


def test_cached_states_are_kept_apart_by_engine(
    shared_encoder: TwoEngineEncoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    from lexent.evaluation.cache import key_for

    kinds = ("query", "document")
    monkeypatch.setattr(engines, "BULK_TEXTS", 1)
    every = (shared_encoder, shared_encoder.light, shared_encoder.with_torch)
    both, light, heavy = ([key_for(one, ["a"], what="x", kind=kind) for kind in kinds] for one in every)
    assert both == [light[0], heavy[1]]
    assert not set(light) & set(heavy)


def changed(folder: Path, name: str, **values: Any) -> None:
    path = folder / name
    path.write_text(json.dumps({**(json.loads(path.read_text()) if path.exists() else {}), **values}))


@pytest.mark.parametrize(
    ("name", "values", "reason"),
    [
        ("config.json", {"hidden_act": "relu"}, "hidden_act"),
        ("config.json", {"position_embedding_type": "relative_key"}, "position_embedding_type"),
        ("config.json", {"num_hidden_layers": 3}, "layer.2"),
        ("config.json", {"intermediate_size": 49}, "shape"),
        ("config.json", {"num_attention_heads": 5}, "heads"),
        ("sentence_bert_config.json", {"processing_kwargs": {"text": {"max_length": 9}}}, "processing_kwargs"),
        ("tokenizer_config.json", {"truncation_side": "left"}, "truncation_side"),
        ("tokenizer_config.json", {"tokenizer_class": "BertTokenizer", "do_lower_case": False}, "case"),
        ("tokenizer_config.json", {"tokenizer_class": "T5Tokenizer"}, "T5Tokenizer"),
        ("1_Pooling/config.json", {"pooling_mode": "lasttoken"}, "lasttoken"),
        ("1_Pooling/config.json", {"pooling_mode": ["mean", "cls"]}, "mean, cls"),
        ("adapter_config.json", {}, "adapter_config"),
    ],
)
def test_what_would_be_computed_otherwise_is_refused(
    tmp_path: Path, name: str, values: dict[str, Any], reason: str
) -> None:
    folder = saved(bert(tmp_path), tmp_path / "saved")
    LightEncoder.open(folder, id="x")
    changed(folder, name, **values)
    with pytest.raises(UnknownModelError, match=reason):
        LightEncoder.open(folder, id="x")


def test_missing_files_and_modules_of_other_kinds_are_refused(tmp_path: Path) -> None:
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.base.modules import Dense

    folder = saved(bert(tmp_path), tmp_path / "saved")
    for name in ("config.json", "tokenizer.json", "model.safetensors"):
        copy = tmp_path / f"without-{name}"
        shutil.copytree(folder, copy)
        (copy / name).unlink()
        with pytest.raises(UnknownModelError, match=name):
            LightEncoder.open(copy, id="x")
    dense = SentenceTransformer(modules=[*bert(tmp_path), Dense(32, 12)], device="cpu")
    with pytest.raises(UnknownModelError, match="Dense"):
        LightEncoder.open(saved(dense, tmp_path / "dense"), id="x")
    (tmp_path / "empty").mkdir()
    with pytest.raises(UnknownModelError, match=r"config\.json"):
        LightEncoder.open(tmp_path / "empty", id="x")


# --- without torch -----------------------------------------------------------------------------------------------

HEAVY = ("torch", "transformers", "sentence_transformers", "sklearn")


@pytest.mark.parametrize("recipe", ["latent-terms", "clsr", "ssr", "uhd"])
def test_a_query_is_coded_without_importing_torch(recipe: str) -> None:
    code = (
        "import sys; from lexent import recipes; from lexent.models import load_encoder, load_lexicon;"
        "from lexent.pipeline import Pipeline;"
        f"recipe = recipes.get({recipe!r}); lexicon = load_lexicon(None, recipe=recipe);"
        "pipeline = Pipeline(load_encoder(lexicon.encoder_id), lexicon, recipe);"
        "found = pipeline.query_vectors(pipeline.represent(['do statins prevent dementia?'], kind='query'));"
        "print(found.ids.tolist());"
        f"print([name for name in {HEAVY!r} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    ids, imported = done.stdout.splitlines()
    assert imported == "[]"
    chosen = recipes.get(recipe)
    lexicon = load_lexicon(None, recipe=chosen)
    pipeline = Pipeline(load_encoder(lexicon.encoder_id, engine="torch"), lexicon, chosen)
    wanted = pipeline.query_vectors(pipeline.represent(["do statins prevent dementia?"], kind="query"))
    assert len(set(json.loads(ids)) & set(wanted.ids.tolist())) > 0.8 * len(wanted.ids)


def test_texts_are_indexed_and_found_without_torch(tmp_path: Path) -> None:
    """As where torch is not installed: any import of it fails."""
    code = (
        "import sys; sys.modules.update({name: None for name in ('torch', 'transformers', 'sentence_transformers')});"
        "import os; os.environ['LEXENT_ENGINE'] = 'light'; import lexent;"
        "first = lexent.Document('a', 'Statins lower cholesterol.');"
        "documents = [first, lexent.Document('b', 'A telescope sees stars.')];"
        f"index = lexent.index(documents, out={str(tmp_path / 'notes.lexent')!r});"
        "index.add([lexent.Document('c', 'Sourdough bread needs flour.')]);"
        "hits = index.search('astronomy with telescopes', k=1);"
        "print(hits[0].id, len(hits[0].explain().contributions) > 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["b", "True"]


# --- encoders that were trained with a lexicon --------------------------------------------------------------------


def test_the_encoder_of_a_lexicon_is_that_of_torch() -> None:
    """Two copies with changes of low rank, as shipped for counting."""
    from lexent.encoders.buckets import FOLDER, BucketEncoder, BucketParts
    from lexent.lexicon import shipped

    parts = BucketParts.load(shipped()["all-MiniLM-L6-v2-uhd"] / FOLDER)
    mine = BucketEncoder.light(parts, id="x")
    theirs = BucketEncoder.of(parts, id="x", base=in_float32(embedded_model()), device="cpu")
    for member in theirs.members:
        member.model.float()
    assert (mine.fingerprint, mine.dim, mine.max_tokens) == (theirs.fingerprint, theirs.dim, theirs.max_tokens)
    for specials in (True, False):
        one, other = (encode(each, TEXTS, kind="query", specials=specials) for each in (mine, theirs))
        assert one.offsets.tolist() == other.offsets.tolist()
        # What torch holds in bfloat16 is exact to three digits.
        cosines = (one.numpy() * other.numpy()).sum(axis=1) / (one.lengths() * other.lengths())
        assert cosines.min() > 0.99
        assert cosines.mean() > 0.9995
    with pytest.raises(InputError, match="no pooled"):
        encode(mine, TEXTS[:1], kind="query", level="pooled")


@pytest.mark.parametrize("kind", ["bert", "mpnet"])
def test_changed_layers_are_those_of_torch(tmp_path: Path, kind: str) -> None:
    """Layers taken out, matrices replaced and matrices with a change of low rank, read at several layers."""
    from copy import deepcopy

    from lexent.encoders import fine_tuning

    folder = saved(bert(tmp_path) if kind == "bert" else mpnet(tmp_path), tmp_path / "saved")
    base, light = in_float32(folder), LightEncoder.open(folder, id="x")
    random = np.random.default_rng(0)
    first, second = [name for name, value in base.model.named_parameters() if "layer.0" in name and value.ndim == 2][:2]
    sizes = dict(base.model.named_parameters())
    patch = {
        first: random.normal(size=tuple(sizes[first].shape)).astype(np.float16),
        f"{second}.a": random.normal(size=(2, sizes[second].shape[1])).astype(np.float16),
        f"{second}.b": random.normal(size=(sizes[second].shape[0], 2)).astype(np.float16),
    }
    model = deepcopy(base.model)
    fine_tuning.drop(model, (1,))
    fine_tuning.apply(model, patch)
    last = light.transformer.config.layers - 1
    wanted = SentenceEncoder(model, id="x", device="cpu", layers=[0, last])
    wanted.model = deepcopy(base.model)
    fine_tuning.drop(wanted.model, (1,))
    fine_tuning.apply(wanted.model, patch)
    found = light.changed(patch, layers=[0, last], without=(1,))
    assert (found.dim, found.fingerprint) == (wanted.dim, wanted.fingerprint)
    mine, theirs = (encode(one, TEXTS, kind="query") for one in (found, wanted))
    np.testing.assert_allclose(mine.numpy(), theirs.numpy(), atol=1e-4)
    with pytest.raises(ArtifactError, match="nothing"):
        light.changed({"0.model.nothing.weight": patch[first]}, layers=[0])
