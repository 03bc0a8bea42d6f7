"""Hooks of `mkdocs build`: add pages from outside docs/, add the generated reference, and adapt links.

The pages under docs/ are also read as files of the repository, so they link to files by their place in it. Here these
links become links to pages of the site.
"""

from __future__ import annotations

import os
import posixpath
import re
from pathlib import Path
from typing import Any

import cli_reference
import http_reference
import python_reference
from mkdocs.structure.files import File

ROOT = Path(__file__).parents[2]
CARDS = "src/lexent/lexicon/shipped"
GENERATED = {
    "reference/cli.md": cli_reference.page,
    "reference/http.md": http_reference.page,
    "reference/python.md": python_reference.page,
}
_COMMENT = re.compile(r"^<!--.*-->$", re.MULTILINE)
_LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)")


def _sources() -> dict[str, str]:
    """Pages that are not under docs/, by their place in the repository: the place that each has on the site."""
    places = {name: name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "RELEASING.md")}
    for card in sorted((ROOT / CARDS).glob("*/README.md")):
        places[f"{CARDS}/{card.parent.name}/README.md"] = f"lexicons/{card.parent.name}.md"
    return places


SOURCES = _sources()
PLACES = {site: source for source, site in SOURCES.items()}


def on_files(files: Any, config: Any) -> Any:
    """Add the pages that are not under docs/. README.md is the first page, so docs/index.md goes elsewhere."""
    on_disk = files.get_file_from_path("index.md")
    files.remove(on_disk)
    place = {"src_dir": config.docs_dir, "dest_dir": config.site_dir, "use_directory_urls": config.use_directory_urls}
    files.append(File("index.md", **place, dest_uri="index-on-disk/index.html"))
    for source, site in SOURCES.items():
        files.append(File.generated(config, site, content=(ROOT / source).read_text(encoding="utf-8")))
    for site, make in GENERATED.items():
        files.append(File.generated(config, site, content=make()))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Turn links to files of the repository into links to pages; remove the marks between which programs write."""
    site = page.file.src_uri
    if site in GENERATED:
        return markdown
    source = PLACES.get(site, f"docs/{site}")
    blocks = re.split(r"(^```.*?^```$)", markdown, flags=re.MULTILINE | re.DOTALL)
    for number in range(0, len(blocks), 2):
        text = _COMMENT.sub("", blocks[number])
        blocks[number] = _LINK.sub(lambda link: _linked(link, source, site), text)
    return "".join(blocks)


def _linked(link: re.Match[str], source: str, site: str) -> str:
    image, text, target = link.groups()
    path, anchor, fragment = target.partition("#")
    if not path or "://" in target or target.startswith("mailto:"):
        return link.group()
    wanted = posixpath.normpath(posixpath.join(posixpath.dirname(source), path))
    if wanted in SOURCES:
        place = SOURCES[wanted]
    elif wanted.startswith("docs/"):
        place = wanted.removeprefix("docs/")
    elif (ROOT / wanted).exists():
        return text  # a file that the site does not have
    else:
        return link.group()  # mkdocs says that it leads nowhere
    return f"{image}[{text}]({os.path.relpath(place, posixpath.dirname(site) or '.')}{anchor}{fragment})"
