"""A folder of sentence-transformers or Hugging Face, read without either library, where it is of a known kind."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from lexent.errors import InputError
from lexent.types import Kind

PoolingMode = Literal["mean", "cls", "max"]
_OLD_MODES = {f"pooling_mode_{name}": mode for name, mode in (("mean_tokens", "mean"), ("max_tokens", "max"))}
_OLD_MODES |= {"pooling_mode_cls_token": "cls"}
_OTHER_FILES = ("adapter_config.json", "model.safetensors.index.json")
"""Files that change what the others mean."""
_TOKENIZERS = ("BertTokenizer", "MPNetTokenizer")
"""Classes that transformers builds from their settings, whatever tokenizer.json says about case and accents."""
_GENERAL_TOKENIZERS = ("PreTrainedTokenizer", "TokenizersBackend")


class UnknownModelError(InputError):
    """A model that the light engine does not know. Says why."""


@dataclass(frozen=True, slots=True)
class ModelFolder:
    """What a folder says about a model, beside its weights and its tokenizer."""

    path: Path
    """Where config.json, the weights and the tokenizer are."""
    config: Mapping[str, Any]
    """The values of config.json."""
    max_tokens: int
    prompts: dict[Kind, str]
    lower_case: bool = False
    """Whether texts are put in lower case before the tokenizer's own normalisation."""
    pooling: PoolingMode = "mean"
    pools_prompt: bool = True
    """Whether the prompt's tokens count in the mean."""
    unit: bool = False
    """Whether pooled vectors are brought to length 1."""

    @staticmethod
    def read(folder: Path) -> ModelFolder:
        """Read it; a model with parts of another kind is refused."""
        modules = _modules(folder)
        own = folder / modules[0]["path"]
        for name in _OTHER_FILES:
            if (own / name).exists():
                raise UnknownModelError(f"it has a file {name}")
        needed = [own / "config.json", own / "tokenizer.json"]
        if len(modules) > 1:
            needed.append(folder / modules[1]["path"] / "config.json")
        for path in needed:
            if not path.is_file():
                raise UnknownModelError(f"it has no {path.relative_to(folder)}")
        config = _json(own / "config.json")
        pooling = _json(folder / modules[1]["path"] / "config.json") if len(modules) > 1 else {}
        if len(modules) > 2 and (folder / modules[2]["path"] / "config.json").is_file():
            normal = _json(folder / modules[2]["path"] / "config.json")
            if set(normal.values()) - {"sentence_embedding", None}:
                raise UnknownModelError(f"it brings something else to length 1: {normal}")
        return ModelFolder(
            path=own,
            config=config,
            max_tokens=_max_tokens(own, config),
            lower_case=bool(_json(own / "sentence_bert_config.json").get("do_lower_case")),
            prompts=usual_prompts(_json(folder / "config_sentence_transformers.json").get("prompts")),
            pooling=_mode(pooling),
            pools_prompt=bool(pooling.get("include_prompt", True)),
            unit=len(modules) > 2,
        )


def usual_prompts(known: Mapping[str, str | None] | None) -> dict[Kind, str]:
    """What goes before queries and documents. The document's prompt has three usual names.

    sentence-transformers adds an empty "document" to a model that names it otherwise, and then finds that one first.
    """
    known = known or {}
    document = next((found for name in ("document", "passage", "corpus") if (found := known.get(name))), "")
    return {"query": known.get("query") or "", "document": document}


def _json(path: Path) -> dict[str, Any]:
    """The values of a file; none where there is no such file."""
    if not path.is_file():
        return {}
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UnknownModelError(f"its {path.name} cannot be read: {error}") from error
    if not isinstance(values, dict):
        raise UnknownModelError(f"its {path.name} holds no object")
    return values


def _modules(folder: Path) -> list[dict[str, str]]:
    """A transformer, a pooling and perhaps a normalisation, as paths inside the folder."""
    if not (folder / "modules.json").is_file():
        return [{"path": ""}]  # sentence-transformers pools such a model by the mean
    try:
        found = json.loads((folder / "modules.json").read_text(encoding="utf-8"))
        kinds = [str(one["type"]).rpartition(".")[2] for one in found]
        paths = [{"path": str(one["path"])} for one in found]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UnknownModelError(f"its modules.json cannot be read: {error!r}") from error
    if kinds not in (["Transformer", "Pooling"], ["Transformer", "Pooling", "Normalize"]):
        raise UnknownModelError(f"its modules are {', '.join(kinds)}; known: Transformer, Pooling, Normalize")
    if any(not str(one["type"]).startswith("sentence_transformers.") for one in found):
        raise UnknownModelError("its modules bring code of their own")
    return paths


def check_plain_modules(folder: Path) -> None:
    """Refuse a model that brings more than settings and safetensors: code, pickled weights, a base elsewhere."""
    own = folder / _modules(folder)[0]["path"]
    _check_settings(_json(own / "sentence_bert_config.json"))
    if (own / _OTHER_FILES[0]).exists():
        raise UnknownModelError(f"it has a file {_OTHER_FILES[0]}")
    if not any(own.glob("*.safetensors")):
        raise UnknownModelError("its weights are no safetensors")


def _mode(config: Mapping[str, Any]) -> PoolingMode:
    modes = config.get("pooling_mode")
    if modes is None:
        modes = [_OLD_MODES.get(name, name) for name, on in config.items() if name.startswith("pooling_mode_") and on]
    modes = [modes] if isinstance(modes, str) else list(modes) or ["mean"]
    if len(modes) > 1 or modes[0] not in get_args(PoolingMode):
        raise UnknownModelError(
            f"its pooling is {', '.join(map(str, modes))}; known: {', '.join(get_args(PoolingMode))}"
        )
    mode: PoolingMode = modes[0]
    return mode


def _max_tokens(folder: Path, config: Mapping[str, Any]) -> int:
    """Tokens of a text that the model reads at most; a tokenizer that is set up in another way is refused."""
    own, tokenizer = _json(folder / "sentence_bert_config.json"), _json(folder / "tokenizer_config.json")
    if own.get("transformer_task", "feature-extraction") != "feature-extraction":
        raise UnknownModelError(f"its task is {own['transformer_task']}")
    _check_settings(own)
    if own.get("module_output_name", "token_embeddings") != "token_embeddings":
        raise UnknownModelError(f"its transformer gives {own['module_output_name']}")
    _check_tokenizer(folder, tokenizer)
    limit = own.get("max_seq_length")
    if limit is not None:
        return int(limit)
    most = int(tokenizer.get("model_max_length", 10**30))
    return min(most, int(config.get("max_position_embeddings", most)))


def _check_settings(own: Mapping[str, Any]) -> None:
    """Refuse settings of sentence_bert_config.json that are passed on to other libraries."""
    names = ("model_args", "model_kwargs", "tokenizer_args", "config_args", "processing_kwargs", "query_expansion")
    for name in names:
        if own.get(name):
            raise UnknownModelError(f"it has {name}")


def _check_tokenizer(folder: Path, config: Mapping[str, Any]) -> None:
    for name in ("truncation_side", "padding_side"):
        if config.get(name, "right") != "right":
            raise UnknownModelError(f"its {name} is {config[name]}")
    if config.get("split_special_tokens"):
        raise UnknownModelError("its tokenizer splits special tokens")
    kind = str(config.get("tokenizer_class") or _TOKENIZERS[0]).removesuffix("Fast")
    if kind in _GENERAL_TOKENIZERS:
        return
    if kind not in _TOKENIZERS:
        raise UnknownModelError(f"its tokenizer is a {kind}; known: {', '.join((*_TOKENIZERS, *_GENERAL_TOKENIZERS))}")
    held = _json(folder / "tokenizer.json")
    expected = {
        "type": "BertNormalizer",
        "clean_text": True,
        "handle_chinese_chars": bool(config.get("tokenize_chinese_chars", True)),
        "strip_accents": config.get("strip_accents"),
        "lowercase": bool(config.get("do_lower_case", True)),
    }
    if held.get("normalizer") != expected or held.get("pre_tokenizer") != {"type": "BertPreTokenizer"}:
        raise UnknownModelError("its tokenizer.json and its tokenizer_config.json say different things about case")
