# Each target works alone on a fresh machine that has Python 3.10+ and make.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/$(if $(filter Windows_NT,$(OS)),Scripts,bin)
READY := $(VENV)/.ready
CORE := $(VENV)/.core

# Some containers set it; every process that a test starts would compile what it imports.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo smoke test check docs format lint package oracle android_check random_graphs fuzz soak faults clean

demo: $(CORE)
	@$(BIN)/python examples/digits/demo.py

# From a training directory to a small model, held to TensorFlow's answers, and the graph's own tests: some seconds.
smoke: $(READY)
	$(BIN)/python -m pytest tests/test_digits_example.py tests/test_package.py tests/test_floors.py tests/graph/test_order.py tests/graph/test_pattern.py

test: $(READY)
	$(BIN)/python -m pytest -n auto

check: lint
	$(MAKE) test

lint: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	@if $(BIN)/python -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then set -x; $(BIN)/mypy; \
	else echo "mypy left out: it needs NumPy 2.3's annotations, which begin with Python 3.11 (make check PYTHON=python3.11)"; fi
	$(BIN)/lint-imports

# The sdist and the wheel as they would be published, checked, and the wheel used in an environment of its own
package: $(READY)
	$(BIN)/python tools/check_package.py

# The documents as a site: build/docs/index.html, without anything from elsewhere; broken links are errors
docs: $(READY)
	@$(BIN)/python -c 'import furo, myst_parser' 2>/dev/null || $(BIN)/python -m pip install -q -e '.[docs]'
	$(BIN)/python tools/docs_site

# Compares our transforms with TensorFlow 1.15.5's, on a model of yours too: make oracle MODEL=x.pb INPUTS=a OUTPUTS=b
oracle: $(READY)
	$(BIN)/python tools/oracle.py --model='$(MODEL)' --inputs='$(INPUTS)' --outputs='$(OUTPUTS)' --transforms='$(TRANSFORMS)'

# Compiles what `app android` writes, and runs its code in a Java with LiteRT. Debian's packages for it: default-jdk-headless, aapt,
# junit4, and android-sdk-platform-23 (sid has it), or an Android SDK's folder in ANDROID_HOME. What is missing is told.
KOTLIN := $(CURDIR)/build/kotlin/package
android_check: $(READY) $(KOTLIN)/bin/kotlinc
	KOTLIN_HOME=$(KOTLIN) $(BIN)/python -m pytest -rs tests/apps/projects/test_android_builds.py

$(KOTLIN)/bin/kotlinc:
	@echo "Getting Kotlin's compiler from npm, 90 MB, once."
	@mkdir -p build/kotlin
	@cd build/kotlin && tar -xzmf "$$(npm pack --silent kotlin-compiler@2.4.20)"

# Random valid graphs, ours against TensorFlow's: make random_graphs ORACLE=python-with-tensorflow FLAGS='--graphs 1000 --sessions'
random_graphs: $(READY)
	$(BIN)/python tools/random_graphs --oracle='$(ORACLE)' $(FLAGS)

# Damaged input for every reader and hostile graphs for both engines: make fuzz MINUTES=10 FLAGS='--target graphdef'
fuzz: $(READY)
	@$(BIN)/python -c 'import atheris' 2>/dev/null || $(BIN)/python -m pip install -q -e '.[fuzz]'
	$(BIN)/python fuzz --minutes $(or $(MINUTES),10) $(FLAGS)

# Sessions in threads and processes that share a cache, closed while they run, with their memory watched
soak: $(READY)
	$(BIN)/python fuzz/soak.py --minutes $(or $(MINUTES),30)

# Every command that writes, killed half-way, with a full disk, a read-only folder, and a clock that goes backwards
faults: $(READY)
	$(BIN)/python fuzz/faults.py --minutes $(or $(MINUTES),10)

format: $(READY)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

$(CORE): pyproject.toml
	@echo "Making $(VENV) and installing NumPy, LiteRT and what else pocketgraph needs there, some 200 MB, once."
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --disable-pip-version-check -e .
	@touch $@

$(READY): $(CORE)
	@echo "Installing what the tests need too: ONNX Runtime, OpenCV, linters; once."
	@$(BIN)/python -m pip install -q --disable-pip-version-check -e '.[dev]'
	@touch $@

clean:
	rm -rf $(VENV) build dist .mypy_cache .pytest_cache .ruff_cache
