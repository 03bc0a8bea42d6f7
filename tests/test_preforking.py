"""gunicorn and Celery with workers that fork after a search, by the files of docs/how-to.md."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from time import monotonic, sleep

import httpx
import pytest

import forking
import lexent
from markdown import ROOT

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
QUERIES = 16
ENGINES = ["light", pytest.param("torch", marks=pytest.mark.slow)]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an index and the files of the page."""
    folder = tmp_path_factory.mktemp("preforking")
    documents = [{"id": str(number), "text": text} for number, text in enumerate(forking.TEXTS)]
    lexent.index(documents, out=folder / "papers.lexent").close()
    files = re.findall(r"```\n# (\w+\.py): (.*?)\n(.*?)```", (ROOT / "docs" / "how-to.md").read_text(), re.DOTALL)
    for name, _, text in files:
        (folder / name).write_text(text)
    assert [name for name, _, _ in files] == ["wsgi.py", "asgi.py", "tasks.py"]
    return folder


@contextmanager
def started(place: Path, *words: str, engine: str) -> Iterator[subprocess.Popen[bytes]]:
    """A program in that folder. All its processes end with the block."""
    environment = {**os.environ, "LEXENT_ENGINE": engine, "NO_COLOR": "1"}
    with (place / "output.txt").open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", *words],
            cwd=place,
            env=environment,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            yield process
            process.terminate()
            process.wait(timeout=30)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait(timeout=30)


@contextmanager
def gunicorn(place: Path, *words: str, engine: str) -> Iterator[httpx.Client]:
    """A client of gunicorn, whose workers write their process ids for each request into pids.txt."""
    with socket.socket() as made:
        made.bind(("127.0.0.1", 0))
        port = made.getsockname()[1]
    options = ["--bind", f"127.0.0.1:{port}", "--workers", "2", "--timeout", "60"]
    options += ["--access-logfile", "pids.txt", "--access-logformat", "%(p)s", "--worker-tmp-dir", str(place)]
    (place / "pids.txt").write_text("")
    with (
        started(place, "gunicorn", *options, *words, engine=engine) as process,
        httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60, headers={"Connection": "close"}) as client,
    ):
        end = monotonic() + 60
        while socket.socket().connect_ex(("127.0.0.1", port)):
            assert process.poll() is None, output(place)[-3000:]
            assert monotonic() < end
            sleep(0.05)
        yield client


def pids(place: Path) -> list[str]:
    return (place / "pids.txt").read_text().split()


def until_both_answered(workers: Callable[[], list[str]], ask: Callable[[int], str]) -> None:
    """Ask in rounds, as one worker may take all requests of the first. The answer is always document 0."""
    end = monotonic() + 60
    with ThreadPoolExecutor(8) as pool:
        for number in count(step=QUERIES):
            assert list(pool.map(ask, range(number, number + QUERIES))) == ["0"] * QUERIES
            if len(set(workers())) == 2:
                return
            assert monotonic() < end, "one of two workers took all requests"


@pytest.mark.parametrize("engine", ENGINES)
def test_workers_of_gunicorn_search_an_index_that_was_searched_before_they_forked(place: Path, engine: str) -> None:
    words = ["--preload", "--threads", "4", "wsgi:app"]
    with gunicorn(place, *words, engine=engine) as client:
        until_both_answered(
            lambda: pids(place),
            lambda number: client.get("/", params={"q": f"who baked loaf {number}"}).json()[0]["id"],
        )


@pytest.mark.parametrize("preload", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_workers_of_gunicorn_serve_the_api(place: Path, preload: bool) -> None:
    words = ["--worker-class", "asgi", *(["--preload"] if preload else []), "asgi:app"]
    with gunicorn(place, *words, engine="light") as client:

        def ask(number: int) -> str:
            query = {"query": f"who baked loaf {number}", "k": 1}
            end = monotonic() + 60
            while (reply := client.post("/v1/indexes/papers/search", json=query)).status_code == 503:
                assert monotonic() < end, "the models are not loaded"
                sleep(0.1)
            return str(reply.json()["hits"][0]["id"])

        until_both_answered(lambda: pids(place), ask)
        body = {"documents": [{"id": "new", "text": "a new comet"}], "upsert": True}
        assert client.post("/v1/indexes/papers/documents", json=body).status_code == 200


@pytest.mark.parametrize("engine", ENGINES)
def test_workers_of_celery_search_an_index_that_was_searched_before_they_forked(place: Path, engine: str) -> None:
    from celery import Celery

    folders = {name: place / engine / name for name in ("messages", "processed", "control", "results")}
    for folder in folders.values():
        folder.mkdir(parents=True)
    (place / "celeryconfig.py").write_text(
        "broker_url = 'filesystem://'\n"
        f"broker_transport_options = {{'data_folder_in': '{folders['messages']}', "
        f"'data_folder_out': '{folders['messages']}', 'processed_folder': '{folders['processed']}', "
        f"'control_folder': '{folders['control']}', 'polling_interval': 0.05}}\n"
        f"result_backend = 'file://{folders['results']}'\n"
    )
    client = Celery("tasks")
    client.config_from_object(vars_of(place / "celeryconfig.py"))
    words = ["--app", "tasks", "worker", "--concurrency", "2", "--loglevel", "INFO", "--prefetch-multiplier", "1"]
    words += ["--without-mingle", "--without-gossip", "--without-heartbeat"]
    with started(place, "celery", *words, engine=engine):

        def ask(number: int) -> str:
            asked = client.send_task("tasks.search", [f"who baked loaf {number}"])
            return str(asked.get(timeout=60, interval=0.05)[0])

        until_both_answered(lambda: re.findall(r"(ForkPoolWorker-\d+)\] Task \S+ succeeded", output(place)), ask)


def output(place: Path) -> str:
    return (place / "output.txt").read_text()


def vars_of(file: Path) -> dict[str, object]:
    found: dict[str, object] = {}
    exec(file.read_text(), found)
    return {name: value for name, value in found.items() if not name.startswith("_")}
