"""The images of docs/serve.md, taken of a running server of two indexes of Python's own documentation.

    from lexent.demo.docstrings import collect
    entries = collect()
    some = [one for one in entries if any(word in one.content.lower() for word in ("compress", "archive", "zip"))]
    lexent.index(entries, out="python.lexent", extras=["dense", "lexical"])
    lexent.index(some, out="tokens.lexent", recipe="ssr")

    lexent serve python.lexent tokens.lexent
    python docs/_site/screenshots.py http://127.0.0.1:7777

Needs Playwright and Chromium, as the tests of the page do (tests/browser.py).
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

IMAGES = Path(__file__).parents[1] / "images"
sys.path.insert(0, str(IMAGES.parents[1] / "tests"))

from browser import Tab, browsing  # noqa: E402

QUERY = "read a compressed file"
STEERED_QUERY, STEERED = "delete a folder", "directory"
"""A query, and the first word of its group that is turned up."""
WIDE, LOW = {"width": 1180, "height": 860}, {"width": 1180, "height": 700}
PHONE = {"width": 390, "height": 844}


def rested(page: Any) -> None:
    """Waits until nothing more is asked for, or moves."""
    page.wait_for_load_state("networkidle")
    page.wait_for_timeout(500)


def opened(page: Any) -> None:
    """The first hit with its first line."""
    card = page.locator(".hit").first
    card.locator(".why-hit > summary").click()
    card.locator(".line summary").first.click()
    card.locator(".pairs li").first.wait_for()
    page.mouse.move(0, 0)


def steered(page: Any) -> None:
    """A group turned up to four times."""
    page.get_by_role("slider", name=f"How much {STEERED}").first.press("End")
    rested(page)
    page.evaluate("document.activeElement.blur()")


def one_token(page: Any) -> None:
    """A token of the query, and what it found."""
    page.locator(".align-box button").nth(3).hover()


def fourth(page: Any) -> None:
    """The page of the fourth hit, with what keeps it from ranking higher."""
    page.locator(".hit .title").nth(3).click()
    page.wait_for_selector(".differences")


def strongest(page: Any) -> None:
    """The page of the strongest concept of the first hit."""
    opened(page)
    page.locator(".hit .members a").first.click()
    page.wait_for_selector(".quantile")


SEARCH = f"/search?q={QUERY}"
SHOTS: dict[str, tuple[str, str, dict[str, Any], Callable[[Any], None] | None]] = {
    "search": (SEARCH, ".hit mark", {"viewport": WIDE}, opened),
    "steered": (
        f"/search?q={STEERED_QUERY}",
        ".hit mark",
        {"viewport": LOW, "color_scheme": "dark"},
        steered,
    ),
    "compare": (f"/compare?q={QUERY}", ".ranking li", {"viewport": WIDE}, None),
    "concept": (SEARCH, ".hit mark", {"viewport": WIDE}, strongest),
    "document": (SEARCH, ".hit mark", {"viewport": WIDE}, fourth),
    "lexicon": ("/lexicon", ".table tbody tr", {"viewport": WIDE}, None),
    "tokens": (f"{SEARCH}&index=tokens", ".align-box button", {"viewport": LOW}, one_token),
    "phone": (SEARCH, ".hit mark", {"viewport": PHONE, "has_touch": True}, None),
}


def main(base: str, names: list[str]) -> None:
    """Takes all images, or those that are named."""
    with browsing() as browser:
        for name in names or list(SHOTS):
            path, selector, settings, act = SHOTS[name]
            tab = Tab(browser, base, **settings)
            page = tab.open(path)
            page.wait_for_selector(selector)
            rested(page)
            if act is not None:
                act(page)
                rested(page)
            page.screenshot(path=IMAGES / f"serve-{name}.png")
            assert not tab.errors, tab.errors
            tab.close()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
