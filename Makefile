# Everything a user or the CI machine types. Each target installs what it needs and is missing; see tools/bootstrap.sh.
BUILD_DIR ?= build
BUILD_TYPE ?= Release
JOBS ?= $(shell nproc)
PYTHON := .venv/bin/python
AHEAD := :
export UM_OBJECT_CACHE ?= $(CURDIR)/build-ccache

.PHONY: help build python wheel demo check test bench soak docs clean distclean

help:
	@echo "make demo    real market data over TCP, then over LBT-RM with 1 % loss repaired live, about twenty seconds"
	@echo "make demo SPARK=1   and then recorded, and computed with by Spark (needs Java 17), a minute more"
	@echo "make check   while working: build, lint, unit and Python tests without sanitizers (about 4 minutes on 2 cores)"
	@echo "make test    build and run every test (about 15 minutes on 2 cores)"
	@echo "make build   libraries, headers, daemons, examples and tests into $(BUILD_DIR)/"
	@echo "make bench   measure throughput, latency and memory beside raw baselines"
	@echo "make soak    the long run: full message counts, many seeds, a million inputs of fuzz targets (about 2 hours)"
	@echo "make wheel   the Python wheel, with the library inside, into dist/"
	@echo "make docs    HTML documentation into $(BUILD_DIR)/docs"
	@echo "make clean   remove $(BUILD_DIR)/ and caches; make distclean removes .venv too"

build:
	@tools/bootstrap.sh build
	@$(MAKE) --no-print-directory compile

# Configured every time, which takes seconds: packages may have been installed since, and BUILD_TYPE may be another. A
# tree keeps the generator it was made with.
.PHONY: configure compile
configure:
	@generator=; if [ ! -f $(BUILD_DIR)/CMakeCache.txt ] && command -v ninja >/dev/null; then generator="-G Ninja"; fi; \
	    cmake -S . -B $(BUILD_DIR) $$generator -DCMAKE_BUILD_TYPE=$(BUILD_TYPE) --log-level=WARNING

compile: configure
	@cmake --build $(BUILD_DIR) -j $(JOBS)

# The Python binding, compiled against the tree just built.
python: build
	@tools/bootstrap.sh demo
	@UM_BUILD_DIR=$(BUILD_DIR) $(PYTHON) um_cffi/binding/build.py

# A wheel and its source distribution in dist/.
wheel:
	@tools/bootstrap.sh wheel
	@tools/build_wheel.sh dist

# What the demo runs, and neither tests nor benchmarks. SPARK=1 adds the act with Spark, which needs Java and PySpark.
demo:
	@tools/bootstrap.sh demo $(if $(SPARK),--spark)
	@$(MAKE) --no-print-directory configure
	@cmake --build $(BUILD_DIR) -j $(JOBS) --target um lbmrd
	@UM_BUILD_DIR=$(BUILD_DIR) $(PYTHON) um_cffi/binding/build.py
	@UM_BUILD_DIR=$(BUILD_DIR) $(PYTHON) examples/demo/demo.py $(if $(SPARK),--spark)

# While pip installs packages with one processor, another compiles, before tests also the trees of the sanitizers. What
# the compiler complains of is told by the checks, which go on from there.
.PHONY: prepare
prepare:
	@tools/bootstrap.sh system
	@installed=build-installed.$$$$; rm -f $$installed; trap 'touch $$installed; exit 130' INT TERM; \
	    { make --no-print-directory compile BUILD_DIR=build BUILD_TYPE=Release; $(AHEAD) $$installed; } >/dev/null 2>&1 & \
	    tools/bootstrap.sh test; status=$$?; touch $$installed; wait; rm -f $$installed; exit $$status

check: prepare
	@$(PYTHON) tools/run_tests.py --check

test: AHEAD := python3 tools/compile_ahead.py
test: prepare
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
