# Everything a user or the CI machine types. Each target installs what it needs and is missing; see tools/bootstrap.sh.
BUILD_DIR ?= build
BUILD_TYPE ?= Release
JOBS ?= $(shell nproc)
PYTHON := .venv/bin/python
GENERATOR := $(if $(shell command -v ninja),-G Ninja,)

.PHONY: help build python wheel demo test bench soak docs clean distclean

help:
	@echo "make demo    real market data over TCP, then over LBT-RM with 1 % loss repaired live, about twenty seconds"
	@echo "make test    build and run every test (about 20 minutes on 2 cores)"
	@echo "make build   libraries, headers, daemons, examples and tests into $(BUILD_DIR)/"
	@echo "make bench   measure throughput, latency and memory beside raw baselines"
	@echo "make soak    the long runs: full message counts and a million inputs per fuzz target"
	@echo "make wheel   the Python wheel, with the library inside, into dist/"
	@echo "make docs    HTML documentation into $(BUILD_DIR)/docs"
	@echo "make clean   remove $(BUILD_DIR)/ and caches; make distclean removes .venv too"

build:
	@tools/bootstrap.sh build
	@$(MAKE) --no-print-directory compile

.PHONY: compile
compile:
	@test -f $(BUILD_DIR)/CMakeCache.txt || cmake -S . -B $(BUILD_DIR) $(GENERATOR) -DCMAKE_BUILD_TYPE=$(BUILD_TYPE)
	@cmake --build $(BUILD_DIR) -j $(JOBS)

# The Python binding, compiled against the tree just built.
python: build
	@tools/bootstrap.sh demo
	@UM_BUILD_DIR=$(BUILD_DIR) $(PYTHON) um_cffi/_build.py

# A wheel and its source distribution in dist/.
wheel:
	@tools/bootstrap.sh test
	@tools/build_wheel.sh dist

demo: python
	@UM_BUILD_DIR=$(BUILD_DIR) $(PYTHON) examples/demo/demo.py

test:
	@tools/bootstrap.sh test
	@$(PYTHON) tools/run_tests.py

bench:
	@tools/bootstrap.sh bench
	@$(MAKE) --no-print-directory python
	@$(PYTHON) benchmarks/run.py --build $(BUILD_DIR)

soak:
	@tools/bootstrap.sh test
	@$(PYTHON) tools/run_tests.py --soak

docs: python
	@tools/bootstrap.sh test
	@UM_BUILD_DIR=$(BUILD_DIR) $(PYTHON) -m sphinx -W -q -b html docs $(BUILD_DIR)/docs
	@echo "documentation: $(BUILD_DIR)/docs/index.html"

clean:
	rm -rf build build-* .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -not -path './.venv/*' -prune -exec rm -rf {} +

distclean: clean
	rm -rf .venv
