# Attention by Hand. `make` lists the commands. Every command may be interrupted and run again; it does what is left.
# Written for GNU make 3.81 and later (macOS ships 3.81).

PYTHON ?= python3
TORCH_INDEX ?=
FOLDER ?=
PORT ?= 8000
JUPYTER_PORT ?= 8888
PYTEST_ARGS ?=
CHAPTERS ?=
# The folders of quick tests: no graded class, no sandbox, no book, no matrix of known answers.
QUICK ?= tests/reference tests/repository tests/grader/judging tests/grader/diagnosis tests/grader/feedback tests/grader/inside
SENTENCES := "I closed the windows." "She visited the bank near the river." "We cleaned the old keys of the house."

SHELL := /bin/bash
VENV := .venv
BIN := $(VENV)/bin
# nbgrader calls a program of the environment by its bare name.
PYTHON_HERE := PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python
PIP := $(BIN)/python -m pip --disable-pip-version-check
INSTALL := $(BIN)/python .ci/install.py
# A stamp per torch index: naming another index installs torch anew.
TORCH := $(VENV)/.torch$(if $(TORCH_INDEX),-$(notdir $(TORCH_INDEX:/=)))
READY := $(VENV)/.ready
# STEP is "[2/6] " when `make course` runs a command as one of its steps.
STEP ?=
# $(SAY)'words' prints them after STEP, in one argument.
SAY := @echo '$(STEP)'
# How many pages of the book are run at a time; empty: one for each core, four at most.
JOBS ?=

FOLDERS := autograder book exercises solutions tests transformer_ref
files = $(shell find $(1) -type f -not -path '*/__pycache__/*' -not -path '*/.ipynb_checkpoints/*' -not -name '.*' 2>/dev/null)
PACKAGE := $(call files,transformer_ref)
GRADER := $(call files,autograder)

.PHONY: help setup site release course course-site course-release course-sample-class course-translator sample-class translator learn serve style quick test test-all test-rest test-oldest bench clean
.DELETE_ON_ERROR:

help:
	@echo "Attention by Hand"
	@echo "  make course       everything: set up, build the book, release the exercises, grade a sample class, train a translator"
	@echo "  make learn        your own copy of the notebooks in JupyterLab, chapter 00 open, and the book (FOLDER=... names another)"
	@echo "  make serve        the book and JupyterLab on this machine"
	@echo "  make test         what to run before you push: style, types, and all but the longest tests"
	@echo "  make test-all     every test this machine can run"
	@echo "  make quick        what to run after each change: the tests that need no class, sandbox or browser"
	@echo "  make test-oldest  the learner's side on the oldest torch and packages that are admitted (CHAPTERS=\"05 13\" runs these)"
	@echo "  make bench        training and decoding beside what people would pick instead, as ratios"
	@echo "  make setup        the environment in .venv (TORCH_INDEX=... takes torch from another index)"
	@echo "  make site         the book in build/site"
	@echo "  make release      exercises/ from solutions/"
	@echo "  make clean        remove build/ and caches (never .venv, never classroom)"

# --- setup -----------------------------------------------------------------------------------------------------------

setup: $(READY)
	$(SAY)'the environment is ready: $(VENV)'

$(VENV)/.created:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' \
	  || { echo "Python 3.10 or newer is needed, got: $$($(PYTHON) --version 2>&1). Name another: make setup PYTHON=python3.12"; exit 1; }
	$(SAY)'setting up, 1 of 4: system packages ...'
	@PYTHON=$(PYTHON) bash .ci/system-packages
	@$(PYTHON) -m venv --clear $(VENV)
	@touch $@

$(TORCH): $(VENV)/.created requirements.txt .ci/install.py
	$(SAY)'setting up, 2 of 4: torch (the largest download; see TORCH_INDEX in README.md) ...'
	@$(if $(TORCH_INDEX),$(PIP) uninstall -q -y torch)
	@TORCH_INDEX=$(TORCH_INDEX) $(INSTALL) "$$(grep '^torch==' requirements.txt)"
	@rm -f $(VENV)/.torch*
	@touch $@

$(VENV)/.requirements: $(TORCH) requirements.txt pyproject.toml
	$(SAY)"setting up, 3 of 4: $$(grep -c == requirements.txt) packages ..."
	@if $(BIN)/python -c 'import sys; sys.exit(sys.version_info < (3, 11, 5))'; then \
	  $(INSTALL) -r requirements.txt; \
	else \
	  echo "  this Python is older than 3.11.5, which the lock needs: taking what pyproject.toml's ranges admit"; \
	  $(INSTALL) '.[book,grading,interop,test]'; \
	fi
	@touch $@

$(READY): $(VENV)/.requirements pyproject.toml
	$(SAY)'setting up, 4 of 4: this package ...'
	@$(PIP) install -q --no-deps --no-build-isolation -e .
	@touch $@

# --- the book, the exercises -----------------------------------------------------------------------------------------

site: build/site/index.html
	$(SAY)'the book: build/site/index.html'

# nbgrader writes exercises/ anew each time it tells the gradebook of an assignment: what counts is what is in them.
.PHONY: FORCE
build/.exercises: FORCE
	@mkdir -p build; new=$@.$$$$; cksum $(filter-out exercises/own_%,$(sort $(call files,exercises))) </dev/null >$$new; \
	  cmp -s $$new $@ && rm $$new || mv $$new $@

build/site/index.html: $(READY) _config.yml _toc.yml $(call files,book) build/.exercises $(PACKAGE)
	$(SAY)'building the book ...'
	@mkdir -p build
	@$(PYTHON_HERE) book/tools/build.py --zip $(if $(JOBS),--jobs $(JOBS))
	@touch $@

release: build/.release
	$(SAY)'the exercises: exercises/'

build/.release: $(READY) $(call files,solutions own) $(GRADER) $(PACKAGE)
	$(SAY)'making exercises/ from solutions/ ...'
	@mkdir -p build
	@$(PYTHON_HERE) -m autograder release
	@touch $@

# --- the course: everything, end to end ------------------------------------------------------------------------------

# Two steps at a time, each on one half of the cores. The longest begin first, so that both halves are busy to the end.
# Each line of output begins with its step. A make that runs in parallel already brings its own number of jobs.
BESIDE := translator site release sample-class
MADE := $(READY) build/site/index.html build/.release build/sample_class/grades.csv build/translator/.trained
HALF = $$(( ($$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2) + 1) / 2 ))

course:
	@mkdir -p build; date +%s >build/.course
	@$(MAKE) --no-print-directory STEP='[1/6] ' setup
	@OMP_NUM_THREADS=$${OMP_NUM_THREADS:-$(HALF)} PYTHONUNBUFFERED=1 \
	  $(MAKE) --no-print-directory $(if $(filter -j%,$(MAKEFLAGS)),,-j 2) JOBS=$(HALF) $(BESIDE:%=course-%)
	$(call step,2/6,build/site/index.html)
	@took=$$(( $$(date +%s) - $$(cat build/.course) )); \
	  if [ -n "$$(find $(MADE) -newer build/.course 2>/dev/null)" ]; then echo "[6/6] done in $$((took / 60)) min $$((took % 60)) s. Open:"; \
	  else echo '[6/6] nothing has changed since the last run: everything is there. Open:'; fi
	@printf '%s\n' \
	  '  build/site/index.html                     the book' \
	  '  build/sample_class/classroom/feedback     what the sample class reads about its answers' \
	  '  build/sample_class/classroom/dashboard    what its teacher reads' \
	  '  make serve                                the book and JupyterLab, live'

# $(call step,2/6,TARGET): a target whose lines all begin with the number of its step.
step = +@set -o pipefail; $(MAKE) --no-print-directory STEP='[$(1)] ' $(2) 2>&1 | while IFS= read -r line; do \
  case "$$line" in '[$(1)]'*) printf '%s\n' "$$line";; *) printf '[$(1)] %s\n' "$$line";; esac; done

course-site:
	$(call step,2/6,site)

# A learner may be working in exercises/: what git reports as changed there is not written over.
KEEP_EXERCISES := @echo '[3/6] exercises/ holds changes of yours and stays as it is (make release writes it anew)'

course-release:
	$(if $(shell git status --porcelain exercises 2>&1),$(KEEP_EXERCISES),$(call step,3/6,release))

course-sample-class:
	$(call step,4/6,sample-class)

course-translator:
	$(call step,5/6,translator)

sample-class: build/sample_class/grades.csv
	$(SAY)'the sample class: build/sample_class/grades.csv, feedback in build/sample_class/classroom/feedback'

build/sample_class/grades.csv: $(READY) nbgrader_config.py $(call files,solutions) build/.exercises $(GRADER) $(PACKAGE)
	$(SAY)'grading a sample class of eight with nbgrader ...'
	@$(PYTHON_HERE) -m autograder.prepare.sample_class build/sample_class
	@touch $@

translator: build/translator/italian.txt
	$(SAY)'the translator: build/translator. Three sentences:'
	@printf '%s\n' $(SENTENCES) | paste -d '|' - $< | sed 's/^/  /; s/|/  ->  /'

build/translator/italian.txt: build/translator/.trained
	@$(PYTHON_HERE) -m transformer_ref translate --checkpoint build/translator $(SENTENCES) >$@

build/translator/.trained: $(READY) $(PACKAGE)
	$(SAY)'training an English-Italian translator ...'
	@[ ! -e $@ ] || rm -rf build/translator
	@$(PYTHON_HERE) -m transformer_ref train --output build/translator \
	  $$([ -e build/translator/training.safetensors ] && echo --resume || echo --overwrite)
	@touch $@

learn: setup site
	@exec env PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m autograder learn --port $(JUPYTER_PORT) $(if $(FOLDER),"$(FOLDER)")

serve: setup site
	@for port in $(PORT) $(JUPYTER_PORT); do \
	  $(BIN)/python -c "import socket; socket.create_server(('127.0.0.1', $$port)).close()" 2>/dev/null \
	    || { echo "port $$port is taken; choose others: make serve PORT=8001 JUPYTER_PORT=8889"; exit 1; }; \
	done
# Both run beside this shell, which waits for a signal or for Jupyter's end and then ends both. formgrader's address goes by
# way of Jupyter's log-in: opened first, its own would be given a cookie that is good for formgrader's pages alone.
	@token=$$($(BIN)/python -c 'import secrets; print(secrets.token_hex(16))'); at=http://127.0.0.1:$(JUPYTER_PORT); \
	  echo 'the book     http://127.0.0.1:$(PORT)/'; \
	  echo "JupyterLab   $$at/lab/tree/exercises?token=$$token"; \
	  echo "formgrader   $$at/login?next=%2Fformgrader%2Fmanage_assignments&token=$$token (for teachers)"; \
	  echo 'Ctrl-C ends both.'; \
	  trap 'kill $$book $$lab 2>/dev/null; wait' EXIT; trap 'exit 129' HUP; trap 'exit 130' INT; trap 'exit 143' TERM; \
	  export ATTENTION_BY_HAND_BOOK=$${ATTENTION_BY_HAND_BOOK:-http://127.0.0.1:$(PORT)}; \
	  $(BIN)/python -m http.server $(PORT) --bind 127.0.0.1 --directory build/site >/dev/null 2>&1 & book=$$!; \
	  $(PYTHON_HERE) -m jupyter lab --no-browser --log-level=ERROR --ServerApp.answer_yes=True \
	    --ServerApp.port=$(JUPYTER_PORT) --ServerApp.port_retries=0 --IdentityProvider.token=$$token \
	    $(if $(filter 0,$(shell id -u)),--allow-root) & lab=$$!; \
	  wait $$lab

# --- checks, tidying -------------------------------------------------------------------------------------------------

style: setup
	@$(PYTHON_HERE) -m ruff check .
	@$(PYTHON_HERE) -m ruff format --check --output-format concise . || { echo 'make it so: .venv/bin/ruff format .'; exit 1; }

# What was compiled is kept, whatever the shell says: each worker and each command that a test starts would compile it anew.
PYTEST := OMP_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE= $(PYTHON_HERE) -m pytest -n auto --dist loadgroup

test: style
	@$(PYTEST) $(PYTEST_ARGS)

test-all: style
	@$(PYTEST) --all $(PYTEST_ARGS)

# What `make test` leaves out.
test-rest: setup
	@$(PYTEST) --rest $(PYTEST_ARGS)

# What pyproject.toml asks for at least, and the wheel, in an environment that knows nothing of this folder. uv takes the
# lowest versions; torch first and alone, as above.
OLDEST := build/oldest/bin
OLDEST_ASKED = $$(sed -n 's/^    "torch>=\([0-9.]*\).*/\1/p' pyproject.toml | head -n 1)

build/oldest/.ready: pyproject.toml .ci/install.py
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 10) <= sys.version_info < (3, 13))' \
	  || { echo "The oldest torch is older than Python 3.13. Name another: make test-oldest PYTHON=python3.11"; exit 1; }
	$(SAY)'setting up the oldest versions: build/oldest ...'
	@$(PYTHON) -m venv --clear build/oldest
	@$(OLDEST)/python .ci/install.py --resolution=lowest-direct "torch==$(OLDEST_ASKED).*"
	@$(OLDEST)/python .ci/install.py --resolution=lowest-direct -r pyproject.toml --extra=learn
	@touch $@

test-oldest: build/oldest/.ready
	@rm -rf build/lib build/bdist.* build/oldest/wheel # setuptools packs what an earlier build has left
	@$(OLDEST)/python -m pip --disable-pip-version-check wheel -q --no-deps -w build/oldest/wheel .
	@$(OLDEST)/python -m pip --disable-pip-version-check install -q --no-deps --force-reinstall build/oldest/wheel/*.whl
	@OMP_NUM_THREADS=1 $(OLDEST)/python tests/repository/learner_side.py $(CHAPTERS)

quick: setup
	@$(PYTHON_HERE) -m ruff check .
	@$(PYTEST) $(QUICK) $(PYTEST_ARGS)

bench: setup
	@$(PYTHON_HERE) -m transformer_ref benchmark

clean:
	@rm -rf build .pytest_cache .ruff_cache .hypothesis *.egg-info
	@find $(FOLDERS) -type d \( -name __pycache__ -o -name .ipynb_checkpoints \) -prune -exec rm -rf {} +
	@echo 'removed build/ and caches'
