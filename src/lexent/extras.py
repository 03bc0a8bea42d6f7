"""Optional packages: whether they are installed, and what to type where they are not."""

from __future__ import annotations

from importlib.util import find_spec

from lexent.errors import MissingExtraError

OF_TRAIN = ("torch", "sentence_transformers", "transformers", "scipy")
"""What the extra `train` brings that other code of Lexent may meet."""


def is_installed(*packages: str) -> bool:
    """Whether all of these packages can be imported; none of them is."""
    try:
        return all(find_spec(name) is not None for name in packages)
    except (ImportError, ValueError):
        return False


def require_torch(purpose: str) -> None:
    """Refuse what needs torch where it is not installed."""
    if not is_installed("torch", "sentence_transformers"):
        raise MissingExtraError("torch", extra="train", purpose=purpose)
