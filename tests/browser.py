"""A browser for tests of the page: Debian's Chromium, and a tab that notes every error and every request."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = Path("/usr/bin/chromium")
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--force-color-profile=srgb"]


@contextmanager
def browsing() -> Iterator[Any]:
    playwright = pytest.importorskip("playwright.sync_api", reason="no playwright: pip install playwright")
    if not CHROMIUM.exists():
        pytest.skip(f"no browser at {CHROMIUM}: apt install chromium")
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=str(CHROMIUM), args=FLAGS)
        yield browser
        browser.close()


class Tab:
    """A page with what went wrong in it, and where it went."""

    def __init__(self, browser: Any, base: str, **settings: Any) -> None:
        chosen: dict[str, Any] = {"viewport": {"width": 1200, "height": 900}, "reduced_motion": "reduce", **settings}
        self.base = base
        self.context = browser.new_context(**chosen)
        self.page = self.context.new_page()
        self.page.set_default_timeout(20_000)
        self.errors: list[str] = []
        self.requests: list[str] = []
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("console", lambda message: self.errors.append(message.text) if message.type == "error" else None)
        self.page.on("request", lambda request: self.requests.append(request.url))

    def open(self, path: str) -> Any:
        self.page.goto(self.base + path)
        return self.page

    def close(self) -> None:
        self.context.close()

    @property
    def outside(self) -> list[str]:
        """Requests that went anywhere else."""
        return [url for url in self.requests if not url.startswith(self.base)]
