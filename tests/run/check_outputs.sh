#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What `check` writes for others (issue 5, line 5), read as they read it: JUnit XML by Jenkins' schema, annotations by the
# algorithm of GitHub's runner, the job summary by a parser of GitHub's Markdown, the benchmark by the rules of
# github-action-benchmark. Results of every kind, and a trace whose names are made to break each of these.
exec env PYTHONPATH="$(dirname "$0")/../../.venv/check" "$(dirname "$0")/../../.venv/bin/python" "$(dirname "$0")/check_outputs.py"
