"""Encoders against sentence-transformers itself, on the embedded default and on small random models of other kinds."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from lexent import recipes
from lexent.encoders import ArrayEncoder, Encoder, SentenceEncoder, TinyEncoder, fine_tuning, sentence
from lexent.encoders.encoder import encode
from lexent.encoders.sentence import _length_batches, embedded_model, half_precision
from lexent.encoders.threads import in_threads
from lexent.errors import InputError, NotFoundError
from lexent.models import load_encoder, load_lexicon
from lexent.pipeline import Pipeline
from lexent.search.coded_text import code_texts
from lexent.types import Tokens

TEXTS = [
    "Statins lower LDL cholesterol.",
    "A telescope",
    "The préférence for sourdough bread, baked at 230 °C, is measured in twenty-four households over two years.",
    "İstanbul, naïve façade (2020)!",
    "",
    "cholesterol " * 40,
]


def cosine(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    lengths = np.linalg.norm(one, axis=1) * np.linalg.norm(other, axis=1)
    return (one * other).sum(axis=1) / np.maximum(lengths, 1e-12)


def small_model(folder: Path, kind: str, *, prompts: dict[str, str] | None = None, **pooling: Any) -> Any:
    """A SentenceTransformer with random weights: "bert" (word pieces) or "roberta" (byte pairs)."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Pooling, Transformer
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import BertConfig, BertModel, PreTrainedTokenizerFast, RobertaConfig, RobertaModel

    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48}
    if kind == "bert":
        names = {"unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]", "pad_token": "[PAD]"}
        letters = [chr(place) for place in range(33, 127)] + ["°"]
        words = ["the", "for", "statin", "bread", "cholesterol", "telescope", "query", "passage", "##ing", "##er"]
        pieces = [*names.values(), *letters, *(f"##{letter}" for letter in letters if letter.isalnum()), *words]
        vocabulary = {piece: place for place, piece in enumerate(dict.fromkeys(pieces))}
        tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
        tokenizer.normalizer = normalizers.BertNormalizer()
        tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        ends = [(name, tokenizer.token_to_id(name)) for name in ("[SEP]", "[CLS]")]
        tokenizer.post_processor = processors.BertProcessing(*ends)
        config: Any = BertConfig(vocab_size=tokenizer.get_vocab_size(), max_position_embeddings=64, **sizes)
        network: Any = BertModel
    else:
        names = {"bos_token": "<s>", "pad_token": "<pad>", "eos_token": "</s>", "unk_token": "<unk>"}
        merges = [("Ġ", "s"), ("e", "r"), ("Ġ", "b"), ("Ġb", "r"), ("o", "l"), ("e", "s"), ("t", "er")]
        pieces = [*names.values(), *sorted(pre_tokenizers.ByteLevel.alphabet()), *(a + b for a, b in merges)]
        vocabulary = {piece: place for place, piece in enumerate(pieces)}
        tokenizer = Tokenizer(models.BPE(vocabulary, merges, unk_token="<unk>"))
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, trim_offsets=False)
        ends = [(name, tokenizer.token_to_id(name)) for name in ("</s>", "<s>")]
        tokenizer.post_processor = processors.RobertaProcessing(*ends, add_prefix_space=False, trim_offsets=False)
        config = RobertaConfig(
            vocab_size=tokenizer.get_vocab_size(), max_position_embeddings=66, pad_token_id=1, **sizes
        )
        network = RobertaModel
    torch.manual_seed(7)
    path = folder / kind
    network(config).save_pretrained(path)
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, model_max_length=48, **names).save_pretrained(path)
    first = Transformer(str(path), max_seq_length=48)
    modules = [first, Pooling(32, **pooling)]
    return SentenceTransformer(modules=modules, prompts=prompts, device="cpu").eval()


@pytest.fixture(scope="module")
def own() -> Any:
    """The embedded default as sentence-transformers loads it, in float32."""
    from sentence_transformers import SentenceTransformer

    return SentenceTransformer(str(embedded_model()), device="cpu", local_files_only=True)


@pytest.fixture(scope="module")
def exact(own: Any) -> SentenceEncoder:
    """The embedded default in float32, whatever the machine prefers."""
    from copy import deepcopy

    encoder = SentenceEncoder(deepcopy(own), id="float32", device="cpu")
    encoder.model.load_state_dict(own.state_dict())
    encoder.model.to(torch.float32)
    encoder.model.load_state_dict(own.state_dict())  # what half precision cut off comes back
    return encoder


def check_tokens(encoder: Encoder, texts: list[str], *, specials: bool) -> list[Tokens]:
    states = encode(encoder, texts, kind="document", specials=specials)
    tokens = encoder.tokenize(texts, kind="document", specials=specials)
    assert [len(found) for found in tokens] == np.diff(states.offsets).tolist()
    for text, found in zip(texts, tokens, strict=True):
        assert found.spans.shape == (len(found), 2)
        assert len(found.special) == len(found)
        assert (found.spans[:, 0] <= found.spans[:, 1]).all()
        assert found.spans.max(initial=0) <= len(text)
        assert not found.spans[found.special].any()
        if not specials:
            assert not found.special.any()
    return tokens


# --- the embedded default ----------------------------------------------------------------------------------------


def test_pooled_vectors_are_those_of_sentence_transformers(shared_encoder: Encoder, own: Any) -> None:
    mine = encode(shared_encoder, TEXTS, kind="document", level="pooled").numpy()
    theirs = own.encode(TEXTS, convert_to_numpy=True)
    assert mine.shape == (len(TEXTS), shared_encoder.dim) == (len(TEXTS), 384)
    assert cosine(mine, theirs).min() > 0.999
    np.testing.assert_allclose(np.linalg.norm(mine, axis=1), 1, atol=1e-3)


def test_pooled_vectors_in_float32_are_the_same_to_rounding(exact: SentenceEncoder, own: Any) -> None:
    mine = encode(exact, TEXTS, kind="document", level="pooled").numpy()
    np.testing.assert_allclose(mine, own.encode(TEXTS, convert_to_numpy=True), atol=2e-6)


def test_token_states_are_those_of_sentence_transformers(exact: SentenceEncoder, own: Any) -> None:
    states = encode(exact, TEXTS, kind="document")
    theirs = own.encode(TEXTS, output_value="token_embeddings")
    for text in range(len(TEXTS)):
        np.testing.assert_allclose(states.of(text), theirs[text].numpy(), atol=3e-5)


def test_no_texts_have_no_tokens_and_no_codes(shared_encoder: Encoder) -> None:
    """A server asks for none where all are in its cache."""
    recipe = recipes.get("latent-terms")
    pipeline = Pipeline(shared_encoder, load_lexicon(None, recipe=recipe), recipe)
    assert shared_encoder.tokenize([], kind="document") == []
    assert code_texts(pipeline, [], kind="document") == []


def test_bfloat16_is_used_only_where_the_processor_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """oneDNN emulates it on other processors with AVX-512, four times slower than float32."""
    cpu = torch.device("cpu")
    monkeypatch.setattr(
        "lexent.cpu_features.CPU_FEATURES", frozenset({"+avx512bw", "+avx512vl", "+avx512dq", "-avx512bf16"})
    )
    assert half_precision(cpu) is None
    monkeypatch.setattr("lexent.cpu_features.CPU_FEATURES", frozenset({"+avx512bf16"}))
    assert (half_precision(cpu) is torch.bfloat16) == torch.ops.mkldnn._is_mkldnn_bf16_supported()


def test_half_precision_token_states_are_close(shared_encoder: Encoder, exact: SentenceEncoder) -> None:
    half = encode(shared_encoder, TEXTS, kind="document").numpy()
    full = encode(exact, TEXTS, kind="document").numpy()
    assert cosine(half, full).mean() > 0.999


@pytest.mark.parametrize("specials", [True, False])
def test_tokens_line_up_with_states(shared_encoder: Encoder, specials: bool) -> None:
    tokens = check_tokens(shared_encoder, TEXTS, specials=specials)
    for text, found in zip(TEXTS, tokens, strict=True):
        words = [
            (string, span) for string, span, no in zip(found.strings, found.spans, found.special, strict=True) if not no
        ]
        for string, (start, stop) in words:
            if string.isascii() and text.isascii():
                assert text[start:stop].lower() == string.removeprefix("##")
    assert [found.strings[0] == "[CLS]" for found in tokens if len(found)] == [specials] * (6 if specials else 5)


def test_specials_off_takes_away_the_states_of_specials_only(shared_encoder: Encoder) -> None:
    every = encode(shared_encoder, TEXTS[:3], kind="document")
    words = encode(shared_encoder, TEXTS[:3], kind="document", specials=False)
    for text in range(3):
        torch.testing.assert_close(torch.from_numpy(words.of(text)), torch.from_numpy(every.of(text)[1:-1]))


def test_an_empty_text_has_only_special_tokens(shared_encoder: Encoder) -> None:
    assert shared_encoder.tokenize([""], kind="query")[0].strings == ["[CLS]", "[SEP]"]
    assert encode(shared_encoder, [""], kind="query").n_texts == 1
    assert len(encode(shared_encoder, [""], kind="query", specials=False).values) == 0
    assert list(shared_encoder.batches([], kind="query")) == []
    assert encode(shared_encoder, [], kind="query").values.shape == (0, 384)


def test_batches_give_every_text_once_and_as_if_alone(exact: SentenceEncoder) -> None:
    texts = [f"{'very ' * (number * 7 % 23)}long text number {number}" for number in range(60)]
    positions = np.concatenate([rows for rows, _ in exact.batches(texts, kind="document")])
    assert sorted(positions.tolist()) == list(range(60))
    together = encode(exact, texts, kind="document")
    for number in (0, 3, 17, 59):
        alone = encode(exact, texts[number : number + 1], kind="document").numpy()
        np.testing.assert_allclose(together.of(number), alone, atol=3e-5)


def test_batches_are_as_if_alone_in_half_precision_too(shared_encoder: Encoder) -> None:
    together = encode(shared_encoder, TEXTS, kind="document", level="pooled").numpy()
    alone = [encode(shared_encoder, [text], kind="document", level="pooled").numpy() for text in TEXTS]
    assert cosine(together, np.concatenate(alone)).min() > 0.999


def test_length_batches_are_sorted_bounded_and_complete() -> None:
    lengths = np.random.default_rng(0).integers(0, 300, 500)
    found = list(_length_batches(lengths, 1000))
    assert sorted(np.concatenate(found).tolist()) == list(range(500))
    widest = [int(lengths[rows].max()) for rows in found]
    assert widest == sorted(widest, reverse=True)
    assert all(len(rows) * wide <= 1000 for rows, wide in zip(found, widest, strict=True))
    assert [rows.tolist() for rows in _length_batches(np.array([5000]), 1000)] == [[0]]


def test_batches_in_threads_are_those_of_one_thread(exact: SentenceEncoder, monkeypatch: pytest.MonkeyPatch) -> None:
    """Many batches, one thread each; and the states of a second encoder beside them."""
    texts = [f"A text about the number {number} and more. " * (1 + number % 5) for number in range(40)]
    wanted = encode(exact, texts, kind="document")
    monkeypatch.setattr(sentence, "BATCH_TOKENS", {"cpu": 64})
    threads = torch.get_num_threads()
    seen = []
    for rows, states in exact.batches_beside([exact], texts, kind="document"):
        seen += rows.tolist()
        for place, row in enumerate(rows):
            own = states.values[states.offsets[place] : states.offsets[place + 1]]
            alone = wanted.values[wanted.offsets[row] : wanted.offsets[row + 1]]
            torch.testing.assert_close(own, torch.cat([alone, alone], dim=1), rtol=1e-4, atol=1e-5)
    assert sorted(seen) == list(range(40))
    assert torch.get_num_threads() == threads


def test_work_in_threads_keeps_its_order_and_can_be_left() -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        assert list(in_threads(lambda n: (n, torch.get_num_threads()), range(10))) == [(n, 1) for n in range(10)]
        assert list(in_threads(lambda n: (n, torch.get_num_threads()), range(2))) == [(0, 3), (1, 3)]
        left = in_threads(lambda n: n, range(100))
        assert next(left) == 0
        left.close()  # type: ignore[attr-defined]
        with pytest.raises(ZeroDivisionError):
            list(in_threads(lambda n: 1 // n, range(10)))
        with ThreadPoolExecutor(1) as later:
            assert later.submit(torch.get_num_threads).result() == 3
    finally:
        torch.set_num_threads(before)


def test_texts_beyond_one_window_keep_their_positions(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("lexent.encoders.sentence.TEXTS_PER_WINDOW", 7)
    encoder = load_encoder(small_model(tmp_path, "bert"))
    texts = [f"{'bread ' * (number % 5)}statins {number}" for number in range(17)]
    positions = np.concatenate([rows for rows, _ in encoder.batches(texts, kind="document")])
    assert sorted(positions.tolist()) == list(range(17))
    check_tokens(encoder, texts, specials=True)


def test_long_texts_are_cut(shared_encoder: Encoder) -> None:
    text = "bread " * 2000
    assert len(encode(shared_encoder, [text], kind="document").values) == 256
    check_tokens(shared_encoder, [text], specials=False)


def test_chosen_layers(own: Any) -> None:
    from copy import deepcopy

    encoder = SentenceEncoder(deepcopy(own), id="layers", device="cpu", layers=[0, 3, 6])
    assert encoder.dim == 3 * 384
    states = encode(encoder, TEXTS[:2], kind="document")
    assert states.values.shape[1] == encoder.dim
    inputs = own.tokenizer(TEXTS[:1], return_tensors="pt")
    with torch.inference_mode():
        hidden = own[0].auto_model(**inputs, output_hidden_states=True).hidden_states
    for place, layer in enumerate((0, 3, 6)):
        mine = states.of(0)[:, place * 384 : (place + 1) * 384]
        assert cosine(mine, hidden[layer][0].numpy()).min() > 0.99
    with pytest.raises(InputError, match="pooled"):
        encode(encoder, TEXTS[:1], kind="document", level="pooled")
    for wrong in ([7], [], [-1]):
        with pytest.raises(InputError, match="from 0 to 6"):
            SentenceEncoder(deepcopy(own), id="layers", device="cpu", layers=wrong)


def test_the_fingerprint_follows_weights_and_prompts_alone(shared_encoder: Encoder, own: Any) -> None:
    from copy import deepcopy

    first = SentenceEncoder(deepcopy(own), id="a name", device="cpu")
    assert first.fingerprint == shared_encoder.fingerprint  # not the id, not the object
    again = SentenceEncoder(first.model, id="the same, in half precision by now", device="cpu")
    assert again.fingerprint == first.fingerprint
    prompted = deepcopy(own)
    prompted.prompts = {"query": "query: "}
    changed = deepcopy(own)
    with torch.no_grad():
        changed[0].auto_model.embeddings.word_embeddings.weight.mul_(1.1)
    shorter = deepcopy(own)
    shorter.max_seq_length = 64
    others = [SentenceEncoder(model, id="x", device="cpu").fingerprint for model in (prompted, changed, shorter)]
    layers = SentenceEncoder(deepcopy(own), id="x", device="cpu", layers=[1]).fingerprint
    assert len({first.fingerprint, *others, layers}) == 5


def test_a_model_object_of_the_caller_stays_as_it_was(own: Any) -> None:
    before = own.encode(TEXTS[:1], convert_to_numpy=True)
    encoder = load_encoder(own)
    assert next(own.parameters()).dtype == torch.float32
    np.testing.assert_array_equal(own.encode(TEXTS[:1], convert_to_numpy=True), before)
    assert encoder.fingerprint == load_encoder().fingerprint


# --- other models ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["bert", "roberta"])
def test_other_tokenizers_line_up(tmp_path: Path, kind: str) -> None:
    model = small_model(tmp_path, kind)
    encoder = load_encoder(model)
    mine = encode(encoder, TEXTS, kind="document", level="pooled").numpy()
    assert cosine(mine, model.encode(TEXTS, convert_to_numpy=True)).min() > 0.995
    states = encode(encoder, TEXTS, kind="document").numpy()
    theirs = np.concatenate([rows.numpy() for rows in model.encode(TEXTS, output_value="token_embeddings")])
    assert states.shape == theirs.shape
    assert cosine(states, theirs).min() > 0.99
    for specials in (True, False):
        tokens = check_tokens(encoder, TEXTS, specials=specials)
        for text, found in zip(TEXTS, tokens, strict=True):
            seen = np.zeros(len(text), dtype=bool)
            for start, stop in found.spans:
                seen[start:stop] = True
                assert stop == start or not text[start].isspace() or text[start:stop].isspace()
            letters = np.array([letter.isalpha() for letter in text], dtype=bool)
            cut = int(found.spans.max(initial=0))
            assert seen[:cut][letters[:cut]].all()  # no letter of what was read is without a token


@pytest.mark.parametrize("kind", ["bert", "roberta"])
def test_tokens_are_those_of_transformers(tmp_path: Path, kind: str) -> None:
    """`transformers` reads a tokenizer its own way; here the library of tokenizers reads it, many texts at a time."""
    encoder = load_encoder(small_model(tmp_path, kind, prompts={"query": "query: "}), engine="torch")
    texts = [*TEXTS, "tabs\tand  two spaces\n\nlines", "no\u00a0break", "long words " * 300]
    for sort, prompt in (("document", ""), ("query", "query: ")):
        encoded = encoder.model.tokenizer(
            [prompt + text for text in texts],
            truncation=True,
            max_length=encoder.max_tokens,
            return_offsets_mapping=True,
        )
        for row, (text, found) in enumerate(zip(texts, encoder.tokenize(texts, kind=sort), strict=True)):
            assert found.strings == encoder.model.tokenizer.convert_ids_to_tokens(encoded["input_ids"][row])
            for (first, stop), (start, end) in zip(found.spans.tolist(), encoded["offset_mapping"][row], strict=True):
                piece = text[max(start - len(prompt), 0) : max(end - len(prompt), 0)]
                assert text[first:stop] in (piece, piece.lstrip())
        assert encoder.token_counts(texts) == [len(starts) for starts in encoder.token_starts(texts)]


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("kind", ["bert", "roberta"])
def test_batches_are_padded_as_the_tokenizer_pads_them(tmp_path: Path, kind: str, side: str) -> None:
    model = small_model(tmp_path, kind)
    model.tokenizer.padding_side = side
    encoder = SentenceEncoder(model, id="small")
    ids, special = encoder._token_ids(TEXTS)
    theirs = model.tokenizer(
        TEXTS, padding=True, truncation=True, max_length=encoder.max_tokens, return_special_tokens_mask=True,
        return_tensors="pt",
    )  # fmt: skip
    mine = encoder._padded(ids)
    assert mine.keys() == theirs.keys() - {"special_tokens_mask"}
    for name, array in mine.items():
        assert torch.equal(array.cpu(), theirs[name])
    for row, mask in enumerate(theirs["attention_mask"].bool()):
        assert special[row].tolist() == theirs["special_tokens_mask"][row][mask].bool().tolist()


@pytest.mark.parametrize("names", [("query", "document"), ("query", "passage"), ("query", "corpus")])
def test_prompts_go_before_the_texts(tmp_path: Path, names: tuple[str, str]) -> None:
    prompts = {names[0]: "query: ", names[1]: "passage: "}
    model = small_model(tmp_path, "bert", prompts=prompts)
    model.default_prompt_name = names[0]  # must not be put before what has a prompt
    encoder = load_encoder(model)
    plain = load_encoder(small_model(tmp_path, "bert"))  # the same weights: they are drawn from a seed
    text = TEXTS[0]
    for kind, prompt in (("query", "query: "), ("document", "passage: ")):
        mine = encode(encoder, [text], kind=kind, level="pooled").numpy()  # type: ignore[arg-type]
        assert cosine(mine, model.encode([text], prompt=prompt)).min() > 0.995
        with_prompt = encode(plain, [prompt + text], kind="document").numpy()
        np.testing.assert_allclose(encode(encoder, [text], kind=kind).numpy(), with_prompt, atol=1e-6)  # type: ignore[arg-type]
    tokens = check_tokens(encoder, [text], specials=True)[0]
    whole = [text[start:stop] for start, stop in tokens.spans if stop > start]
    assert "".join(whole) == text.replace(" ", "")  # the prompt's tokens have no place in the text
    assert encoder.fingerprint != plain.fingerprint


def test_a_prompt_that_pooling_leaves_out(tmp_path: Path) -> None:
    prompts = {"query": "represent this: ", "document": "passage: "}
    model = small_model(tmp_path, "bert", prompts=prompts, include_prompt=False)
    mine = encode(load_encoder(model), TEXTS[:3], kind="query", level="pooled").numpy()
    assert cosine(mine, model.encode_query(TEXTS[:3], convert_to_numpy=True)).min() > 0.999


def test_a_projected_model_has_token_states_of_another_width(tmp_path: Path) -> None:
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.base.modules import Dense

    from lexent.training.stream import StateStream

    base = small_model(tmp_path, "bert")
    encoder = load_encoder(SentenceTransformer(modules=[*base, Dense(32, 12)], device="cpu"))
    assert encode(encoder, TEXTS, kind="document", level="pooled").values.shape == (len(TEXTS), 12)
    assert encode(encoder, TEXTS, kind="document").values.shape[1] == 32
    assert StateStream(TEXTS, encoder).width == 32
    assert StateStream(TEXTS, encoder, level="pooled").width == 12


def test_a_static_model_has_pooled_vectors_only() -> None:
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import StaticEmbedding
    from tokenizers import Tokenizer, models, pre_tokenizers

    vocabulary = {word: place for place, word in enumerate(["?", "query", ":", "bread", "oven"])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="?"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    torch.manual_seed(0)
    static = StaticEmbedding(tokenizer, embedding_dim=16)
    model = SentenceTransformer(modules=[static], prompts={"query": "query: "}, device="cpu")
    encoder = load_encoder(model)
    mine = encode(encoder, ["bread oven", "oven"], kind="query", level="pooled").numpy()
    assert cosine(mine, model.encode_query(["bread oven", "oven"])).min() > 0.999
    assert encoder.dim == 16
    with pytest.raises(InputError, match='level="pooled"'):
        list(encoder.batches(["bread"], kind="query"))
    with pytest.raises(InputError, match="no tokenizer"):
        encoder.tokenize(["bread"], kind="query")


# --- finding encoders --------------------------------------------------------------------------------------------


def test_an_unknown_encoder_says_what_to_type(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for name in ("no-such/encoder", str(tmp_path / "empty"), str(tmp_path / "missing")):
        with pytest.raises(NotFoundError) as caught:
            load_encoder(name)
        message = str(caught.value)
        assert name in message
        assert "local folder" in message
        assert "all-MiniLM-L6-v2" in message
    with pytest.raises(InputError, match="given: int"):
        load_encoder(3)


def test_a_saved_folder_loads(tmp_path: Path) -> None:
    model = small_model(tmp_path, "bert", prompts={"query": "query: "})
    model.save_pretrained(str(tmp_path / "saved"))
    encoder = load_encoder(tmp_path / "saved")
    assert encoder.id == str(tmp_path / "saved")
    assert encoder.fingerprint == load_encoder(model).fingerprint
    assert load_encoder(encoder) is encoder


# --- precomputed states ------------------------------------------------------------------------------------------


def test_arrays_pooled() -> None:
    vectors = {text: np.random.default_rng(place).normal(size=8) for place, text in enumerate("abc")}
    encoder = ArrayEncoder(vectors)
    assert (encoder.level, encoder.dim) == ("pooled", 8)
    states = encode(encoder, ["c", "a"], kind="document", level="pooled")
    np.testing.assert_allclose(states.numpy(), np.stack([vectors["c"], vectors["a"]]), rtol=1e-6)
    assert len(encoder.tokenize(["b"], kind="query")[0]) == 1


def test_arrays_of_tokens() -> None:
    encoder = ArrayEncoder({"two": np.ones((2, 4)), "none": np.ones((0, 4)), "three": np.zeros((3, 4))}, id="mine")
    states = encode(encoder, ["three", "none", "two"], kind="document")
    assert states.offsets.tolist() == [0, 3, 3, 5]
    assert states.of(2).sum() == 8
    assert [len(found) for found in encoder.tokenize(["three", "none"], kind="document")] == [3, 0]
    assert encoder.id == "mine"
    assert isinstance(encoder, Encoder)
    assert load_encoder(encoder) is encoder


def test_arrays_refuse_what_they_cannot_give() -> None:
    encoder = ArrayEncoder({"a": np.ones(4)})
    with pytest.raises(NotFoundError, match=r"'b'.*1 texts"):
        encode(encoder, ["b"], kind="document", level="pooled")
    with pytest.raises(InputError, match="pooled states"):
        encode(encoder, ["a"], kind="document", level="tokens")
    with pytest.raises(InputError, match="at least one"):
        ArrayEncoder({})
    with pytest.raises(InputError, match=r"widths \[3, 4\]"):
        ArrayEncoder({"a": np.ones(4), "b": np.ones(3)})
    with pytest.raises(InputError, match=r"ranks \[1, 2\]"):
        ArrayEncoder({"a": np.ones(4), "b": np.ones((1, 4))})
    with pytest.raises(InputError, match="ranks"):
        ArrayEncoder({"a": np.ones((1, 1, 4))})


def test_the_fingerprint_of_arrays_follows_their_content() -> None:
    base = {"a": np.arange(4.0), "b": np.ones(4)}
    assert ArrayEncoder(base).fingerprint == ArrayEncoder({"b": np.ones(4), "a": np.arange(4.0)}).fingerprint
    assert ArrayEncoder(base).fingerprint != ArrayEncoder({**base, "b": np.zeros(4)}).fingerprint
    assert ArrayEncoder(base).fingerprint != ArrayEncoder({"a": base["a"], "c": base["b"]}).fingerprint


# --- the tiny encoder --------------------------------------------------------------------------------------------


def test_tiny_is_the_same_in_every_process() -> None:
    code = (
        "import hashlib; from lexent.encoders import TinyEncoder; from lexent.encoders.encoder import encode;"
        "states = encode(TinyEncoder(), ['one fine day', 'Bread!'], kind='query');"
        "print(hashlib.sha256(states.numpy().tobytes()).hexdigest())"
    )
    runs = [subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True) for _ in range(2)]
    import hashlib

    here = encode(TinyEncoder(), ["one fine day", "Bread!"], kind="query").numpy().tobytes()
    assert {run.stdout.strip() for run in runs} == {hashlib.sha256(here).hexdigest()}


def test_tiny_tokens_line_up() -> None:
    encoder = load_encoder("tiny")
    texts = ["Bread, and salt.", "", "   ", "İİ naïve İstanbul", "word " * 300]
    tokens = check_tokens(encoder, texts, specials=True)
    for text, found in zip(texts, tokens, strict=True):
        assert [text[start:stop].lower() for start, stop in found.spans] == found.strings
    assert [len(found) for found in tokens] == [5, 0, 0, 3, 256]
    pooled = encode(encoder, texts, kind="document", level="pooled")
    assert pooled.values.shape == (5, encoder.dim)
    np.testing.assert_allclose(
        pooled.of(0)[0], encode(encoder, texts[:1], kind="query").numpy().mean(axis=0), rtol=1e-5
    )
    assert not pooled.of(1).any()


def test_tiny_neighbours_colour_a_word() -> None:
    states = [encode(TinyEncoder(), [text], kind="document").numpy() for text in ("bread", "bread oven")]
    assert not np.allclose(states[0][0], states[1][0])
    assert cosine(states[0][:1], states[1][:1])[0] > 0.8


@pytest.mark.parametrize("kind", ["bert", "roberta"])
def test_layers_that_nothing_reads_are_taken_out(tmp_path: Path, kind: str) -> None:
    model = small_model(tmp_path, kind)
    some = torch.arange(5, 25)[None]
    with torch.inference_mode():
        before = model[0].auto_model(input_ids=some, output_hidden_states=True).hidden_states
        fine_tuning.shorten(model, 2)
        assert len(model[0].auto_model.encoder.layer) == 2
        fine_tuning.shorten(model, 1)
        assert len(model[0].auto_model.encoder.layer) == 1
        after = model[0].auto_model(input_ids=some, output_hidden_states=True).hidden_states
    assert torch.equal(before[1], after[1])


def test_layers_stay_where_the_last_one_is_treated_apart() -> None:
    from transformers import ModernBertConfig, ModernBertModel

    class Wrapped:
        auto_model: Any

    settings: dict[str, Any] = {"hidden_size": 32, "num_hidden_layers": 3, "num_attention_heads": 4}
    settings |= {"intermediate_size": 48, "vocab_size": 64, "pad_token_id": 0}
    settings |= dict.fromkeys(("bos_token_id", "eos_token_id", "cls_token_id", "sep_token_id"), 1)
    torch.manual_seed(1)
    Wrapped.auto_model = ModernBertModel(ModernBertConfig(**settings)).eval()
    some = torch.arange(5, 25)[None]
    with torch.inference_mode():
        before = Wrapped.auto_model(input_ids=some, output_hidden_states=True).hidden_states[1]
        fine_tuning.shorten([Wrapped], 1)
        after = Wrapped.auto_model(input_ids=some, output_hidden_states=True).hidden_states[1]
    assert torch.equal(before, after)
    assert len(Wrapped.auto_model.layers) == 3


def test_batches_are_made_where_no_thread_can_be_started(monkeypatch: pytest.MonkeyPatch) -> None:
    import threading

    import torch

    from lexent.encoders.threads import in_threads

    start, begun = threading.Thread.start, []

    def one_alone(thread: threading.Thread) -> None:
        begun.append(thread)
        if len(begun) > 1:
            raise RuntimeError("can't start new thread")
        start(thread)

    before = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        monkeypatch.setattr(threading.Thread, "start", one_alone)
        assert list(in_threads(lambda number: number * 2, range(7))) == [0, 2, 4, 6, 8, 10, 12]
        assert torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(before)
    assert len(begun) > 1
