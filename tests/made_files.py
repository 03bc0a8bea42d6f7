"""Small files of many formats, made when a test needs them."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Sequence
from pathlib import Path

CONTAINER = """<?xml version="1.0"?>
<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container">
<rootfiles><rootfile full-path="OEBPS/book.opf"/></rootfiles></container>"""
PACKAGE = """<?xml version="1.0"?>
<package xmlns="http://www.idpf.org/2007/opf">
<metadata xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>The Book of Bread</dc:title></metadata>
<manifest>
<item id="two" href="text/two.xhtml" media-type="application/xhtml+xml"/>
<item id="one" href="text/chapter%20one.xhtml" media-type="application/xhtml+xml"/>
<item id="picture" href="p.png" media-type="image/png"/>
</manifest>
<spine><itemref idref="one"/><itemref idref="two"/></spine></package>"""
CHAPTER = """<?xml version="1.0" encoding="utf-8"?>
<html xmlns="http://www.w3.org/1999/xhtml"><head><title>x</title></head><body><h1>{title}</h1><p>{text}</p></body></html>
"""


def pdf(pages: Sequence[Sequence[str]], *, title: str = "") -> bytes:
    """A PDF with lines of text on pages."""
    objects: list[bytes] = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"",
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    kids = []
    for lines in pages:
        shown = " ".join(f"({line}) Tj 0 -14 Td" for line in lines)
        content = f"BT /F1 12 Tf 72 720 Td {shown} ET".encode("latin-1")
        objects.append(b"<< /Length %d >>\nstream\n%s\nendstream" % (len(content), content))
        number = len(objects)
        objects.append(
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Resources << /Font << /F1 3 0 R >> >> "
            b"/Contents %d 0 R >>" % number
        )
        kids.append(f"{number + 1} 0 R")
    objects[1] = f"<< /Type /Pages /Kids [{' '.join(kids)}] /Count {len(kids)} >>".encode()
    objects.append(f"<< /Title ({title}) >>".encode())
    out, places = io.BytesIO(b"%PDF-1.4\n"), []
    out.seek(0, io.SEEK_END)
    for number, body in enumerate(objects, 1):
        places.append(out.tell())
        out.write(b"%d 0 obj\n%s\nendobj\n" % (number, body))
    start = out.tell()
    out.write(b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1))
    out.write(b"".join(b"%010d 00000 n \n" % place for place in places))
    out.write(
        b"trailer\n<< /Size %d /Root 1 0 R /Info %d 0 R >>\nstartxref\n%d\n%%%%EOF\n"
        % (len(objects) + 1, len(objects), start)
    )
    return out.getvalue()


def epub(path: Path, *, encryption: str = "") -> Path:
    """A book of two chapters, the second of which comes first in the archive."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as book:
        book.writestr("mimetype", "application/epub+zip")
        book.writestr("META-INF/container.xml", CONTAINER)
        book.writestr("OEBPS/book.opf", PACKAGE)
        book.writestr("OEBPS/text/two.xhtml", CHAPTER.format(title="Baking", text="An oven &amp; a crust."))
        book.writestr("OEBPS/text/chapter one.xhtml", CHAPTER.format(title="Dough", text="Flour and yeast."))
        if encryption:
            book.writestr("META-INF/encryption.xml", encryption)
    return path


MESSAGE = b"""From: Ann Able <ann@example.org>
To: Bob <bob@example.org>, "Cee, Dee" <dee@example.org>
Subject: =?utf-8?q?Caf=C3=A9?= at noon
Date: Tue, 31 May 2022 10:00:00 +0200
Content-Type: text/plain; charset=iso-8859-1
Content-Transfer-Encoding: 8bit

Bread from the caf\xe9.
>From the oven, that is.
# 7 is the table.
"""
HTML_MESSAGE = b"""From: Ann <ann@example.org>
Subject: A page
Content-Type: multipart/mixed; boundary=B

--B
Content-Type: text/html; charset=utf-8

<h1>Stars</h1><p>A <b>telescope</b>.</p>
--B
Content-Type: text/plain
Content-Disposition: attachment; filename=notes.txt

not read
--B--
"""
