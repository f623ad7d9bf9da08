# Everything starts here; `make help` lists what there is. Each target installs what it needs into virtual environments
# in the checkout, and does only what its inputs' changes ask for.

PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
SCALE ?= 1
# Tests wait for servers more than they compute; each worker has servers of its own.
WORKERS ?= 3
FUZZ_SECONDS ?= 60
# What the wheel is built by; `ci` builds in half the time.
PROFILE ?= release
VENV := .venv
OLDEST := .venv-oldest
# Other Pythons, from pyenv or the path.
PYTHONS := .venv-3.12 .venv-3.13
interpreter = $(if $(filter $(@D),$(PYTHONS)),$(call found,$(@D:.venv-%=%)),$(PYTHON))
found = $(shell for p in $(or $(PYENV_ROOT),$(HOME)/.pyenv)/versions/$(1).*/bin/python python$(1); do \
	$$p -c '' 2>/dev/null && echo $$p && break; done)
DRIVER := python/longshore/$(if $(filter Darwin,$(shell uname)),liblongshore_adbc.dylib,liblongshore_adbc.so)
SOURCES := $(shell find .cargo crates python Cargo.toml Cargo.lock pyproject.toml -type f ! -name '*.pyc' ! -name '*longshore_adbc.*' 2>/dev/null)
# Where cargo builds: a shell's words, within quotes.
target = $$(cargo metadata --format-version 1 --no-deps | $(PYTHON) -c 'import json, sys; print(json.load(sys.stdin)["target_directory"])')
INSTALL = $(VENV)/bin/uv pip install --quiet --python $(@D)/bin/python
PYTEST := -m pytest $(PYTEST_OPTIONS)
# A process that crashes fails its test, and is not begun again: the rest of its tests would be waited for without an end.
SPREAD = --numprocesses=$(WORKERS) --dist=loadfile --max-worker-restart=0 --durations=15

# One interpreter for every build, or pyo3 would be built anew for each.
export PYO3_PYTHON := $(CURDIR)/$(VENV)/bin/python
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help adbc demo test test-rust test-python test-oldest test-pythons test-all record doctest lint bench tds-server fuzz miri docs clean tools

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):[^#]*## (.*)/\1\t\2/' | expand -t 14

demo: $(VENV)/.longshore ## read TPC-H's lineitem out of a private PostgreSQL and out of SQLite into pandas; SCALE=1 is 6 million rows
	@$(VENV)/bin/python -m benches.demo $(SCALE)

test: test-rust doctest test-python ## run all tests, on the newest packages; CI repeats what depends on older ones, on other Pythons and on an older server

# Not --release: overflow checks and debug assertions are worth a second build. longshore-py cannot be linked by itself.
# Its driver is the wheel's where that is newer than all it is made of; else cargo's own, which is built in no time.
test-rust: $(VENV)/.group-dev
	@test -e $(DRIVER) && test -z "$$(find $(SOURCES) -newer $(DRIVER))" || cargo build --quiet --package longshore-adbc
	cargo test --workspace --exclude longshore-py --quiet

# The documentation's examples run among the tests, whose servers they share.
test-python: $(VENV)/.longshore $(VENV)/bin/tds-server
	$(VENV)/bin/python $(PYTEST) $(SPREAD) --doctest-glob='*.md' tests docs

# What depends on the packages' versions; the core is the same.
test-oldest: $(OLDEST)/.longshore
	$(OLDEST)/bin/python $(PYTEST) $(SPREAD) -m "packages and not once" tests

# What depends on Python's and NumPy's own objects, on the Pythons that there are; CI has them all.
test-pythons: $(foreach venv,$(PYTHONS),$(if $(or $(CI),$(call found,$(venv:.venv-%=%))),test-python-$(venv:.venv-%=%)))

test-python-3.%: .venv-3.%/.longshore
	$(<D)/bin/python $(PYTEST) $(SPREAD) -m "pythons and not once" tests

test-all: $(VENV)/.longshore $(VENV)/bin/tds-server ## run the long run: all cases, cuts at every byte, two hundred limits of memory; and PostgreSQL 16
	LONGSHORE_TEST_ALL=1 $(VENV)/bin/python $(PYTEST) $(SPREAD) tests
	LONGSHORE_TEST_ALL=1 LONGSHORE_POSTGRESQL_VERSION=16 $(VENV)/bin/python $(PYTEST) $(SPREAD) -m "server and not once" tests

record: $(VENV)/.longshore ## record the conversations with servers that the Rust tests play again, for new versions of the servers
	$(VENV)/bin/python -m tests.record

# The fixtures come as a plugin, for a conftest is for what lies below it, and the modules are the installed ones.
doctest: $(VENV)/.longshore
	$(VENV)/bin/python $(PYTEST) --noconftest -p tests.fixtures --doctest-modules --pyargs longshore

lint: $(VENV)/.longshore ## check format, lints, types, stubs and words
	@cargo fmt --version >/dev/null 2>&1 && cargo clippy --version >/dev/null 2>&1 || \
		{ echo "cargo fmt or clippy is missing: rustup component add rustfmt clippy" >&2; exit 1; }
	cargo fmt --all --check
	cargo clippy --workspace --all-targets -- -D warnings
	$(VENV)/bin/ruff check
	$(VENV)/bin/ruff format --check
	MYPYPATH=python $(VENV)/bin/mypy --strict -p longshore -p tests -p benches
	cd $(VENV) && bin/python -m mypy.stubtest longshore._core --mypy-config-file $(CURDIR)/tests/stubtest.ini
	$(VENV)/bin/python -m tests.words
	$(VENV)/bin/python -m tests.imports

bench: $(VENV)/.longshore $(VENV)/.group-bench ## measure reading and SQL beside their peers
	$(VENV)/bin/python -m benches.read
	$(VENV)/bin/python -m benches.read --source mariadb
	$(VENV)/bin/python -m benches.read --source sqlite
	$(VENV)/bin/python -m benches.parallel
	$(VENV)/bin/python -m benches.sql

fuzz: $(VENV)/bin/cargo-fuzz ## fuzz each wire decoder for FUZZ_SECONDS (60)
	@set -e; for target in $$($(VENV)/bin/cargo-fuzz fuzz list); do \
		echo "fuzzing $$target"; \
		RUSTC_BOOTSTRAP=1 $(VENV)/bin/cargo-fuzz fuzz run $$target -- -max_total_time=$(FUZZ_SECONDS); done

miri: ## run the tests of memory that Python writes too, that the engine made, or whose texts were bytes, under Miri, which finds undefined behaviour
	cargo +nightly miri test -p longshore-core --lib memory::shared
	cargo +nightly miri test -p longshore-interpreter --lib stream
	cargo +nightly miri test -p longshore-flight --lib texts

docs: $(VENV)/.longshore $(VENV)/.group-docs ## build the documentation into site/
	$(VENV)/bin/mkdocs build --strict

clean: ## remove what was built; downloads and loaded tables stay in the cache
	rm -rf $(VENV) $(OLDEST) $(PYTHONS) dist site
	cargo clean

tools:
	@test -n "$(PYTHON)" || { echo "no Python 3.11 or newer: apt install python3, or set PYTHON" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip' 2>/dev/null || { echo "Python has no venv: apt install python3-venv" >&2; exit 1; }
	@command -v cargo >/dev/null || { echo "no cargo: install Rust from https://rustup.rs" >&2; exit 1; }
	@command -v cc >/dev/null || { echo "no C compiler: apt install build-essential" >&2; exit 1; }

# uv fills an environment in a tenth of the time that pip takes; the others need no pip of their own.
$(VENV)/.empty: | tools
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/pip install --quiet 'uv>=0.8'
	@touch $@

$(OLDEST)/.empty $(PYTHONS:%=%/.empty): | $(VENV)/.empty
	@test -n "$(interpreter)" || { echo "no Python for $(@D): install it with pyenv" >&2; exit 1; }
	$(interpreter) -m venv --without-pip $(@D)
	@touch $@

# A stamp in an environment says which group of pyproject.toml it holds.
$(VENV)/.group-%: $(VENV)/.empty pyproject.toml
	$(INSTALL) --group $*
	@touch $@

$(OLDEST)/.group-test: $(OLDEST)/.empty pyproject.toml tests/oldest.txt
	$(INSTALL) --group test --constraint tests/oldest.txt
	@touch $@

$(PYTHONS:%=%/.group-test): %/.group-test: %/.empty pyproject.toml
	$(INSTALL) --group test
	@touch $@

adbc: $(DRIVER) ## build the ADBC driver, a library without Python, into python/longshore

# A release has a profile for it, and flags for its size: what is called from another crate is rarely copied there. Where the linker is
# LLVM's, functions that came out alike are one, and the addresses that are set when it is loaded are packed, which takes glibc 2.36.
# In other profiles all that it is made of would be built again.
driver_profile = $(if $(filter release,$(PROFILE)),driver,$(PROFILE))
driver_flags = $(if $(filter release,$(PROFILE)),$(SMALL) $(if $(filter Linux-x86_64,$(shell uname -sm | tr ' ' -)),$(FOLDED)))
SMALL := -C llvm-args=-inline-threshold=10 -C llvm-args=-inlinehint-threshold=25
FOLDED := -C link-arg=-Wl,--icf=all,-O2,-z,pack-relative-relocs
# The most bytes of a release's, in MB of 1,000,000 bytes. It is looked at before the library is in its place.
driver_size = $(if $(filter release-Linux-x86_64,$(PROFILE)-$(shell uname -sm | tr ' ' -)),15)
$(DRIVER): $(SOURCES) | tools
	cargo rustc --quiet --profile $(driver_profile) --package longshore-adbc -- -C strip=symbols $(driver_flags)
	@size=$$(wc -c < "$(target)/$(driver_profile)/$(@F)"); if [ -n "$(driver_size)" ] && [ $$size -gt $(driver_size)000000 ]; then \
		echo "the ADBC driver has $$size bytes, and may have $(driver_size) MB: docs/design/dbapi-results.md says what weighs most" >&2; exit 1; fi
	@cp "$(target)/$(driver_profile)/$(@F)" $@

tds-server: $(VENV)/bin/tds-server ## build the server that speaks TDS to the tests

# As a part of the Rust tests: by itself, all that it is made of would be built once more, with other features.
$(VENV)/bin/tds-server: $(shell find tests/servers/tds -type f) Cargo.lock | $(VENV)/.empty
	cargo test --quiet --workspace --exclude longshore-py --no-run
	@cp "$(target)/debug/$(@F)" $@

# One wheel (abi3) for every environment.
dist/.built: $(VENV)/.group-dev $(SOURCES) $(DRIVER)
	@rm -rf dist
	$(VENV)/bin/maturin build --profile $(PROFILE) --compatibility linux --interpreter $(PYO3_PYTHON) --out dist
	@touch $@

$(VENV)/.longshore: dist/.built $(VENV)/.group-dev
$(OLDEST)/.longshore: dist/.built $(OLDEST)/.group-test
$(PYTHONS:%=%/.longshore): %/.longshore: dist/.built %/.group-test
%/.longshore:
	$(INSTALL) --no-deps --reinstall dist/*.whl
	@touch $@

$(VENV)/bin/cargo-fuzz: | $(VENV)/.empty
	cargo install --quiet --locked --root $(VENV) cargo-fuzz
