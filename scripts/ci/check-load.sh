#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Records loads of a model and compares them with a baseline; for pipelines. Needs sparktrace-analyze and, unless with
# --real, sparktrace-sim (`make install install-sim`) in PATH. Everything it makes lies in one folder, to be kept as an
# artifact of the pipeline.
set -u

usage="usage: check-load.sh [option...] command [argument...]

Runs a command that loads a model, records it, and compares the load with a baseline.

  -b, --baseline FILE     the baseline, a file of your repository (sparktrace-baseline.json; with limits there need be none)
  -u, --update            write the baseline instead of comparing with it
  -n, --runs N            number of runs (1); with 3 and more noisy metrics are judged too
  -d, --folder FOLDER     where traces and results go (sparktrace-results)
  --real                  on the GPU of this machine; otherwise the command gets a simulated one (sparktrace-sim)
  --budget SIZE, --fit SIZE, --metric NAME=LIMIT
                          absolute limits: see sparktrace-analyze check --help
  --help                  this text

Exit status: that of the command when it fails, and nothing is compared; else that of sparktrace-analyze check: 0 no
growth; 1 the load needs more; 2 wrong usage or no baseline; 3 cannot be compared.

In FOLDER: run-1/, run-2/, ...: traces; junit.xml; benchmark.json (github-action-benchmark, customSmallerIsBetter)."

stop() {
	echo "check-load.sh: $1" >&2
	exit "${2:-2}"
}

baseline='' update='' runs=1 folder=sparktrace-results start=sparktrace-sim
# Options of `check`, a word a line.
limits=''
newline='
'

while [ $# -gt 0 ]; do
	case $1 in
	-b | --baseline | -n | --runs | -d | --folder | --budget | --fit | --metric)
		[ $# -gt 1 ] || stop "$1 needs a value; --help says more"
		;;
	esac
	case $1 in
	-b | --baseline) baseline=$2 && shift ;;
	-n | --runs) runs=$2 && shift ;;
	-d | --folder) folder=$2 && shift ;;
	--budget | --fit | --metric) limits=$limits$1$newline$2$newline && shift ;;
	-u | --update) update=--update ;;
	--real) start='' ;;
	-h | --help)
		echo "$usage"
		exit 0
		;;
	--)
		shift
		break
		;;
	-*) stop "there is no option $1; --help lists them" ;;
	*) break ;;
	esac
	shift
done
[ $# -gt 0 ] || stop "no command is given; --help says more"
case $runs in '' | *[!0-9]* | 0*) stop "-n needs a number of runs, not '$runs'" ;; esac
for tool in sparktrace-analyze $start; do
	command -v "$tool" >/dev/null || stop "$tool is not in PATH; make install install-sim PREFIX=... brings it to PREFIX/bin"
done
if [ -z "$start" ]; then
	shim=$(readlink -f -- "$(command -v sparktrace-analyze)")
	shim=$(cd -- "${shim%/*}/../lib" 2>/dev/null && pwd -P)/libsparktrace.so
	[ -e "$shim" ] || stop "there is no $shim"
fi
if [ -z "$baseline" ]; then
	baseline=sparktrace-baseline.json
	[ -e "$baseline" ] || [ -n "$update" ] || [ -z "$limits" ] || baseline=''
fi
# Before a load that may take minutes.
[ -z "$baseline" ] || [ -e "$baseline" ] || [ -n "$update" ] ||
	stop "there is no baseline $baseline; the same with --update writes it"
mkdir -p "$folder" || stop "cannot make the folder $folder"
folder=$(cd -- "$folder" && pwd)
# Results of an earlier call, and nothing else that may lie there.
rm -f "$folder"/run-[0-9]*/*.zst "$folder/junit.xml" "$folder/benchmark.json"

# record FOLDER COMMAND...: in a process of its own, so that the settings are the command's only.
record() (
	export SPARKTRACE_OUTPUT="$1/run.zst"
	shift
	[ -z "$start" ] || exec "$start" "$@"
	export LD_PRELOAD="$shim${LD_PRELOAD:+ $LD_PRELOAD}"
	exec "$@"
)

# report FOLDER: names in it may look like commands of GitHub's runner, which takes none until it sees the word again.
report() {
	word=''
	[ "${GITHUB_ACTIONS:-}" != true ] || word=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
	[ -z "$word" ] || printf '\n::stop-commands::%s\n' "$word"
	sparktrace-analyze "$1"
	[ -z "$word" ] || echo "::$word::"
}

run=0
while [ $run -lt "$runs" ]; do
	run=$((run + 1))
	at=$folder/run-$run
	mkdir -p "$at" || stop "cannot make the folder $at"
	record "$at" "$@"
	status=$?
	if [ $status -ne 0 ]; then
		# What happened, for the log; the status stays the command's.
		[ ! -e "$at/run.zst" ] || report "$at"
		stop "run $run of $runs: the command failed with status $status, and nothing was compared: $*" $status
	fi
	[ -e "$at/run.zst" ] || stop "run $run of $runs left no trace: the command opened no weight file and used no GPU: $*" 3
done

set -f
IFS=$newline
# shellcheck disable=SC2086 # a word a line
set -- $limits
while [ $run -gt 0 ]; do
	set -- "$@" "$folder/run-$run"
	run=$((run - 1))
done
[ -z "$baseline" ] || set -- --baseline "$baseline" "$@"
# shellcheck disable=SC2086 # none, or one word
sparktrace-analyze check $update --junit "$folder/junit.xml" --benchmark "$folder/benchmark.json" "$@"
