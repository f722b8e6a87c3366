# burnbook: every target makes what it needs the first time, and is quick the second.
#
#   make lab         open the chapters in JupyterLab
#   make guide       train the guide's network here in the terminal, then predict
#   make test        the tests
#   make notebooks   rebuild the chapters that changed, then check every printed line
#   make bench       measure against PyTorch (installs it if it is not there)
#   make clean       remove what the targets made (.venv, caches, artifacts)
#
# Another Python: make lab PYTHON=python3.12

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Python compiles a file when it is first imported; most files of a package never are.
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile
KERNELS := $(shell find burnbook/backend/compiled -name "*.py")
SHARED_OUT := -n auto --dist loadfile --no-loadscope-reorder
NBVAL := $(SHARED_OUT) --nbval --nbval-current-env --nbval-sanitize-with notebooks/sanitize.cfg \
         --nbval-cell-timeout 60 -p no:randomly -p no:cacheprovider

.PHONY: help lab guide test bench notebooks clean
.DELETE_ON_ERROR:

help:
	@sed -n '/^#/!q; s/^# \{0,1\}//p' Makefile

lab: $(VENV)/lab
	$(BIN)/burnbook lab

guide: $(VENV)/guide
	$(BIN)/burnbook guide

test: $(VENV)/test $(VENV)/warm
	$(BIN)/python -m pytest $(SHARED_OUT) $(ARGS)

notebooks: export BURNBOOK_DISPLAY = static
notebooks: $(VENV)/test $(VENV)/warm
	$(BIN)/python -m burnbook_widgets.build notebooks
	$(BIN)/python -m pytest $(NBVAL) \
	  $$($(BIN)/python -m burnbook_widgets.build notebooks --pages)

bench: $(VENV)/bench $(VENV)/warm
	$(BIN)/python -m pytest -m bench -s -p no:randomly tests/bench $(ARGS)

clean:
	rm -rf $(VENV) dist build .pytest_cache .ruff_cache .hypothesis notebooks/artifacts
	find burnbook widgets tests -name __pycache__ -type d -prune -exec rm -rf {} +

# The stamps. Each is newer than what it was made from, or is made again.
$(VENV)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  echo "burnbook needs Python 3.11 or newer, but $(PYTHON) is" \
	       "$$({ $(PYTHON) --version || echo not there; } 2>/dev/null)."; \
	  echo "Try: make $(MAKECMDGOALS) PYTHON=python3.12"; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
	  echo "$(PYTHON) cannot make virtual environments: its venv package is missing."; \
	  echo "Try: apt install python3-venv   (Debian, Ubuntu)"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/guide: pyproject.toml | $(VENV)/python
	$(PIP) --editable '.[fast]' scikit-learn
	@touch $@

$(VENV)/lab: pyproject.toml | $(VENV)/python
	$(PIP) --editable '.[lab]'
	@touch $@

$(VENV)/test: $(VENV)/lab
	$(PIP) --editable '.[lab,test]'
	@touch $@

$(VENV)/bench: $(VENV)/test
	$(PIP) torch==2.13.0 onnx onnxruntime
	@touch $@

$(VENV)/warm: $(VENV)/lab $(KERNELS)
	$(BIN)/burnbook warmup
	@touch $@
