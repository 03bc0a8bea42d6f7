"""docs/compatibility.md says which formats are opened and what a refusal says. Both are held to the code."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import markdown
import small
from lexent import adapters, artifact
from lexent.adapters import Adapter, AdapterConfig, AdapterInfo
from lexent.adapters.adapter import shapes
from lexent.encoders import TinyEncoder
from lexent.engine import Index
from lexent.errors import ArtifactError
from lexent.indexing.manifest import stamped
from lexent.lexicon import load

PAGE = (markdown.ROOT / "docs" / "compatibility.md").read_text()
NEWEST = artifact.FORMAT_VERSION
KINDS = ("index", "lexicon", "adapter")


def table() -> dict[int, dict[str, str]]:
    """The formats of the page's table, up to one that is newer than all: what happens to each kind."""
    found: dict[int, dict[str, str]] = {}
    for formats, *states in re.findall(r"^\| (\d[^|]*) \| (\w+) \| (\w+) \| (\w+) \|", PAGE, re.MULTILINE):
        first, *last = (int(number) for number in re.findall(r"\d+", formats))
        for number in range(first, (last or [first])[0] + 1):
            found[number] = dict(zip(KINDS, states, strict=True))
    return found


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """An index, a lexicon and an adapter, as this version writes them."""
    place = tmp_path_factory.mktemp("formats")
    small.build(place / "index", docs=small.documents(4)).close()
    small.lexicon().save(place / "lexicon")
    form = AdapterConfig(dim=4, width=4, hidden=2)
    tensors = {name: np.zeros(shape, np.float32) for name, shape in shapes(form).items()}
    adapters.save(Adapter(form, tensors, AdapterInfo("test", "tiny", "tiny-1")), place / "adapter")
    return {kind: place / kind for kind in KINDS}


OPEN: dict[str, Callable[[Path], Any]] = {
    "index": lambda path: Index.open(path, encoder=TinyEncoder(), lexicon=small.lexicon()).close(),
    "lexicon": load,
    "adapter": adapters.load,
}


def relabel(folder: Path, **facts: Any) -> None:
    """Writes the manifest with another format, as if another version had written the folder."""
    path = folder / artifact.MANIFEST
    manifest = json.loads(path.read_text()) | facts
    path.write_text(json.dumps(stamped(manifest) if manifest["kind"] == "index" else manifest))


def test_the_table_has_every_format_and_one_more() -> None:
    assert sorted(table()) == list(range(1, NEWEST + 2))
    assert f"This version writes format {NEWEST}." in PAGE


@pytest.mark.parametrize("kind", KINDS)
def test_each_format_is_opened_or_refused_as_the_table_says(kind: str, folders: dict[str, Path]) -> None:
    assert json.loads((folders[kind] / artifact.MANIFEST).read_text())["format"] == NEWEST
    for number, states in table().items():
        assert (states[kind] == "written") == (number == NEWEST), f"{kind}, format {number}"
        relabel(folders[kind], format=number)
        if states[kind] == "refused":
            with pytest.raises(ArtifactError, match=f"format {number}; this version reads"):
                OPEN[kind](folders[kind])
        else:
            OPEN[kind](folders[kind])
    relabel(folders[kind], format=NEWEST)


def test_a_refusal_says_what_the_page_quotes(folders: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    quoted = [block.text.strip() for block in markdown.split(PAGE)[0] if "was written by lexent" in block.text]
    assert len(quoted) == 2
    monkeypatch.chdir(folders["index"].parent)
    for message in quoted:
        version, number = re.findall(r"lexent ([\d.]+), format (\d+)", message)[0]
        relabel(folders["index"], format=int(number), lexent=version)
        with pytest.raises(ArtifactError) as refused:
            OPEN["index"](Path("index"))
        assert str(refused.value) == message.replace("papers.lexent", "index")
    relabel(folders["index"], format=NEWEST)
