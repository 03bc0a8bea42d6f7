"""The containers that travel between stages. All are frozen; arrays are never passed as bare tuples."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from lexent import arguments
from lexent.errors import InputError

if TYPE_CHECKING:
    import torch
    from scipy.sparse import csr_matrix

Kind = Literal["query", "document"]
"""Which side of the search a text stands on: encoders put their own prompt before each."""

Level = Literal["tokens", "pooled"]
"""What an encoder gives: a state per token, or one vector per text."""

Match = Literal["documents", "maxsim"]
"""How a query meets documents: by their pooled concepts, or token by token."""

Language = Literal[
    "none",
    "arabic",
    "armenian",
    "basque",
    "catalan",
    "czech",
    "danish",
    "dutch",
    "english",
    "esperanto",
    "estonian",
    "finnish",
    "french",
    "german",
    "greek",
    "hindi",
    "hungarian",
    "indonesian",
    "irish",
    "italian",
    "lithuanian",
    "nepali",
    "norwegian",
    "persian",
    "polish",
    "portuguese",
    "romanian",
    "russian",
    "serbian",
    "sesotho",
    "spanish",
    "swedish",
    "tamil",
    "turkish",
    "yiddish",
]
"""Languages whose words can be stemmed, by Snowball; none keeps words as they are written."""

Progress: TypeAlias = "Callable[[int], None] | None"
"""Called with the number of texts done since its last call."""

Batches: TypeAlias = "Iterator[tuple[NDArray[np.int64], States]]"
"""Positions int64[n_texts] among all texts and the states of those texts, a batch at a time, in any order."""

WholeBatches: TypeAlias = "Iterator[tuple[NDArray[np.int64], States, States]]"
"""The same with the pooled state of each text beside those of its tokens."""


@dataclass(frozen=True, slots=True)
class Document:
    """One text to be found."""

    id: str
    text: str
    title: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, given in (("id", self.id), ("text", self.text), ("title", self.title)):
            if not isinstance(given, str):
                raise arguments.refused(f"{name} of a document", given, "a string")
        if type(self.metadata) is not dict:
            arguments.mapping("metadata of a document", self.metadata, allowed='a dict, such as {"year": 2019}')
        if arguments.is_too_deep(self.metadata):
            raise InputError(
                f'metadata of the document "{self.id}" is nested in more than {arguments.MOST_LEVELS} levels; '
                "keep what is deeper as text"
            )

    @property
    def content(self) -> str:
        """What is encoded: the title, a space and the text, as BEIR joins them."""
        return f"{self.title} {self.text}".strip() if self.title else self.text

    @property
    def text_start(self) -> int:
        """Where the text begins in the content; below 0 where spaces before it are left out there."""
        if not self.title:
            return 0
        before = self.title.lstrip()
        return len(before) + 1 if before else len(self.text.lstrip()) - len(self.text)


class ConvertedCells(dict[str, Any]):
    """Metadata from a file whose cells are all text, with the spelling of the cells that were converted."""

    def __init__(self, values: Mapping[str, Any], spelling: Mapping[str, str]) -> None:
        super().__init__(values)
        self.spelling = spelling


@dataclass(frozen=True, slots=True)
class Tokens:
    """The tokens of one text, as its encoder sees them."""

    strings: list[str]
    spans: NDArray[np.int64]  # [n_tokens, 2], character offsets into the text; (0, 0) for special tokens
    special: NDArray[np.bool_]  # [n_tokens]

    def __len__(self) -> int:
        return len(self.strings)


StateRows: TypeAlias = "torch.Tensor | NDArray[np.float32]"
"""Rows of states: a tensor where torch made them, and an array where the light engine did."""


def on_host(rows: StateRows) -> NDArray[np.float32]:
    """Rows as float32, on the host."""
    if isinstance(rows, np.ndarray):
        return rows
    found: NDArray[np.float32] = rows.float().cpu().numpy()
    return found


@dataclass(frozen=True, slots=True)
class States:
    """Dense states of some texts: text i owns the rows offsets[i] to offsets[i + 1]."""

    values: StateRows  # float[n_rows, d_in]; a tensor is on the encoder's device and in its precision
    offsets: NDArray[np.int64]  # [n_texts + 1]

    @property
    def n_texts(self) -> int:
        """Number of texts."""
        return len(self.offsets) - 1

    def numpy(self) -> NDArray[np.float32]:
        """The rows as float32, on the host."""
        return on_host(self.values)

    def tensor(self) -> torch.Tensor:
        """The rows as a tensor: as they are where they are one."""
        import torch

        return torch.from_numpy(self.values) if isinstance(self.values, np.ndarray) else self.values

    def rows(self, text: int) -> StateRows:
        """[n_rows_of_text, d_in]: the rows of one text, in the form they have."""
        return self.values[int(self.offsets[text]) : int(self.offsets[text + 1])]

    def of(self, text: int) -> NDArray[np.float32]:
        """float32[n_rows_of_text, d_in]: the rows of one text."""
        return on_host(self.rows(text))

    def lengths(self) -> NDArray[np.float32]:
        """float32[n_rows]: the norm of each row."""
        if isinstance(self.values, np.ndarray):
            found: NDArray[np.float32] = np.linalg.norm(self.values, axis=1)
        else:
            found = self.values.float().norm(dim=1).cpu().numpy()
        return found

    @staticmethod
    def joined(parts: Sequence[StateRows], *, width: int = 0) -> States:
        """One text a part: the rows of all parts, which have one form. width: of the rows where there is no part."""
        offsets = np.concatenate([[0], np.cumsum([len(part) for part in parts])]).astype(np.int64)
        if all(isinstance(part, np.ndarray) for part in parts):
            empty = np.empty((0, width), np.float32)
            return States(np.concatenate([np.asarray(part) for part in parts]) if parts else empty, offsets)
        import torch

        return States(torch.cat([torch.as_tensor(part) for part in parts]), offsets)


@dataclass(frozen=True, slots=True)
class RowCodes:
    """The latents of each row of some States, strongest first. Unused places hold the value 0."""

    ids: NDArray[np.int32]  # [n_rows, k]
    values: NDArray[np.float32]  # [n_rows, k], never negative
    offsets: NDArray[np.int64]  # [n_texts + 1], as in States


@dataclass(frozen=True, slots=True)
class SparseVectors:
    """Sparse vectors in CSR form: vector i owns the entries offsets[i] to offsets[i + 1], ids ascending."""

    ids: NDArray[np.int32]  # [n_entries]
    values: NDArray[np.float32]  # [n_entries], positive
    offsets: NDArray[np.int64]  # [n_vectors + 1]
    size: int  # how many latents there are

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def of(self, vector: int) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """The ids and values of one vector."""
        part = slice(self.offsets[vector], self.offsets[vector + 1])
        return self.ids[part], self.values[part]

    def to_scipy(self) -> csr_matrix:
        """The vectors as a SciPy matrix."""
        from scipy.sparse import csr_matrix

        return csr_matrix((self.values, self.ids, self.offsets), shape=(len(self), self.size))

    @staticmethod
    def concatenate(parts: Sequence[SparseVectors], *, size: int) -> SparseVectors:
        """The vectors of all parts, in order."""
        counts = [np.diff(part.offsets) for part in parts]
        return SparseVectors(
            ids=np.concatenate([np.empty(0, np.int32), *(part.ids for part in parts)]),
            values=np.concatenate([np.empty(0, np.float32), *(part.values for part in parts)]),
            offsets=np.concatenate([np.zeros(1, np.int64), *counts]).cumsum(),
            size=size,
        )

    def above(self, first: int) -> SparseVectors:
        """The same vectors with ids that begin at `first`."""
        return SparseVectors(self.ids + np.int32(first), self.values, self.offsets, self.size + first)

    def take(self, order: NDArray[np.int64]) -> SparseVectors:
        """The vectors at the given positions, in that order."""
        counts = np.diff(self.offsets)[order]
        offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        entries = np.repeat(self.offsets[:-1][order] - offsets[:-1], counts) + np.arange(offsets[-1])
        return SparseVectors(ids=self.ids[entries], values=self.values[entries], offsets=offsets, size=self.size)


@dataclass(frozen=True, slots=True)
class Contribution:
    """One concept's or one word's part of a score: value = query * document."""

    concept: int
    label: str
    query: float
    document: float
    value: float
    word: bool = False
    """Whether it is a word of the index and no concept."""


@dataclass(frozen=True, slots=True)
class GroupContribution:
    """The part of a score that concepts of one meaning have together: the sum of their values."""

    label: str
    """The group's first word, and the words of the document that raised its concepts."""
    value: float
    members: tuple[Contribution, ...]
    """Its concepts, strongest first."""
    form: bool = False
    """Whether it holds the concepts of form, such as endings of words, which are no topic."""

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it; its concepts by number."""
        concepts = [part.concept for part in self.members]
        return {"label": self.label, "value": self.value, "concepts": concepts, "form": self.form}


@dataclass(frozen=True, slots=True)
class TokenShare:
    """What one token of a text gave to a concept."""

    token: str
    start: int
    stop: int
    share: float
