"""Files of every format become documents: their words, their headings as Markdown, their titles and fields."""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import os
import random
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import pytest

import small
from commands import furnished, good, program, run, tiny
from lexent.corpus import read, texts
from lexent.errors import InputError, LexentError, MissingExtraError
from lexent.types import Document
from made_files import CONTAINER, HTML_MESSAGE, MESSAGE, PACKAGE, epub, pdf

HTML = """<!doctype html><html><head><meta charset="windows-1252"><title>Site - Page</title><style>h1 {}</style></head>
<body><nav><a href="/">Home</a></nav>
<h1>Bread <em>baking</em></h1><p>Flour,<br>water &amp;
 <b>caf\xe9</b>.</p><ul><li>one</li><li>two <i>big</i><ul><li>three</li></ul></li></ul>
<h2>A table</h2><table><tr><th>a</th><th>b</th></tr><tr><td>1</td><td>2</td></tr></table>
<table><tr><td><h3>Layout</h3><p>a cell</p></td><td><p>another</p></td></tr></table>
<pre># no heading
  code</pre><p># 7, no heading</p><p hidden>secret</p><script>var x = "no"</script>
<div>last<span> words</span></div>after<img src="x" alt="a loaf"></body></html>"""
READ_HTML = """Flour,
water & caf\xe9.

- one
- two big
- three

## A table

a | b
1 | 2

### Layout

a cell

another

```
# no heading
  code
```

\\# 7, no heading

last words

after a loaf"""


def only(path: Path, **options: str) -> Document:
    (found,) = read(path, **options)  # type: ignore[arg-type]
    return found


def test_html(tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    path.write_bytes(HTML.encode("cp1252"))
    assert only(path) == Document("page.html", READ_HTML, "Bread baking")
    path.write_text(HTML.replace("windows-1252", "nonsense"), encoding="utf-8")
    assert only(path).text == READ_HTML, "an encoding that nobody knows is none"
    path.write_text("<title> A  title </title><p>words<p>more", encoding="utf-16")
    assert only(path) == Document("page.html", "words\n\nmore", "A title")
    path.write_text(
        "<title>Dough - The Book</title><h1>The Book</h1><div>menu</div><main><h1>The Book</h1>"
        "<h2>Dough <a>¶</a></h2>flour<button>copy</button><h1>More</h1></main>after"
    )
    assert only(path) == Document("page.html", "# The Book\n\n## Dough\n\nflour\n\n# More", "Dough")
    path.write_text("<title>The Book</title><h1>One</h1><h1>Two</h1><main hidden>no</main>words")
    assert only(path) == Document("page.html", "# One\n\n# Two\n\nwords", "The Book")
    path.write_text("<h2>First</h2>words")
    assert only(path) == Document("page.html", "words", "First")
    path.write_text("<title>Alone</title>")
    assert only(path) == Document("page.html", "", "Alone")


def test_html_that_is_nested_deeply(tmp_path: Path) -> None:
    path = tmp_path / "deep.htm"
    path.write_text("<div>" * 2000 + "words" + "</div>" * 2000)
    assert only(path).text == "words"
    path.write_text("<p>first" + "<div>" * 5000 + "words" + "</div>" * 5000)
    with pytest.raises(InputError, match=r"deep\.htm: not a readable HTML file \(Excessive depth"):
        only(path)


def test_pdf(tmp_path: Path) -> None:
    path = tmp_path / "paper.pdf"
    pages = [
        ["Dough . . . . . . . 7", "A paper about infor-", "mation from the oven. It goes"],
        ["on over the page.", "# 5 loaves", "x ", "= y", "="],
        ["Last."],
    ]
    path.write_bytes(pdf(pages, title="Bread and Data"))
    text = "Dough … 7\nA paper about information from the oven. It goes\non over the page."
    text += "\n\\# 5 loaves\nx\n= y\n\n=\nLast."
    assert only(path) == Document("paper.pdf", text, "Bread and Data")
    path.write_bytes(pdf(pages[1:], title="Microsoft Word - draft7.doc"))
    assert only(path).title == "paper", "a program wrote that title"
    path.with_suffix(".pdf.gz").write_bytes(gzip.compress(path.read_bytes()))
    assert only(tmp_path / "paper.pdf.gz").text == only(path).text


def test_pdf_that_cannot_be_read(tmp_path: Path) -> None:
    pypdf = pytest.importorskip("pypdf")
    path = tmp_path / "paper.pdf"
    path.write_bytes(pdf([[]]))
    with pytest.raises(InputError, match="hold no text, only images"):
        only(path)
    path.write_bytes(pdf([["words"]])[:150])
    with pytest.raises(InputError, match=r"paper\.pdf: not a readable PDF file"):
        only(path)
    for password, readable in (("secret", False), ("", True)):
        writer = pypdf.PdfWriter(clone_from=io.BytesIO(pdf([["flour and yeast"]])))
        writer.encrypt(password, "owner", algorithm="AES-256")
        writer.write(path)
        if readable:
            assert only(path).text == "flour and yeast"
        else:
            with pytest.raises(InputError, match="encrypted with a password"):
                only(path)


def test_docx(tmp_path: Path) -> None:
    docx = pytest.importorskip("docx")
    from docx.oxml import parse_xml

    word = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
    made = docx.Document()
    made.add_heading("Bread", 0)
    made.add_paragraph("Flour and ").add_run("yeast").bold = True
    made.add_heading("Baking", 1)
    made.add_paragraph("one", style="List Bullet")
    made.add_paragraph("# 7 no heading")
    table = made.add_table(rows=2, cols=2)
    for place, cell in enumerate(["a", "b", "1", "2"]):
        table.cell(place // 2, place % 2).text = cell
    made.add_heading("Deep", 2)
    body = made.element.body
    deleted = "<w:del><w:r><w:delText>no</w:delText></w:r></w:del>"
    inserted = f"<w:p {word}><w:ins><w:r><w:t>kept</w:t></w:r></w:ins>{deleted}</w:p>"
    body.insert(len(body) - 1, parse_xml(inserted))
    run = "<w:r><w:t>controlled</w:t><w:tab/><w:t>text</w:t></w:r>"
    boxed = f"<w:sdt {word}><w:sdtContent><w:p>{run}</w:p></w:sdtContent></w:sdt>"
    body.insert(len(body) - 1, parse_xml(boxed))
    path = tmp_path / "letter.docx"
    made.save(path)
    text = (
        "Flour and yeast\n\n# Baking\n\none\n\n\\# 7 no heading\n\na | b\n1 | 2\n\n## Deep\n\nkept\n\ncontrolled\ttext"
    )
    assert only(path) == Document("letter.docx", text, "Bread")
    path.write_bytes(b"no archive")
    with pytest.raises(InputError, match="not a readable DOCX file"):
        only(path)


def test_epub(tmp_path: Path) -> None:
    path = epub(tmp_path / "book.epub")
    text = "# Dough\n\nFlour and yeast.\n\n# Baking\n\nAn oven & a crust."
    assert only(path) == Document("book.epub", text, "The Book of Bread")
    locked = '<e xmlns:x="y"><x:CipherReference URI="OEBPS/{}"/></e>'
    assert only(epub(path, encryption=locked.format("font.otf"))).text == text
    with pytest.raises(InputError, match="DRM"):
        only(epub(path, encryption=locked.format("text/two.xhtml")))


def test_restructured_text(tmp_path: Path) -> None:
    path = tmp_path / "guide.rst"
    path.write_text("""\
.. _top:

=====
Bread
=====

Read :ref:`this page <top>`, :func:`~oven.bake` and `a link <https://example.org>`_, with ``code`` and *care*.

Baking
------

.. note:: Hot oven.
   Take care.

.. code-block:: python
   :linenos:

   # no heading
   bake()

Thus::

   crust

.. toctree::
   one

Crust
~~~~~

- thin
- thick

Cooling
-------
Done.
""")
    text = """\
Read this page, oven.bake and a link, with code and care.

## Baking

Hot oven.
Take care.

```
# no heading
bake()
```

Thus:

```
crust
```

### Crust

- thin
- thick

## Cooling

Done."""
    assert only(path) == Document("guide.rst", text, "Bread")


CODE = {
    "oven.py": (
        '#!/usr/bin/env python\n"""Ovens."""\nimport x\n\n# About ovens.\nclass Oven:\n    """Is hot."""\n\n'
        '    def bake(self):\n        """Bakes.\n\n        # Notes\n        Slowly.\n        """\n'
        "        return 1  # done\n\ndef bare(): pass\n",
        "Ovens.\n\n# Oven\n\nAbout ovens.\n\nIs hot.\n\n## bake\n\nBakes.\n\n### Notes\n\nSlowly.\n\ndone\n\nbare",
    ),
    "oven.c": ("#include <a.h>\n/* Bakes\n * bread. */\nint bake(int a) { return a; }\n", "# bake\n\nBakes\nbread."),
    "oven.js": ("/** Bakes. */\nexport function bake(a) { return a }\n", "# bake\n\nBakes."),
    "Oven.java": (
        "/** Is hot. */\npublic class Oven {\n  // Bakes.\n  void bake() {}\n}\n",
        "# Oven\n\nIs hot.\n\n## bake\n\nBakes.",
    ),
    "oven.go": ("// Bake bakes.\n// Slowly.\nfunc (o *Oven) Bake() {}\n", "# Bake\n\nBake bakes.\nSlowly."),
    "oven.rs": ("/// Is hot.\nstruct Oven;\n\n/// Bakes.\nfn bake() {}\n", "# Oven\n\nIs hot.\n\n# bake\n\nBakes."),
    "oven.sh": ("#!/bin/sh\n# Bakes bread.\necho '# no comment'\n", "Bakes bread."),
}  # fmt: skip


@pytest.mark.parametrize("name", CODE)
def test_source_code(tmp_path: Path, name: str) -> None:
    code, text = CODE[name]
    (tmp_path / name).write_text(code)
    assert only(tmp_path / name) == Document(name, text, name)


def test_headings_of_source_code_follow_its_levels(tmp_path: Path) -> None:
    path = tmp_path / "oven.py"
    path.write_text('''\
"""Ovens."""

class Oven:
    def bake(self):
        """Bakes."""

    # Of the class.

    heat = 1  # Hot.

# Of the module.

TOP = 9
"""The top."""

def clean():
    """Cleans.

    Notes
    -----
    # Rubs twice.
    >>> clean()

    # Steps
    """
    text = """
at the left"""
    def rub(): pass  # Rubs.

###################
# Last ############
''')
    text = (
        "Ovens.\n\nOf the module.\n\nThe top.\n\nLast\n\n# Oven\n\nOf the class.\n\nHot.\n\n## bake\n\nBakes.\n\n"
        "# clean\n\nCleans.\n\nNotes\n\n\\# Rubs twice.\n>>> clean()\n\n## Steps\n\n## rub\n\nRubs."
    )
    assert only(path).text == text
    path = tmp_path / "oven.cpp"
    path.write_text("class Oven\n{\npublic:\n    // Bakes.\n    void bake() {}\n};\n\n/// Fires.\nint fire(int a) {}\n")
    assert only(path).text == "# Oven\n\nBakes.\n\n# fire\n\nFires."


def test_source_code_takes_linear_time(tmp_path: Path) -> None:
    path = tmp_path / "long.c"
    path.write_text("# flour\n" + "//" * 10000)
    start = time.perf_counter()
    assert only(path).text.startswith("\\# flour\n////")
    path = tmp_path / "many.py"
    path.write_text("def f(): # a\n  pass\n" * 20000 + "# b\n" * 20000)
    assert only(path).text.startswith("b\nb\n")
    assert time.perf_counter() - start < 8, "the square of this takes minutes"


def test_facts_before_markdown(tmp_path: Path) -> None:
    path = tmp_path / "a.md"
    path.write_text("---\ntitle: 'On boarding'\ntags: [a, b]\n---\n\n# Laptops\n\nAsk Ann.\n")
    assert only(path) == Document("a.md", "# Laptops\n\nAsk Ann.", "On boarding")
    path.write_text("---\ntags:\n  - a\n---\n# Laptops\n\nAsk Ann.\n")
    assert only(path) == Document("a.md", "Ask Ann.", "Laptops")
    path.write_text("---\n\nA line above, and one below.\n\n---\n\nAsk Ann.\n")
    assert only(path).text.startswith("---")


def test_mail(tmp_path: Path) -> None:
    path = tmp_path / "a.eml"
    path.write_bytes(MESSAGE)
    fields = {
        "date": "2022-05-31T08:00:00+00:00",
        "from": "Ann Able <ann@example.org>",
        "to": ["Bob <bob@example.org>", '"Cee, Dee" <dee@example.org>'],
    }
    text = "Bread from the caf\xe9.\n>From the oven, that is.\n\\# 7 is the table."
    assert only(path) == Document("a.eml", text, "Caf\xe9 at noon", fields)
    path.write_bytes(HTML_MESSAGE)
    assert only(path) == Document("a.eml", "# Stars\n\nA telescope.", "A page", {"from": "Ann <ann@example.org>"})
    box = tmp_path / "inbox.mbox"
    box.write_bytes(b"".join(b"From x Tue May 31\n" + one + b"\n" for one in (MESSAGE, HTML_MESSAGE)))
    found = list(read(box))
    assert [one.id for one in found] == ["inbox.mbox#0", "inbox.mbox#1"]
    assert found[0].text.split("\n")[1] == "From the oven, that is."
    assert found[1].title == "A page"
    box.write_bytes(b"no mailbox\n")
    with pytest.raises(InputError, match="not a readable mailbox file"):
        list(read(box))


def test_mail_with_bad_headers(tmp_path: Path) -> None:
    path = tmp_path / "a.eml"
    path.write_bytes(
        b"From: \xff\xfe\nDate: yesterday\nTo: ;;;<<\nSubject: x\nContent-Type: text/plain; charset=none\n\nwords\n"
    )
    found = only(path)
    assert (found.title, found.text) == ("x", "words")
    assert "date" not in found.metadata
    path.write_bytes(b"From: a@b.c\nTo: J\xe9r\xf4me <x@y.z>\nSubject: caf\xe9\n\nhi there\n")
    found = only(path)
    json.dumps([found.title, found.metadata], ensure_ascii=False).encode()  # no half of a surrogate pair
    assert "x@y.z" in str(found.metadata["to"])


def test_mail_that_cannot_be_decoded(tmp_path: Path) -> None:
    path = tmp_path / "a.eml"
    plain = b"Subject: x\nContent-Type: text/plain; charset="
    path.write_bytes(plain + b"none\n\ncaf\xc3\xa9")
    assert only(path).text == "caf\xe9", "it is UTF-8 all the same"
    path.write_bytes(plain + b"us-ascii\n\ncaf\xe9")
    assert only(path, encoding="cp1252").text == "caf\xe9"
    path.write_bytes(b"Subject: x\nContent-Type: multipart/mixed; boundary=B\n\n--B\n\nno header\n--B--\n")
    assert only(path).text == "no header"
    box = tmp_path / "in.mbox"
    cases = {
        plain + b"none\n\ncaf\xe9": "undecodable bytes",
        plain + b"utf-8\n\ncaf\xe9": "undecodable bytes",
        bytes(range(128, 256)) * 4: "undecodable bytes",
        b"Subject: x\nContent-Transfer-Encoding: base64\n\n!!!!notb64": "damaged file",
        b"Subject: x\nContent-Type: multipart/mixed\n\n--B\n\nflour\n": "damaged file",
        nested_message(2000): "damaged file",
    }
    for content, reason in cases.items():
        path.write_bytes(content)
        with pytest.raises(InputError, match=r"a\.eml: "):
            only(path)
        box.write_bytes(b"From x\n" + content + b"\n\nFrom y\n" + MESSAGE)
        corpus = read(box, on_error="skip")
        assert [one.id for one in corpus] == ["in.mbox#1"]
        assert [(one.where, one.reason) for one in corpus.problems] == [(f"{box}, message 0", reason)]


def nested_message(depth: int) -> bytes:
    """A message of parts within parts."""
    head = b"Content-Type: multipart/mixed; boundary=B%d\n\n--B%d\n"
    return b"Subject: x\n" + b"".join(head % (level, level) for level in range(depth)) + b"\nwords\n"


# --- damaged files ---------------------------------------------------------------------------------------------------


def made(folder: Path) -> dict[str, bytes]:
    """A good file of each format, by name."""
    docx = pytest.importorskip("docx")
    letter = io.BytesIO()
    document = docx.Document()
    document.add_heading("Bread", 1)
    document.add_paragraph("Flour and yeast.")
    document.save(letter)
    code, _ = CODE["oven.py"]
    return {
        "a.pdf": pdf([["flour", "yeast"], ["dough"]], title="Bread"),
        "a.docx": letter.getvalue(),
        "a.epub": epub(folder / "made").read_bytes(),
        "a.eml": HTML_MESSAGE,
        "a.mbox": b"From x\n" + MESSAGE + b"\nFrom y\n" + HTML_MESSAGE,
        "a.html": HTML.encode(),
        "a.rst": b"Bread\n=====\n\n.. note:: Hot.\n\n.. code::\n\n   bake\n\nThus::\n\n   x\n",
        "a.py": code.encode(),
        "a.csv": b'id,text\n1,"a\nb"\n2,c\n',
        "a.jsonl.gz": gzip.compress(b'{"id": 1, "text": "flour"}\n' * 9),
    }


def mangled(content: bytes, draw: random.Random) -> bytes:
    """The content with some bytes changed, lost or added, or without its end."""
    data = bytearray(content)
    for _ in range(draw.randint(1, 6)):
        place, how = draw.randrange(len(data) or 1), draw.random()
        if how < 0.5 and data:
            data[place] = draw.randrange(256)
        elif how < 0.7:
            del data[place : place + draw.randint(1, 50)]
        elif how < 0.85:
            data[place:place] = draw.randbytes(draw.randint(1, 20))
        else:
            del data[place:]
    return bytes(data)


def test_a_damaged_file_is_read_or_refused_by_name(tmp_path: Path) -> None:
    draw = random.Random(7)
    refused: list[tuple[str, str]] = []
    for name, content in made(tmp_path).items():
        for _ in range(40):
            (tmp_path / name).write_bytes(mangled(content, draw))
            try:
                list(read(tmp_path / name))
            except LexentError as error:
                refused.append((name, str(error)))
            with contextlib.suppress(LexentError):
                list(read(tmp_path / name, on_error="skip"))
    assert len(refused) > 100
    assert [message for name, message in refused if name not in message] == []


def archived(path: Path, members: dict[str, str]) -> Path:
    """A zip file."""
    with zipfile.ZipFile(path, "w") as file:
        for name, content in members.items():
            file.writestr(name, content)
    return path


def damaged(path: Path) -> list[str]:
    """The texts of a damaged file, none or one."""
    with pytest.raises(InputError, match=f"{path.name}: .*damaged|{path.name}: not a readable"):
        list(read(path))
    (path.parent / "other.md").write_text("salt")
    corpus = read([path, path.parent / "other.md"], on_error="skip")
    found = [one.text for one in corpus]
    assert [(one.where, one.reason) for one in corpus.problems] == [(str(path), "damaged file")]
    assert found.pop() == "salt"
    return found


def test_broken_xml_in_archives(tmp_path: Path) -> None:
    pytest.importorskip("lxml")
    path, name = tmp_path / "a.docx", "word/document.xml"
    word = '<w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"><w:body>'
    flour, end = "<w:p><w:r><w:t>flour</w:t></w:r></w:p>", "</w:body></w:document>"
    assert only(archived(path, {name: word + flour.replace("flour", "a & b\x01") + end})).text
    assert damaged(archived(path, {name: word + flour + "<w:p><w:r><w:t>yeast</w:t>"})) == ["flour\n\nyeast"]
    assert damaged(archived(path, {name: word + flour + end, "word/footnotes.xml": ""})) == ["flour"]
    assert damaged(archived(path, {name: "<w:doc"})) == []
    cell = "<w:tbl><w:tr><w:tc>"
    assert damaged(archived(path, {name: word + flour + cell * 3000})) == ["flour"]
    book = tmp_path / "a.epub"
    pages = {"OEBPS/text/chapter one.xhtml": "<p>flour</p>", "OEBPS/text/two.xhtml": "<p>yeast</p>"}
    members = {"META-INF/container.xml": CONTAINER, "OEBPS/book.opf": PACKAGE, **pages}
    assert only(archived(book, members)).text == "flour\n\nyeast"
    assert damaged(archived(book, {**members, "OEBPS/book.opf": "<package"})) == []
    assert damaged(archived(book, {one: members[one] for one in members if "two" not in one})) == ["flour"]
    assert damaged(archived(book, {one: members[one] for one in members if one not in pages})) == []


def test_text_that_is_nested_deeply(tmp_path: Path) -> None:
    path = tmp_path / "a.rst"
    path.write_text(".. note:: " * 2000 + "words")
    assert damaged(path) == []


def test_files_without_text(tmp_path: Path) -> None:
    names = ["a.txt", "b.md", "c.html", "d.rst", "e.eml"]
    for name in (*names, "f.py"):
        (tmp_path / name).write_bytes(b"")
    (tmp_path / "g.md").write_text("# g")
    with pytest.raises(InputError, match=r"a\.txt: the file holds no text"):
        only(tmp_path / "a.txt")
    corpus = read(tmp_path)
    assert [one.id for one in corpus] == ["f.py", "g.md"]
    assert corpus.unread.counts == {"empty": len(names)}
    for name in names:
        (tmp_path / name).write_bytes(b" \n")
    corpus = read(tmp_path, on_error="skip")
    assert [one.id for one in corpus] == ["f.py", "g.md"]
    assert [(Path(one.where).name, one.reason) for one in corpus.problems] == [(name, "empty text") for name in names]


def test_zero_bytes_in_text(tmp_path: Path) -> None:
    text, rows = tmp_path / "a.txt", tmp_path / "a.csv"
    text.write_bytes(b"a\0b")
    rows.write_bytes(b"id,text\n1,a\0b\n2,\0\n")
    assert only(text).text == "a\0b"
    assert [one.text for one in read(rows)] == ["a\0b", "\0"]
    text.write_bytes("flour and yeast".encode("utf-16-le"))
    with pytest.raises(InputError, match="--encoding utf-16-le"):
        only(text)


# --- packed files ----------------------------------------------------------------------------------------------------


def test_zstd(tmp_path: Path) -> None:
    zstandard = pytest.importorskip("zstandard")
    rows = "".join(json.dumps({"id": number, "text": f"text {number}"}) + "\n" for number in range(5000))
    packed = zstandard.ZstdCompressor().compress(rows[:9000].encode())
    packed += zstandard.ZstdCompressor().compress(rows[9000:].encode())
    path = tmp_path / "rows.jsonl.zst"
    path.write_bytes(packed)
    assert [one.text for one in read(path)] == [f"text {number}" for number in range(5000)]
    path.write_bytes(packed[:-9])
    with pytest.raises(InputError, match="not a whole zstd file"):
        list(read(path))
    corpus = read(path, on_error="skip")
    assert 0 < len(list(corpus)) < 5000
    assert [one.reason for one in corpus.problems] == ["damaged file"]
    page = tmp_path / "page.md.zst"
    page.write_bytes(zstandard.ZstdCompressor().compress(b"# Bread\n\nFlour."))
    assert only(page) == Document("page.md.zst", "Flour.", "Bread")


# --- folders ---------------------------------------------------------------------------------------------------------


def mixed(folder: Path) -> Path:
    """A folder as people have them."""
    for name in ("deep", ".git", "empty"):
        (folder / name).mkdir(parents=True)
    (folder / "a.md").write_text("# Bread\n\nFlour.")
    (folder / "deep" / "b.html").write_text("<h1>Stars</h1>A telescope.")
    (folder / "deep" / "c.csv").write_text("text,year\nyeast,2001\ndough,2002\n")
    (folder / "d.jsonl").write_text('{"id": "x", "text": "oven"}\n')
    (folder / "e.pdf").write_bytes(pdf([["crust"]]))
    (folder / "in.mbox").write_bytes(b"From x\n" + MESSAGE)
    for name in ("photo.PNG", "b.png", "Makefile", "package.json", ".env", "old.tar.gz"):
        (folder / name).write_bytes(b"\x00\xff")
    os.mkfifo(folder / "pipe.txt")
    (folder / "link").symlink_to(folder / "deep")
    return folder


UNREAD = {
    "hidden": 2, ".png": 2, "without a suffix": 1, ".json": 1, ".tar": 1, "linked folders": 1,
    "broken links or devices": 1,
}  # fmt: skip


def test_a_folder_of_mixed_files(tmp_path: Path) -> None:
    corpus = read(mixed(tmp_path / "notes"))
    found = {one.id: (one.title, one.text) for one in corpus}
    assert list(found) == ["a.md", "x", "deep/b.html", "deep/c.csv#0", "deep/c.csv#1", "e.pdf", "in.mbox#0"]
    assert found["deep/b.html"] == ("Stars", "A telescope.")
    assert found["deep/c.csv#1"] == ("", "dough")
    assert [one.metadata for one in corpus if "csv" in one.id] == [{"year": 2001}, {"year": 2002}]
    assert corpus.unread.counts == UNREAD
    assert corpus.description.startswith("6 files (1 .md, 1 .jsonl, 1 .html, 1 .csv, 1 .pdf, 1 .mbox); id = path")
    assert set(texts(tmp_path / "notes")) >= {"Bread", "Flour.", "yeast", "oven", "crust"}


def test_an_index_in_a_folder_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("flour")
    small.build(tmp_path / "notes.lexent").close()
    (tmp_path / "other.lexent").mkdir()
    (tmp_path / "other.lexent" / "b.md").write_text("no index")
    corpus = read(tmp_path)
    assert [one.id for one in corpus] == ["a.md", "other.lexent/b.md"]
    assert corpus.unread.counts == {"indexes of Lexent": 1}


def test_a_mixed_folder_in_a_list(tmp_path: Path) -> None:
    mixed(tmp_path / "notes")
    (tmp_path / "more.txt").write_text("galaxy")
    (tmp_path / "rows.csv").write_text("text\none\n")
    corpus = read([tmp_path / "rows.csv", tmp_path / "notes", tmp_path / "more.txt"])
    ids = [one.id for one in corpus]
    assert ids[:3] == ["0", "notes/a.md", "x"]
    assert {"notes/deep/c.csv#0", "more.txt"} <= set(ids)
    assert corpus.unread.counts == UNREAD


def test_ids_of_tables_in_a_folder_are_unique(tmp_path: Path) -> None:
    for name in ("a.csv", "b.csv"):
        (tmp_path / name).write_text(f"id,text\n1,{name}\n")
    with pytest.raises(InputError, match=r'b\.csv, line 2: the id "1" stands already at .*a\.csv, line 2; .*--id ""'):
        list(read(tmp_path))
    assert [one.id for one in read(tmp_path, id="")] == ["a.csv#0", "b.csv#0"]


def test_a_folder_that_needs_the_extra(tmp_path: Path) -> None:
    for name in ("a.pdf", "b.pdf"):
        (tmp_path / name).write_bytes(pdf([["words"]]))
    (tmp_path / "c.md").write_text("flour")
    code = f"""
import sys; sys.modules["pypdf"] = None
from lexent.corpus import read
from lexent.errors import MissingExtraError
try: read({str(tmp_path)!r})
except MissingExtraError as error: print(error)
corpus = read({str(tmp_path)!r}, on_error="skip")
print([one.id for one in corpus], [one.reason for one in corpus.problems])
"""
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    first, second = output.splitlines()
    assert first.startswith("reading the 2 .pdf files in ")
    assert first.endswith('needs the package "pypdf"; install it: pip install "lexent[files]"')
    assert second == "['c.md'] ['package missing', 'package missing']"


def test_every_known_format_is_named_by_the_extra() -> None:
    from importlib.util import find_spec

    from lexent.corpus.formats import FORMATS

    assert all(not one.package or find_spec(one.package) for one in FORMATS)
    with pytest.raises(MissingExtraError, match=r'pip install "lexent\[files\]"'):
        raise MissingExtraError("pypdf", extra="files", purpose="reading a.pdf")


# --- the command line ------------------------------------------------------------------------------------------------


def test_the_command_line_reports_what_it_does_not_read(tmp_path: Path) -> None:
    furnished(tmp_path)
    mixed(tmp_path / "notes")
    place = tmp_path / "notes.lexent"
    made = good("index", tmp_path / "notes", "--out", place, *tiny(tmp_path))
    assert "not read 2 .png, 2 hidden, 1 .json, 1 .tar" in made.stderr
    (tmp_path / "notes" / "z.pdf").write_bytes(b"%PDF-1.4 damaged")
    (tmp_path / "notes" / "z.txt").write_bytes(b"caf\xe9")
    stopped = run("index", tmp_path / "notes", "--out", place, "--overwrite", *tiny(tmp_path))
    assert stopped.exit_code == 2
    assert "z.pdf: not a readable PDF file" in stopped.stderr
    command = ["index", tmp_path / "notes", "--out", place, "--overwrite", "--on-error", "skip", *tiny(tmp_path)]
    skipped = good(*command)
    assert "z.pdf: not a readable PDF file" in skipped.stderr
    assert "2 rows or files left out (damaged file 1, undecodable bytes 1)" in skipped.stderr
    quiet = program(*command, "--json", env={**os.environ, "LEXENT_PROGRESS": "0"})
    facts = json.loads(quiet.stdout)
    assert facts["skipped"] == {"damaged file": 1, "undecodable bytes": 1}
    assert facts["unread"] == UNREAD
    assert "z.txt, line 1, byte 4" in quiet.stderr, "what is left out is said even where hints are off"
    good("index", tmp_path / "notes" / "z.txt", "--out", place, "--overwrite", "--encoding", "cp1252", *tiny(tmp_path))
