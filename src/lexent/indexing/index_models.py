"""The encoder and the lexicon of an index: loaded when first needed, and checked against its manifest."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from lexent.errors import MismatchError, NotFoundError
from lexent.indexing.manifest import Manifest
from lexent.lexicon import own_names
from lexent.models import EncoderLike, LexiconLike, load_encoder, load_lexicon

if TYPE_CHECKING:
    from lexent.encoders import Encoder
    from lexent.lexicon import Lexicon

T = TypeVar("T")


class IndexModels:
    """The encoder and the lexicon of an index, loaded when first needed and checked against its manifest."""

    def __init__(self, path: Path, manifest: Manifest, encoder: EncoderLike, lexicon: LexiconLike) -> None:
        self.path, self.manifest = path, manifest
        self._given = (encoder, lexicon)
        self._encoder: Encoder | None = None
        self._lexicon: Lexicon | None = None
        self._named: Lexicon | None = None
        self._loading = threading.RLock()
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
                loaded = self._load("encoder", self._given[0], self.manifest.encoder.source, load=load_encoder)
                self._check("encoder", loaded.id, loaded.fingerprint)
                self._encoder = loaded
            return self._encoder

    @property
    def lexicon(self) -> Lexicon:
        """The lexicon, loaded on first use and checked against the manifest."""
        with self._loading:
            if self._lexicon is None:
                loaded = self._load("lexicon", self._given[1], self.manifest.lexicon.source, load=load_lexicon)
                self._check("lexicon", loaded.name, loaded.hash)
                if loaded is not self._given[1]:  # one of the caller's may belong to other indexes, too
                    loaded.concepts.options = ("--index", str(self.path))
                self._lexicon = loaded
                self._named = self._with_own_names(loaded)
            return self._named or self._lexicon

    def rename(self, concept: int, label: str | None) -> None:
        """Gives a concept the user's name, kept beside the index; None gives it back its own."""
        with self._loading:
            now, loaded = self.lexicon, self._lexicon
            assert loaded is not None
            names = own_names.read(self.path, loaded)
            names.pop(concept, None)
            if label is not None:
                names[concept] = own_names.checked(label, concept, now)
            own_names.write(self.path, loaded, names)
            self._named = own_names.applied(loaded, names)

    def _with_own_names(self, loaded: Lexicon) -> Lexicon:
        return own_names.applied(loaded, own_names.read(self.path, loaded))

    def check(self, manifest: Manifest) -> None:
        """Refuses a newer generation that was built anew with other parts."""
        old, new = self.manifest, manifest
        if (old.encoder.fingerprint, old.lexicon.hash) != (new.encoder.fingerprint, new.lexicon.hash):
            raise MismatchError(
                f'"{self.path}" was built anew with another encoder or lexicon; open it again: Index.open(path)'
            )

    def _load(self, part: str, given: Any, source: str, *, load: Callable[[Any], T]) -> T:
        if given is not None:
            return load(given)
        try:
            return load(source)
        except NotFoundError as error:
            raise NotFoundError(
                f'"{self.path}" was built with the {part} "{source}", which is not found here ({error}); '
                f"say where it is now: --{part} NAME_OR_FOLDER ({part}=...)"
            ) from error

    def _check(self, part: str, name: str, mark: str) -> None:
        if part == "encoder":
            built, built_mark = self.manifest.encoder.id, self.manifest.encoder.fingerprint
        else:
            built, built_mark = self.manifest.lexicon.name, self.manifest.lexicon.hash
        if mark != built_mark:
            raise MismatchError(
                f'"{self.path}" was built with the {part} "{built}" ({built_mark[:12]}); given: "{name}" '
                f"({mark[:12]}); open it with the {part} it was built with, or build it again: "
                f"lexent index CORPUS --out {self.path} --overwrite"
            )
