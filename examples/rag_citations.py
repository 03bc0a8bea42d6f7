"""For RAG engineers: a prompt with numbered sources, citations that can be checked, and no answer where nothing fits.

    pip install "lexent[langchain]"
    python examples/rag_citations.py papers.jsonl "do statins prevent dementia?"

The passages are those of a strength of at least 0.1, which means the same for every question. A citation names the
document and the characters of it that were given to the language model, and the reasons why the passage was found.
In the place of the language model stands a function that quotes the first source.
"""

from __future__ import annotations

import re
import sys
import tempfile
from pathlib import Path

from langchain_core.documents import Document
from langchain_core.prompt_values import PromptValue
from langchain_core.prompts import ChatPromptTemplate

import lexent
from lexent.integrations.langchain import LexentRetriever

MIN_STRENGTH = 0.1
"""Weaker passages are not given to the language model."""
PROMPT = ChatPromptTemplate.from_template(
    "Answer from the sources alone, and cite each one that you use as [number].\n\n{sources}\n\nQuestion: {question}"
)


def model(prompt: PromptValue) -> str:
    """Stands for a language model: it quotes the first sentence of the first source."""
    source = prompt.to_string().split("[1] ")[1]
    return f"{source.split('. ')[0].strip('. ')} [1]."


def numbered(passages: list[Document]) -> str:
    """The sources as the prompt has them."""
    return "\n".join(f"[{number}] {one.page_content}" for number, one in enumerate(passages, 1))


def cited(answer: str, passages: list[Document]) -> list[Document]:
    """The passages that an answer cites; a number without a source is an error of the language model."""
    numbers = sorted({int(number) for number in re.findall(r"\[(\d+)\]", answer)})
    return [passages[number - 1] for number in numbers if 1 <= number <= len(passages)]


def main(source: str, question: str) -> None:
    """Index the source, answer the question, and print the answer with its citations."""
    with tempfile.TemporaryDirectory() as folder, lexent.index(source, out=Path(folder) / "rag.lexent") as index:
        retriever = LexentRetriever(index=index, k=5, min_strength=MIN_STRENGTH)
        passages = retriever.invoke(question)
        if not passages:
            print(f"nothing in {source} is about this")
            return
        answer = model(PROMPT.invoke({"sources": numbered(passages), "question": question}))
        print(answer)
        for one in cited(answer, passages):
            place = one.metadata
            text = index.document(place["document_id"]).text
            assert text[place["start"] : place["stop"]] == one.page_content
            print(f"\n{place['document_id']}, characters {place['start']} to {place['stop']}: {place['title']}")
            print(f"strength {place['strength']:.2f}, score {place['score']:.2f}, the sum of")
            for line in place["explanation"]:
                print(f"  {line['value']:6.2f}  {line['label']}")


if __name__ == "__main__":
    main(*sys.argv[1:3])
