# Limber needs nothing but Python 3.11 and make; everything else goes into .venv.
#   make demo    read a sample rig's Actions, run a job, bake, render: build/demo/
#   make test    lint, types and tests, in Blender 4.2, 4.5 and 5.0

PYTHON ?= $(shell command -v python3.11 || command -v python3)
BLENDERS := 4.2 4.5 5.0
BPY_4.2 := 4.2.23
BPY_4.5 := 4.5.15
BPY_5.0 := 5.0.1
# Blender's own Python comes with this numpy generation up to 5.0.
BPY_NUMPY := numpy==1.26.4
MAKEFLAGS += --no-print-directory

.PHONY: help setup test lint types test-backend test-addon clean
help:
	@sed -n '2,3p' Makefile

setup: .venv/backend.stamp $(BLENDERS:%=.venv/blender/%.stamp)

.venv/backend.stamp: backend/requirements.txt requirements-dev.txt
	test -x .venv/bin/python || $(PYTHON) -m venv .venv
	.venv/bin/python -m pip install --quiet --disable-pip-version-check \
	  -r backend/requirements.txt -r requirements-dev.txt
	mkdir -p .venv/src && ln -sfn ../.. .venv/src/limber
	touch $@

# One folder per Blender, used through PYTHONPATH: they cannot share an environment.
.venv/blender/%.stamp: .venv/backend.stamp
	rm -rf .venv/blender/$*
	.venv/bin/python -m pip install --quiet --disable-pip-version-check \
	  --target .venv/blender/$* bpy==$(BPY_$*) $(BPY_NUMPY)
	touch $@

test: lint types test-backend test-addon

lint: .venv/backend.stamp
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .

types: .venv/backend.stamp
	cd .venv/src && ../bin/mypy --config-file ../../pyproject.toml -p limber.backend

test-backend: .venv/backend.stamp
	.venv/bin/python -m pytest tests/backend

test-addon: $(BLENDERS:%=test-addon-%)

test-addon-%: .venv/blender/%.stamp
	PYTHONPATH=.venv/blender/$* .venv/bin/python -m pytest tests/addon

clean:
	rm -rf build
