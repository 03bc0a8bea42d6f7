"""lexent retune: other settings for an index, without encoding anything again."""

from __future__ import annotations

from typing import Annotated

from lexent.cli import options
from lexent.cli.console import command, say_next, show, show_json
from lexent.cli.option_groups import Settings, with_option_groups


@with_option_groups
def retune(
    *,
    path: options.IndexPath,
    settings: Annotated[Settings, options.RETUNABLE],
    json: options.Json = False,
) -> None:
    """Change how an index weighs, without encoding its documents again.

    Scores then equal those of an index that was built with these settings.
    """
    from lexent.engine import Index
    from lexent.errors import InputError

    if not settings:
        raise InputError(f"nothing to change; give a setting, for example: lexent retune {path} --k1 3 --b 0.4")
    with Index.open(path) as index:
        index.retune(**settings)
        facts = index.info()
    if json:
        show_json(facts)
        return
    changed = ", ".join(f"{name} {value}" for name, value in settings.items())
    show(f"retuned  {path}: {changed}")
    say_next(command("lexent", "search", path, "your question"))
