# Limber needs nothing but Python 3.11 and make; everything else goes into .venv.
#   make demo             read a sample rig's Actions, run a job, bake, render: build/demo/
#   make test             lint, types and tests, in Blender 4.2, 4.5 and 5.0
#   make test-full        the same, and the tests that take long
#   make bench            how fast it is, beside what Blender offers; without bench/vae.py and
#                         bench/physics.py, which need learned models and are run by themselves
#   make vae-models       learn the model and the policies that bench/vae.py measures: takes long
#   make physics-models   learn the skills that bench/physics.py measures: takes long
#   make package          the extension as a small zip: build/
#   make package-offline  the same with the backend's wheels for this platform

PYTHON ?= $(shell command -v python3.11 || command -v python3)
# The Python of the Blender that package-offline is for: 3.11 for 4.2 to 5.0.
PACKAGE_PYTHON ?= .venv/bin/python
BLENDERS := 4.2 4.5 5.0
BPY_4.2 := 4.2.23
BPY_4.5 := 4.5.15
BPY_5.0 := 5.0.1
# Blender's own Python comes with this numpy generation up to 5.0.
BPY_NUMPY := numpy==1.26.4
PIP := .venv/bin/python -m pip install --quiet --disable-pip-version-check
# Files of addon/ that need no bpy are checked as strictly as the backend.
PLAIN_MODULES := environment jobs style.asking
# Keeps the output of tests that run side by side apart, where make can.
SYNC := $(if $(filter output-sync,$(.FEATURES)),--output-sync=target)
MAKEFLAGS += --no-print-directory

.PHONY: help setup demo test test-full lint types test-backend test-package test-addon bench \
  vae-models physics-models package package-offline clean
help:
	@sed -n '2,10s/^# \{0,3\}//p' Makefile

setup: .venv/backend.stamp $(BLENDERS:%=.venv/blender/%.stamp)

.venv/backend.stamp: backend/requirements.txt requirements-dev.txt
	test -x .venv/bin/python || $(PYTHON) -m venv .venv
	$(PIP) -r backend/requirements.txt -r requirements-dev.txt
	mkdir -p .venv/src && ln -sfn ../.. .venv/src/limber
	touch $@

# One folder per Blender, used through PYTHONPATH: they cannot share an environment.
.venv/blender/%.stamp: | .venv/backend.stamp
	.venv/bin/python tools/system_libraries.py
	rm -rf .venv/blender/$*
	$(PIP) --target .venv/blender/$* bpy==$(BPY_$*) $(BPY_NUMPY)
	touch $@

# With 4.2, so that the file it leaves opens in every Blender from there on.
demo: .venv/blender/4.2.stamp
	PYTHONPATH=.venv/blender/4.2 .venv/bin/python tools/demo.py

test: lint types
	$(MAKE) -j2 $(SYNC) test-backend test-package test-addon

test-full: test
	.venv/bin/python -m pytest -m full tests/backend tests/package
	set -e; for blender in $(BLENDERS); do \
	  PYTHONPATH=.venv/blender/$$blender .venv/bin/python -m pytest -m full tests/addon; done

lint: .venv/backend.stamp
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .

types: .venv/backend.stamp
	cd .venv/src && ../bin/mypy --config-file ../../pyproject.toml -p limber.backend \
	  $(PLAIN_MODULES:%=-m limber.addon.%)

test-backend: .venv/backend.stamp
	.venv/bin/python -m pytest tests/backend

test-package: .venv/blender/4.2.stamp .venv/blender/5.0.stamp
	.venv/bin/python -m pytest tests/package

test-addon: $(BLENDERS:%=test-addon-%)

test-addon-%: .venv/blender/%.stamp
	PYTHONPATH=.venv/blender/$* .venv/bin/python -m pytest tests/addon

bench: .venv/blender/5.0.stamp .venv/peers.stamp
	PYTHONPATH=.venv/blender/5.0 .venv/bin/python bench/bake.py
	.venv/bin/python bench/session.py
	.venv/bin/python bench/style.py

# What the benchmarks compare with and Limber itself never needs.
.venv/peers.stamp:
	rm -rf .venv/peers
	$(PYTHON) -m venv .venv/peers
	.venv/peers/bin/python -m pip install --quiet --disable-pip-version-check gpy==1.15.0
	touch $@

# Learned once and kept in build/vae; bench/vae.py lets it walk.
vae-models: .venv/backend.stamp
	.venv/bin/python bench/vae.py --train target joystick path maze

# Learned once and kept in build/physics; bench/physics.py tries them.
physics-models: .venv/backend.stamp
	.venv/bin/python bench/physics.py --train walk run spinkick dance_a graph

package: .venv/blender/5.0.stamp
	.venv/bin/python tools/package.py .venv/blender/5.0

package-offline: .venv/blender/5.0.stamp
	.venv/bin/python tools/package.py .venv/blender/5.0 --offline --python $(PACKAGE_PYTHON)

clean:
	rm -rf build
