"""The mutants of the fast paths can still be made: `make mutants` runs them."""

from __future__ import annotations

import pytest

from mutants import MUTANTS, ROOT, Mutant


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_the_line_that_a_mutant_breaks_is_there(mutant: Mutant) -> None:
    assert mutant.old != mutant.new
    assert mutant.old in (ROOT / "src" / "lexent" / mutant.file).read_text()
    assert all((ROOT / test).is_file() for test in mutant.tests)
