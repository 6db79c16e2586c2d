# Everything a visitor or a contributor needs, with plain pip. `make` alone lists the targets.

PYTHON ?= python3
VENV   ?= .venv
UV     ?= uv

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo test test-all lint format typecheck bench requirements clean

RUNTIME := $(VENV)/.runtime-installed
DEV     := $(VENV)/.dev-installed

PIP_INSTALL := $(VENV)/bin/python -m pip install -qq --no-compile --no-input --disable-pip-version-check

help: ## List the targets.
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

demo: $(RUNTIME) ## Run both short experiments and write one report below runs/.
	@set -e; \
	mkdir -p runs; \
	dir="runs/demo-$$(date +%Y%m%d-%H%M%S)"; \
	mkdir "$$dir"; \
	$(VENV)/bin/paircredit reproduce umbrella --scale short --out "$$dir/umbrella"; \
	$(VENV)/bin/paircredit reproduce dag --scale short --out "$$dir/dag"; \
	$(VENV)/bin/paircredit report "$$dir" --out "$$dir/report.html"

test: lint typecheck ## Check style and types, then run the tests but for the nightly ones.
	$(VENV)/bin/python -m pytest -n 2 --dist loadfile -m "not nightly"

test-all: lint typecheck ## The same with the nightly tests: campaigns, long comparisons, all pages.
	PAIRCREDIT_PARITY_STEPS=10000 PAIRCREDIT_PARITY_EPISODES=50 $(VENV)/bin/python -m pytest -n 2 --dist loadfile

lint: $(DEV) ## Check style and formatting.
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .

format: $(DEV) ## Format the code and apply the safe style fixes.
	$(VENV)/bin/ruff check --fix .
	$(VENV)/bin/ruff format .

typecheck: $(DEV) ## Check the types.
	$(VENV)/bin/mypy

bench: $(RUNTIME) ## Time training (pass options with ARGS="...").
	$(VENV)/bin/python -m tools.benchmarks.reset_training $(ARGS)

clean: ## Remove the environment, caches and build outputs; runs/ stays.
	rm -rf build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find src tests tools -type d -name __pycache__ -prune -exec rm -rf {} + 2>/dev/null || true
	@if [ -f "$(VENV)/pyvenv.cfg" ]; then echo "rm -rf $(VENV)"; rm -rf "$(VENV)"; fi

# --- Environment -------------------------------------------------------------------------------------
# One environment serves all targets. A stamp file records each finished step, so that a second call
# installs nothing unless the pinned requirements or pyproject.toml changed.

$(VENV)/.created:
	@command -v "$(PYTHON)" >/dev/null || { \
		echo "No '$(PYTHON)' was found; name a Python 3.11 or newer, for example: make PYTHON=python3.12 demo" >&2; \
		exit 1; }
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "paircredit needs Python 3.11 or newer, but '$(PYTHON)' is $$("$(PYTHON)" --version 2>&1); name another one, for example: make PYTHON=python3.12 demo" >&2; \
		exit 1; }
	@echo "Creating the environment $(VENV) with $$("$(PYTHON)" --version 2>&1)."
	@"$(PYTHON)" -m venv "$(VENV)"
	@touch $@

$(RUNTIME): requirements.txt pyproject.toml | $(VENV)/.created
	@echo "Installing paircredit and its pinned dependencies into $(VENV) (about half a minute)."
	@$(PIP_INSTALL) --require-hashes -r requirements.txt
	@$(PIP_INSTALL) --no-deps --no-build-isolation -e .
	@touch $@

$(DEV): requirements-dev.txt requirements.txt pyproject.toml | $(VENV)/.created
	@echo "Installing paircredit, its pinned dependencies and the development tools into $(VENV) (about half a minute)."
	@$(PIP_INSTALL) --require-hashes -r requirements-dev.txt
	@$(PIP_INSTALL) --no-deps --no-build-isolation -e .
	@touch $(RUNTIME) $@

# --- Pinned requirements -----------------------------------------------------------------------------
# The only target that needs uv. Versions already pinned are kept; UPGRADE=--upgrade moves them forward.

COMPILE := $(UV) pip compile --quiet --no-config --universal --generate-hashes --python-version 3.11 \
	--no-annotate --no-emit-index-url --no-emit-find-links --custom-compile-command "make requirements" \
	--constraints requirements/pins.in $(UPGRADE)

requirements: ## Pin the requirements files anew (needs uv).
	@command -v "$(UV)" >/dev/null || { \
		echo "Pinning the requirements needs uv, but '$(UV)' was not found; install it, or name it with UV=..." >&2; \
		exit 1; }
	$(COMPILE) pyproject.toml requirements/build.in --output-file requirements.txt
	$(COMPILE) pyproject.toml requirements/build.in --extra dev --constraints requirements.txt --output-file requirements-dev.txt
