"""Which words of a text raised a concept."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from lexent import arguments
from lexent.errors import InputError
from lexent.pipeline import Pipeline
from lexent.search.coded_text import CodedText, code_texts
from lexent.search.steering import targets
from lexent.types import Kind, TokenShare

if TYPE_CHECKING:
    from lexent.search.results import Hit


@dataclass(frozen=True, slots=True)
class Attribution:
    """What each word of a text gave to a concept, strongest first; words that gave nothing are left out.

    The shares sum exactly to `pooled`, the concept's value after pooling and before the transform: with sum pooling a
    word's share is the sum of its tokens' activations, with max pooling the strongest token's word has all of it.
    The transform and BM25 work on the pooled value as a whole, so no exact split exists after them; `scaled` shares a
    weight or a contribution out in proportion.
    """

    concept: int
    label: str
    pooled: float
    shares: tuple[TokenShare, ...]

    def scaled(self, total: float) -> tuple[TokenShare, ...]:
        """The shares in proportion, so that they sum to `total`."""
        total = arguments.number("total", total)
        return tuple(replace(share, share=share.share / self.pooled * total) for share in self.shares)

    def to_dict(self) -> dict[str, Any]:
        """The values as a dict, for JSON."""
        tokens = [asdict(share) for share in self.shares]
        return {"concept": self.concept, "label": self.label, "pooled": self.pooled, "tokens": tokens}

    def __str__(self) -> str:
        words = ", ".join(f"{share.token} {share.share:.3f}" for share in self.shares)
        return f"#{self.concept} {self.label}: {words or 'no token'}"


@dataclass(frozen=True, slots=True)
class ConceptTokens:
    """The words behind a concept on both sides of a hit; places in a document count from the start of its `content`."""

    query: Attribution
    document: Attribution

    def to_dict(self) -> dict[str, Any]:
        """The values as a dict, for JSON."""
        return {"query": self.query.to_dict(), "document": self.document.to_dict()}

    def __str__(self) -> str:
        return f"query     {self.query}\ndocument  {self.document}"


def attribute(text: str, concept: int, *, kind: Kind, pipeline: Pipeline) -> Attribution:
    """Which words of `text` raised a concept. The text is encoded again, alone.

    Where the encoder works in half precision, a text encoded alone may differ from the same text encoded among others
    in the third digit.
    """
    arguments.text("text", text)
    lexicon, recipe = pipeline.lexicon, pipeline.recipe
    concept = lexicon.concept(concept).id
    if recipe.level != "tokens":
        raise InputError(
            f'the recipe "{recipe.name}" encodes a text as one {recipe.level} vector, so no token stands for a '
            "concept; words can be shown for recipes that encode tokens"
        )
    return attribution(code_texts(pipeline, [text], kind=kind)[0], concept, lexicon.label(concept))


def attribution(text: CodedText, concept: int, label: str) -> Attribution:
    """The words of a coded text that raised a concept of that label."""
    shares = text.shares(concept)
    return Attribution(concept, label, sum(share.share for share in shares), shares)


def tokens(hit: Hit, concept: str | int) -> ConceptTokens:
    """The words behind a concept of a hit; of several that a name may mean, the one that gave most to the score."""
    index = hit.index
    meant = targets(concept, hit.query.ids.tolist(), lexicon=index.lexicon, words=index.words)
    chosen = next((part.concept for part in hit.explain().contributions if part.concept in meant), meant[0])

    def side(text: str, kind: Kind) -> Attribution:
        if index.words is not None and chosen >= index.words.first:
            places = index.words.occurrences(text).get(chosen, ())
            shares = tuple(TokenShare(one.written, one.start, one.stop, 1.0) for one in places)
            return Attribution(chosen, index.label(chosen), float(len(shares)), shares)
        return attribute(text, chosen, kind=kind, pipeline=index.pipeline)

    passage = index.reader.passages([hit.position])[0]
    document = side(passage.content, "document")
    return ConceptTokens(
        query=side(hit.query.text, "query"), document=replace(document, shares=passage.in_content(document.shares))
    )
