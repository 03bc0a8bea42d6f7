"""Processes that fork while their threads search: every child answers."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import forking
import small

SLOW = ("spawn", "forkserver")
"""They load all anew."""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.parametrize("method", ["fork", *(pytest.param(one, marks=pytest.mark.slow) for one in SLOW)])
@pytest.mark.parametrize("engine", ["light", "torch"])
def test_a_child_answers_while_threads_of_its_parent_search(tmp_path: Path, engine: str, method: str) -> None:
    if engine == "torch":
        pytest.importorskip("sentence_transformers")
    command = [sys.executable, forking.__file__, str(tmp_path), method]
    done = subprocess.run(
        command, env=os.environ | {"LEXENT_ENGINE": engine}, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, (done.stdout, done.stderr[-3000:])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_child_has_no_lock_that_a_thread_of_its_parent_holds(tmp_path: Path) -> None:
    with small.build(tmp_path / "a") as index:
        index.search("night")
        searcher = index.searcher
        locks = [searcher._coded_queries._lock, searcher._making, searcher._strengths._making, index._models._loading]
        held, done = threading.Event(), threading.Event()

        def hold() -> None:
            for lock in [*locks, index._refreshing]:
                lock.acquire()
            held.set()
            done.wait()
            for lock in [*locks, index._refreshing]:
                lock.release()

        thread = threading.Thread(target=hold)
        thread.start()
        held.wait()
        child = os.fork()
        if not child:
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.alarm(10)  # which ends a child that hangs
            found = index.search("yeast dough", filter={"n": {"gte": 0}})
            os._exit(0 if found and found[0].strength and not index.refresh() else 1)
        done.set()
        thread.join()
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
