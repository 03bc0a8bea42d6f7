"""What tests share: the evaluation collections, one loaded encoder, a cache folder of their own."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

os.environ["HF_HUB_OFFLINE"] = "1"  # before any library reads it: no test may need a download
# The kernels are under test, at once and not when they are ready; test_start.py compares them with NumPy.
os.environ.setdefault("LEXENT_KERNELS", "compiled")
os.environ["HAYSTACK_TELEMETRY_ENABLED"] = "False"  # read when that library is imported

import living
from lexent.encoders import Encoder
from lexent.models import load_encoder


@pytest.fixture(autouse=True, scope="session")
def cache_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """No test reads or fills the user's own cache."""
    folder = tmp_path_factory.mktemp("cache")
    before = os.environ.get("LEXENT_CACHE")
    os.environ["LEXENT_CACHE"] = str(folder)
    yield folder
    if before is None:
        del os.environ["LEXENT_CACHE"]
    else:
        os.environ["LEXENT_CACHE"] = before


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The evaluation collections: LEXENT_DATA, or ../shared/data beside the repository."""
    given = os.environ.get("LEXENT_DATA")
    folder = Path(given) if given else Path(__file__).parents[2] / "shared" / "data"
    if not folder.is_dir():
        pytest.skip(f"no evaluation collections at {folder}; name their folder: LEXENT_DATA=FOLDER")
    return folder


@pytest.fixture(scope="session")
def shared_encoder() -> Encoder:
    """The embedded default encoder, loaded once."""
    return load_encoder()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> living.Server:
    """A process that runs tasks of a test module in children, which may be killed."""
    return living.shared_server(tmp_path_factory.mktemp("children"))
