# Two commands do everything: `make demo` and `make test`. Both install what is missing first.
.DEFAULT_GOAL := all
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DELETE_ON_ERROR:

PYTHON ?= python3
JOBS   ?= $(shell nproc)
VENV   := .venv
BUILD  := build
BIN    := $(VENV)/bin
CMAKE_FLAGS ?=
# Installs perflab from this folder with these extras. pip leaves a path and an import hook; the hook would come before
# PYTHONPATH, and the path is enough.
comma := ,
define install-editable
@$(BIN)/pip install --quiet --disable-pip-version-check --editable '.$(1)'
@sed -i '/^import /d' $(VENV)/lib/python3*/site-packages/_editable_skbc_perflab.pth
endef

.PHONY: all bytecode demo wheel plugins manipulation test test-all test-ros2 test-native test-python lint test-sanitizers fuzz docs benchmarks claims clean dependencies

all: bytecode native ## Installs what is missing and builds perflab into .venv

dependencies:
	@scripts/install-dependencies

$(VENV)/.perflab: pyproject.toml | dependencies
	@echo "Installing perflab's Python packages into $(VENV)"
	@scripts/make-venv $(PYTHON) $(VENV)
	$(call install-editable,)
	@touch $@

$(VENV)/.test: pyproject.toml | $(VENV)/.perflab
	$(call install-editable,[test$(comma)docs$(comma)manipulation])
	@touch $@

$(VENV)/.manipulation: pyproject.toml | $(VENV)/.perflab
	$(call install-editable,[manipulation])
	@touch $@

$(VENV)/.docs: pyproject.toml | $(VENV)/.perflab
	$(call install-editable,[docs])
	@touch $@

# Where Python may not write it (PYTHONDONTWRITEBYTECODE, a folder of another user) each start would compile all anew,
# which takes `perflab list` half as long again. Of what has not changed this takes 0.1 s.
bytecode: | $(VENV)/.perflab
	@$(BIN)/python -m compileall -q perflab

.PHONY: native
native: | dependencies $(VENV)/.perflab
	@cmake -S . -B $(BUILD) -G Ninja -DPERFLAB_TESTS=OFF -DPERFLAB_ROS2=AUTO -DPERFLAB_MANIPULATION=AUTO -DCMAKE_UNITY_BUILD=OFF -DCMAKE_INSTALL_PREFIX=$(CURDIR)/$(VENV) --log-level=NOTICE $(CMAKE_FLAGS) > /dev/null
	@cmake --build $(BUILD) --parallel $(JOBS)
	@cmake --install $(BUILD) --prefix $(CURDIR)/$(VENV) > /dev/null

plugins: all ## The middlewares in Rust, zenoh and iceoryx2; takes a few minutes, once
	@JOBS=$(JOBS) scripts/plugins $(VENV)

manipulation: $(VENV)/.manipulation ## The robot arm: physics, controller and planner
	@scripts/install-dependencies --manipulation
	@$(MAKE) --no-print-directory all CMAKE_FLAGS='-DPERFLAB_MANIPULATION=ON $(CMAKE_FLAGS)'

demo: all ## A small experiment: a robot of ten nodes on each DDS, at rest, under load, flooded, on one CPU
	@scripts/demo $(BIN)

# The packages of Python that perflab needs come with the wheel's installation.
wheel: dependencies ## A wheel with the native programs in it, for this distribution, in dist/
	@scripts/make-venv $(PYTHON) $(VENV)
	@$(BIN)/pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir dist .
	@ls dist/*.whl

# From the start with the flags of scripts/test, or everything would be compiled twice; pip works while the compiler does.
.PHONY: test-parts
test-parts:
	@$(MAKE) --no-print-directory --jobs=2 all $(VENV)/.test CMAKE_FLAGS='$(shell scripts/test --flags) $(CMAKE_FLAGS)'

test: test-parts ## The check: builds, and runs all tests but the long ones
	@scripts/install-dependencies --test
	@scripts/test

test-all: test-parts ## Everything: also the long tests, the sanitizers, fuzzing, and ROS 2 where it is sourced
	@scripts/install-dependencies --test-all
	@JOBS=$(JOBS) scripts/plugins $(VENV)
	@scripts/test --all

test-ros2: ## The tests on ROS 2 itself, in a shell in which it is sourced
	@scripts/test-ros2 --check
	@$(MAKE) --no-print-directory all $(VENV)/.test
	@scripts/install-dependencies --test
	@scripts/test-ros2

test-sanitizers: all ## The native tests under address+undefined and under thread sanitizers
	@scripts/test-sanitizers

fuzz: all ## Fuzzes the parsers of graphs and traces for SECONDS_PER_TARGET (default 300) each
	@scripts/install-dependencies --test-all
	@scripts/fuzz $${SECONDS_PER_TARGET:-300}

docs: all $(VENV)/.docs ## The documentation as a site, in build/site; links are checked
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet
	@echo build/site/index.html

benchmarks: all $(VENV)/.test ## Measures side by side with peers and limits; takes some minutes
	@scripts/install-dependencies --benchmarks
	@scripts/benchmarks

claims: all ## Tests the claims of docs/claims that have no verdict yet: an hour without the arm's, two with. ONLY='NAME ...', FRESH=1
	@$(BIN)/python benchmarks/claims.py $(ONLY) $(if $(FRESH),--fresh)

clean: ## Removes what was built; runs stay
	@rm -rf build build-* dist $(VENV)
