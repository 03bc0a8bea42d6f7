"""Text on a terminal: control characters of documents must not command it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console, ConsoleRenderable

_KEPT = "\n\t"
_PICTURES = {code: 0x2400 + code for code in range(0x20) if chr(code) not in _KEPT}
_PICTURES |= {0x7F: 0x2421, **dict.fromkeys(range(0x80, 0xA0), 0xFFFD)}


def visible(text: str) -> str:
    """The text with a picture in the place of each control character, such as ␛ for that which begins a command."""
    return text.translate(_PICTURES)


def console(*, stderr: bool) -> Console:
    """A console that shows text as it is, without markup, and control characters as pictures."""
    from rich.console import Console, RenderHook
    from rich.text import Text

    class Pictures(RenderHook):
        def process_renderables(self, renderables: list[ConsoleRenderable]) -> list[ConsoleRenderable]:
            for one in renderables:
                if isinstance(one, Text) and one.plain != visible(one.plain):
                    one.plain = visible(one.plain)
            return renderables

    found = Console(stderr=stderr, highlight=False, markup=False, emoji=False, soft_wrap=True)
    found.push_render_hook(Pictures())
    return found
