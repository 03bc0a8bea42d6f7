"""What the adapters for frameworks share: they are optional, and say what is missing."""

from __future__ import annotations

import subprocess
import sys

import pytest

PACKAGES = {"langchain": "langchain_core", "llama_index": "llama_index", "haystack": "haystack", "mcp": "mcp"}


def python(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_nothing_else_imports_the_frameworks() -> None:
    code = "import lexent, lexent.cli, lexent.engine, lexent.integrations.retrieval, sys"
    assert python(f"{code}; print([name for name in {list(PACKAGES.values())} if name in sys.modules])") == "[]"


@pytest.mark.parametrize("module", PACKAGES)
def test_a_missing_package_is_named_with_its_extra(module: str) -> None:
    extra = module.replace("_", "-")
    told = python(
        f"import sys\nsys.modules['{PACKAGES[module]}'] = None\nfrom lexent.errors import MissingExtraError\n"
        f"try:\n    import lexent.integrations.{module}\nexcept MissingExtraError as error:\n    print(error)"
    )
    assert f'pip install "lexent[{extra}]"' in told
