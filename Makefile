# Every target sets up .venv by itself; all it needs is Python 3.11+, make and a package index.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready

.PHONY: demo browser test test-all coverage lint docs package fuzz results measure clean

$(READY): pyproject.toml
	$(PYTHON) -c 'import sys; assert sys.version_info >= (3, 11), "splatop needs Python 3.11 or later"'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[test,lint,docs,package]'
	touch $(READY)

demo: $(READY)
	$(BIN)/splatop demo --out demo

# The report is tested in a real browser where one is, or can be installed; else those tests say so.
browser: $(READY)
	@command -v chromium >/dev/null || command -v google-chrome >/dev/null || \
	(apt-get update -qq && apt-get install -y -qq chromium) >/dev/null 2>&1 || \
	echo "no Chromium: the report's browser tests are skipped"
	@test -e .venv/axe/node_modules/axe-core/axe.min.js || \
	npm install --silent --no-fund --no-audit --prefix .venv/axe axe-core@4 >/dev/null 2>&1 || \
	echo "no npm: the report is not checked for accessibility by axe-core"

# Two files at a time: most of a test is compilation, which uses one core.
test: $(READY) browser
	$(BIN)/python -m pytest -n 2 --dist loadfile

test-all: $(READY) browser
	$(BIN)/python -m pytest -m '' -n 2 --dist loadfile

coverage: $(READY) browser  # of the quick tests, by line: into CONTRIBUTING.md, and pages in build/coverage
	$(BIN)/python tools/suite.py lines
	$(BIN)/python tools/suite.py tables

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright

docs: $(READY)  # the site, into site/
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

package: $(READY)  # wheel and sdist, into dist/
	$(BIN)/python -m build --no-isolation --outdir dist .

fuzz: $(READY)  # half an hour: damaged files and random arguments, counted in docs/reliability.md
	$(BIN)/python tools/fuzz.py

results: $(READY)
	$(BIN)/python tools/results.py

measure: $(READY)  # hours: trains what ships and measures it
	$(BIN)/python tools/measure.py

clean:
	rm -rf .venv demo build dist site
