# Every check has one definition, here. `make help` lists them.
# A fresh machine needs Rust, Python 3.11 or newer and a C compiler; the rest is installed into .venv.

PYTHON ?= $(shell for python in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$python && break; done)
BIN := .venv/bin
# Tables that Rust includes count as sources too.
SOURCES := $(shell find rust/core/src rust/binding/src -name '*.rs' -o -name '*.bin') $(wildcard rust/*/Cargo.toml) Cargo.toml Cargo.lock pyproject.toml
# What is fuzzed, and for how long.
TARGET := encode
SECONDS := 600

.DEFAULT_GOAL := help
.PHONY: help setup run test test-python test-rust docs-test architecture lint format-check clippy rustdoc ruff mypy stubtest \
	spelling format check docs docs-cli bench fuzz clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

setup: .venv/built .venv/tools ## make .venv, build and install the package, and what tests and linters need

# What the package itself needs: what tests and linters need takes several times the space.
.venv/pip: pyproject.toml
	@test -n "$(PYTHON)" || { echo "bytepair needs Python 3.11 or newer; set PYTHON=/path/to/python3"; exit 1; }
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check 'maturin>=1.9,<2'
	$(BIN)/python -m pip install --quiet --disable-pip-version-check $$($(BIN)/python -c "import tomllib; print(*tomllib.load(open('pyproject.toml', 'rb'))['project']['dependencies'])")
	@touch $@

.venv/tools: .venv/pip | .venv/built
	$(BIN)/python -m pip install --quiet --disable-pip-version-check $$($(BIN)/python -c "import tomllib; print(*tomllib.load(open('pyproject.toml', 'rb'))['project']['optional-dependencies']['test'])")
	@touch $@

.venv/built: .venv/pip $(SOURCES)
	VIRTUAL_ENV=$(CURDIR)/.venv PIP_QUIET=1 $(BIN)/maturin develop --release --quiet
	@touch $@

run: .venv/built ## the main job: train on the sample text, save, show
	$(BIN)/bytepair train

test: test-rust test-python ## all tests

test-rust: ## the tests of the Rust core, with its doc examples
	cargo test --locked --quiet -p bytepair
	cargo test --locked --quiet -p bytepair --no-default-features --doc

test-python: setup ## the tests of the Python package, with the examples of its documentation
	$(BIN)/python -m pytest

docs-test: setup ## the examples of the documentation and of docstrings, alone
	cargo test --locked --quiet -p bytepair --doc
	$(BIN)/python -m pytest tests/test_docs.py

architecture: setup ## the rules of the house that no other tool checks, alone
	$(BIN)/python -m pytest tests/test_architecture.py

lint: format-check clippy rustdoc ruff mypy stubtest spelling ## all linters

format-check: ## is the Rust code formatted?
	cargo fmt --all --check

clippy: ## clippy with the lint table of Cargo.toml; warnings are errors
	cargo clippy --locked --quiet --workspace --all-targets -- -D warnings
	cargo clippy --locked --quiet -p bytepair --all-targets --no-default-features -- -D warnings

rustdoc: ## does the documentation of the Rust crate build without warnings?
	RUSTDOCFLAGS="-D warnings" cargo doc --locked --quiet --no-deps -p bytepair

ruff: setup ## is the Python code formatted and clean?
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

mypy: setup ## the types of the Python code
	$(BIN)/mypy
	$(BIN)/mypy benchmarks

stubtest: setup ## does the stub of the Rust module say what the module is?
	$(BIN)/python -m mypy.stubtest bytepair._core --allowlist tests/stubtest-allowlist.txt

spelling: setup ## misspelt words
	git ls-files -z | xargs -0 $(BIN)/codespell

format: setup ## format all code
	cargo fmt --all
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

docs-cli: setup ## write docs/cli.md from --help
	$(BIN)/python tests/test_docs.py > docs/cli.md

docs: setup ## build the documentation as a site, in site/
	$(BIN)/python -m pip install --quiet --disable-pip-version-check $$($(BIN)/python -c "import tomllib; print(*tomllib.load(open('pyproject.toml', 'rb'))['project']['optional-dependencies']['docs'])")
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --quiet

bench: setup ## compare with the peers that are installed; see benchmarks/README.md
	$(BIN)/python benchmarks/train.py
	$(BIN)/python benchmarks/encode.py
	$(BIN)/python benchmarks/load.py

check: lint test ## what CI runs

fuzz: ## fuzz one target for a while: make fuzz TARGET=encode SECONDS=600; or file, json
	mkdir -p rust/fuzz/corpus/$(TARGET)
	cargo fuzz run --fuzz-dir rust/fuzz --sanitizer none $(TARGET) rust/fuzz/corpus/$(TARGET) \
		$(wildcard rust/fuzz/seeds/$(TARGET)) -- -max_total_time=$(SECONDS) -max_len=4096 -len_control=0

clean: ## remove what was built
	rm -rf .venv target site
