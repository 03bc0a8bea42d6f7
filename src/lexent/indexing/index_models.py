"""The encoder and the lexicon of an index: loaded when first needed, and checked against its manifest."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from lexent import artifact, forks
from lexent.errors import MismatchError, NotFoundError
from lexent.indexing.lock import writing
from lexent.indexing.manifest import EncoderPart, LexiconPart, Manifest
from lexent.lexicon import user_labels
from lexent.lexicon.collection_names import CollectionNames
from lexent.models import EncoderLike, LexiconLike, load_encoder, load_lexicon

if TYPE_CHECKING:
    from lexent.encoders import Encoder
    from lexent.lexicon import Lexicon

T = TypeVar("T")
_IDENTITY = {"encoder": ("id", "fingerprint"), "lexicon": ("name", "hash")}
"""Attributes that name a part and identify its content, of the part itself and in the manifest."""


class IndexModels:
    """The encoder and the lexicon of an index, loaded when first needed and checked against its manifest."""

    def __init__(
        self,
        path: Path,
        manifest: Manifest,
        encoder: EncoderLike,
        lexicon: LexiconLike,
        *,
        trust_encoder: bool = False,
    ) -> None:
        """trust_encoder: whether the encoder that the index names may be downloaded, and may run code."""
        self._trust_encoder = trust_encoder
        self.path, self.manifest = path, manifest
        self._given = (encoder, lexicon)
        self._encoder: Encoder | None = None
        self._lexicon: Lexicon | None = None
        self._collection_named: Lexicon
        self._named: Lexicon | None = None
        self.renamings = 0
        """Counts the times that names of concepts changed."""
        self._loading = threading.RLock()
        forks.renew_lock(self, "_loading")
        # What is already at hand is checked now; what must be loaded, when it is first needed.
        if encoder is not None and not isinstance(encoder, str | Path):
            _ = self.encoder
        if lexicon is not None and not isinstance(lexicon, str | Path):
            _ = self.lexicon

    @property
    def encoder(self) -> Encoder:
        """The encoder, loaded on first use and checked against the manifest."""
        with self._loading:
            if self._encoder is None:
                trusted = self._trust_encoder or self._given[0] is not None
                self._encoder = self._load("encoder", self._given[0], partial(load_encoder, trusted=trusted))
            return self._encoder

    @property
    def lexicon(self) -> Lexicon:
        """The lexicon, loaded on first use and checked against the manifest."""
        named = self._named
        if named is not None:  # without the lock: each label of an explanation comes here
            return named
        with self._loading:
            if self._lexicon is None:
                loaded = self._load("lexicon", self._given[1], load_lexicon)
                if loaded is not self._given[1]:  # one of the caller's may belong to other indexes, too
                    loaded.concepts.options = ("--index", str(self.path))
                self._lexicon = loaded
                self._apply_names()
            return self._named or self._lexicon

    @property
    def unnamed_lexicon(self) -> Lexicon:
        """The lexicon with its own names."""
        _ = self.lexicon
        assert self._lexicon is not None
        return self._lexicon

    def of_generation(self, manifest: Manifest) -> IndexModels:
        """The models with the names of a newer generation; those of this one stay as they are, for its readers."""
        if manifest.names == self.manifest.names:
            return self
        with self._loading:
            given: tuple[EncoderLike, LexiconLike] = self._encoder or self._given[0], self._lexicon or self._given[1]
            newer = IndexModels(self.path, manifest, *given, trust_encoder=self._trust_encoder)
            newer.renamings = self.renamings + 1
        return newer

    def _apply_names(self) -> None:
        assert self._lexicon is not None
        self._collection_named = self._lexicon
        if self.manifest.names is not None:
            with suppress(FileNotFoundError):  # replaced by a newer generation meanwhile
                held = CollectionNames.from_bytes(artifact.read_bytes(self.path / self.manifest.names))
                self._collection_named = held.applied(self._lexicon)
        names = user_labels.read(self.path, self._lexicon)
        self._named = user_labels.applied(self._collection_named, names)
        self.renamings += 1

    def rename(self, concept: int, label: str | None) -> None:
        """Gives a concept the user's name, kept beside the index; None gives it back its own."""
        with self._loading:
            loaded = self.unnamed_lexicon
            with writing(self.path, wait=user_labels.LOCK_SECONDS, file=user_labels.LOCK):
                names = user_labels.read(self.path, loaded)  # again: other processes give names, too
                if label is not None:
                    now = user_labels.applied(self._collection_named, names)
                    names[concept] = user_labels.checked(label, concept, now)
                else:
                    names.pop(concept, None)
                user_labels.write(self.path, loaded, names)
            self._named = user_labels.applied(self._collection_named, names)
            self.renamings += 1

    def check(self, manifest: Manifest) -> None:
        """Refuses a newer generation that was built anew with other parts."""
        old, new = self.manifest, manifest
        if (old.encoder.fingerprint, old.lexicon.hash) != (new.encoder.fingerprint, new.lexicon.hash):
            raise MismatchError(
                f'"{self.path}" was built anew with another encoder or lexicon; open it again: Index.open(path)'
            )

    def _load(self, part: Literal["encoder", "lexicon"], given: Any, load: Callable[[Any], T]) -> T:
        """The given part, or the one that the manifest names; refused where the index was built with another."""
        built: EncoderPart | LexiconPart = getattr(self.manifest, part)
        try:
            loaded = load(built.source if given is None else given)
        except NotFoundError as error:
            if given is not None:
                raise
            raise NotFoundError(
                f'"{self.path}" was built with the {part} "{built.source}", which is not found here ({error}); '
                f"say where it is now: --{part} NAME_OR_FOLDER ({part}=...)"
            ) from error
        name, mark = _IDENTITY[part]
        if getattr(loaded, mark) != getattr(built, mark):
            raise MismatchError(
                f'"{self.path}" was built with the {part} "{getattr(built, name)}" ({getattr(built, mark)[:12]}); '
                f'given: "{getattr(loaded, name)}" ({getattr(loaded, mark)[:12]}); open it with the {part} it was '
                f"built with, or build it again: lexent index CORPUS --out {self.path} --overwrite"
            )
        return loaded
