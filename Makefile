# SPDX-License-Identifier: Apache-2.0
# sparktrace: everything is built here, out of tree, in $(O).
#
#	make			libsparktrace.so, sparktrace-recorder, sparktrace-analyze
#	make demo		a real PyTorch load on a simulated GB10, recorded and explained
#	make check-fast		unit tests, in seconds; needs the C packages only
#	make check		unit tests and all tests of whole programs
#	make check-loaders	every row of the loader matrix (tests/loaders) live, and their repairs;
#				ROWS="pattern ..." limits the rows
#	make check-long		the same without bounds: every kill, every size
#	make check-arm64	cross build for aarch64, and what of it runs under qemu-user
#	make check-gpu		short rows on a real NVIDIA GPU, a table; without one a skipped test
#	make check-fresh	demo and check in a Debian 12 chroot that has nothing
#	make fuzz		the readers on damaged input, FUZZ_SECONDS each
#	make bench		what recording costs, as ratios
#	make lint		everything that can be said about the source without running it
#	make format		lay out all C sources by .clang-format
#	make docs		rewrite the generated tables of README.md
#	make install uninstall	DESTDIR= PREFIX=/usr/local
#	make install-sim	the simulated CUDA stack and bin/sparktrace-sim, for pipelines without a GPU
#	make clean
#
# demo, check, check-loaders, check-long and bench first run scripts/bootstrap, which installs what is missing.
# V=1 shows commands. TESTS="tests/run/a.sh ..." limits check to these.

O ?= build
PREFIX ?= /usr/local
DESTDIR ?=
CLANG ?= clang-14
ifeq ($(origin CC),default)
CC := gcc
endif
PYTHON ?= python3
CFLAGS ?= -O2 -g
FUZZ_SECONDS ?= 30
TESTS ?= $(sort $(wildcard tests/run/*.sh))

# Python keeps what it has compiled of the packages in .venv: without that an import of transformers takes 20 s.
unexport PYTHONDONTWRITEBYTECODE

# Tests and scripts find the build through this.
export BUILD := $(abspath $(O))

# CFLAGS and LDFLAGS stay the user's; what we need stands in front of them.
VERSION := 0.1.0
WARNINGS := -Wall -Wextra -Wshadow -Wmissing-prototypes -Wstrict-prototypes -Werror=switch-enum $(if $(CI),-Werror)
OUR_CFLAGS := -std=c11 -D_GNU_SOURCE $(WARNINGS) -Iinclude -I. -MMD -MP -DST_VERSION='"$(VERSION)"'

# CUDA headers: the toolkit's, else those that scripts/bootstrap unpacked from PyPI.
CUDA_INCLUDE ?= $(firstword $(wildcard $(CUDA_HOME)/include /usr/local/cuda/include .venv/cuda-headers/include))
CUDA_CFLAGS = $(CUDA_INCLUDE:%=-isystem %)

# One short line a command; V=1 shows the command itself.
say = $(if $(V),,@echo "  $(1)	$(@:$(O)/%=%)";)

all: shim recorder analyzer

# --- the shim: in the program's process -------------------------------------------------------------
# Every object carries the IBT or BTI mark, or the linker drops it for the whole library; Debian's crti.o
# and crtn.o carry none, hence -nostartfiles, and nor do libgcc's atomics, hence inline ones. The builtins
# would let the compiler turn a wrapper's own code into a call of a wrapper. Thread-local storage must never
# call malloc: initial-exec.
ARCH := $(firstword $(subst -, ,$(shell $(CC) -dumpmachine)))
PROTECT := $(if $(filter x86_64,$(ARCH)),-fcf-protection=full,-mbranch-protection=standard -mno-outline-atomics)
SHIM_CFLAGS = -fPIC -fvisibility=hidden -ftls-model=initial-exec -fno-omit-frame-pointer -fno-stack-protector \
	$(addprefix -fno-builtin-,malloc calloc realloc free memalign aligned_alloc posix_memalign) $(PROTECT) $(CUDA_CFLAGS)
SHIM_LDFLAGS := -shared -nostartfiles -Wl,-soname,libsparktrace.so,-Bsymbolic-functions \
	-Wl,-z,defs,-z,nodelete,-z,noexecstack,-z,now,-z,text
SHIM_SRC := $(wildcard preload/shim/*.[cS] preload/shim/$(ARCH)/*.[cS])
SHIM_OBJ := $(SHIM_SRC:%=$(O)/%.o)

shim: $(O)/libsparktrace.so
$(O)/libsparktrace.so: $(SHIM_OBJ)
	$(call say,LINK)$(CC) $(SHIM_LDFLAGS) $(LDFLAGS) -o $@ $^
$(O)/preload/shim/%.o: EXTRA = $(SHIM_CFLAGS)

# --- the recorder: a process beside it --------------------------------------------------------------
RECORDER_SRC := $(wildcard preload/recorder/*.c)
RECORDER_OBJ := $(RECORDER_SRC:%=$(O)/%.o)
RECORDER_LIBS := -lzstd -lelf -ldl

recorder: $(O)/sparktrace-recorder
$(O)/sparktrace-recorder: $(RECORDER_OBJ)
	$(call say,LINK)$(CC) $(LDFLAGS) -o $@ $^ $(RECORDER_LIBS)

# --- the analyzer; `pack` writes traces with the recorder's own writer ------------------------------
ANALYZER_SRC := $(wildcard analyzer/*.c)
ANALYZER_OBJ := $(ANALYZER_SRC:%=$(O)/%.o)
ANALYZER_LIBS := -lzstd -ljansson -lm
TRACE_OBJ := $(O)/preload/recorder/trace.c.o

analyzer: $(O)/sparktrace-analyze
$(O)/sparktrace-analyze: $(ANALYZER_OBJ) $(TRACE_OBJ)
	$(call say,LINK)$(CC) $(LDFLAGS) -o $@ $^ $(ANALYZER_LIBS)

# --- tests: unit programs link the product's own objects, never a second compile of them ------------
UNIT := $(patsubst tests/unit/%.c,$(O)/tests/unit/%,$(wildcard tests/unit/test_*.c))
VICTIM := $(patsubst %.c,$(O)/%,$(wildcard tests/victim/*.c))
TOOLS := $(patsubst %.c,$(O)/%,$(wildcard tests/tools/*.c))
BENCH := $(patsubst %.c,$(O)/%,$(wildcard tests/bench/*.c))
LIBS := $(O)/libanalyzer.a $(O)/librecorder.a $(O)/libshim.a

# The simulated CUDA libraries (target simcuda) and the rules of victims that link them.
include tests/simcuda/Makefile.inc

$(O)/libshim.a: $(SHIM_OBJ)
$(O)/librecorder.a: $(filter-out %/main.c.o,$(RECORDER_OBJ))
$(O)/libanalyzer.a: $(filter-out %/main.c.o,$(ANALYZER_OBJ))
$(LIBS):
	@rm -f $@
	$(call say,AR)$(AR) rcs $@ $^
$(UNIT): $(O)/tests/unit/%: $(O)/tests/unit/%.c.o $(LIBS)
	$(call say,LINK)$(CC) $(LDFLAGS) -o $@ $< $(LIBS) -lcmocka $(ANALYZER_LIBS) $(RECORDER_LIBS) -lpthread
$(O)/tests/unit/%.o: EXTRA = $(CUDA_CFLAGS)
# Headers of the interpreter, where they are installed.
PYTHON_INCLUDE = $(shell $(PYTHON) -c 'import sysconfig; print(sysconfig.get_paths()["include"])' 2>/dev/null)
$(O)/tests/unit/test_python_layout.c.o: EXTRA = $(PYTHON_INCLUDE:%=-isystem %)

# Victims, tools and loops of the benchmark: plain C programs.
$(O)/tests/%: $(O)/tests/%.c.o
	$(call say,LINK)$(CC) $(LDFLAGS) -o $@ $< -ldl -lpthread

$(O)/tests/bench/make_trace: %: %.c.o $(TRACE_OBJ)
	$(call say,LINK)$(CC) $(LDFLAGS) -o $@ $^ -lzstd
$(O)/tests/bench/replay: %: %.c.o $(O)/libanalyzer.a
	$(call say,LINK)$(CC) $(LDFLAGS) -o $@ $^ $(ANALYZER_LIBS)

# What scripts of tests/run need, whether they start the product or not.
unit: $(UNIT)
test-programs: all $(VICTIM) $(TOOLS) simcuda

check-fast: $(UNIT) analyzer
	@scripts/run-tests $(UNIT) tests/loaders/kept.sh
check-now: $(UNIT) test-programs
	@scripts/run-tests $(UNIT) tests/loaders/kept.sh $(TESTS)
loaders-now: test-programs
	@scripts/run-tests tests/loaders/check.sh tests/loaders/repairs.sh tests/loaders/shows.sh
demo-now: test-programs
	@tests/demo/run
bench-now: test-programs $(BENCH)
	@scripts/bench

# The second make starts after bootstrap has brought what the first one did not find.
check:
	@scripts/bootstrap build test python
	@$(MAKE) --no-print-directory check-now
check-loaders:
	@scripts/bootstrap build test python loaders
	@$(MAKE) --no-print-directory loaders-now
check-long:
	@scripts/bootstrap build test python
	@LONG=1 KILL_ROUNDS=1000 $(MAKE) --no-print-directory check-now
demo:
	@scripts/bootstrap build python
	@$(MAKE) --no-print-directory demo-now
bench:
	@scripts/bootstrap build test python bench
	@$(MAKE) --no-print-directory bench-now
lint:
	@scripts/bootstrap build test lint
	@$(MAKE) --no-print-directory all $(UNIT:%=%.c.o)
	@scripts/run-tests $(sort $(wildcard scripts/lint/*))
check-arm64:
	@scripts/bootstrap build test arm64
	@scripts/run-tests scripts/check-arm64
check-gpu:
	@scripts/run-tests scripts/check-gpu
check-fresh:
	@scripts/bootstrap fresh
	@scripts/run-tests scripts/check-fresh
format:
	@scripts/lint/format --write
docs: all
	@scripts/lint/docs --write

# --- fuzzing: what reads files of others once more, with clang's sanitizers -----------------------------
FUZZ := $(patsubst tests/fuzz/%.c,$(O)/fuzz/%,$(wildcard tests/fuzz/*.c))
FUZZ_RECORDER := trace table source json safetensors gguf zip torchzip pickle pickle_do pickle_torch pickle_value index
FUZZ_OBJ := $(patsubst %,$(O)/fuzz/%.o,$(filter-out analyzer/main.c,$(ANALYZER_SRC)) $(FUZZ_RECORDER:%=preload/recorder/%.c))

$(O)/fuzz/%.c.o: %.c | $(O)/.have-build
	@mkdir -p $(@D)
	$(call say,CLANG)$(CLANG) $(OUR_CFLAGS) -O1 -g -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover -c -o $@ $<
$(O)/fuzz/libanalyzer.a: $(FUZZ_OBJ)
	@rm -f $@
	$(call say,AR)$(AR) rcs $@ $^
$(FUZZ): $(O)/fuzz/%: $(O)/fuzz/tests/fuzz/%.c.o $(O)/fuzz/libanalyzer.a
	$(call say,CLANG)$(CLANG) -fsanitize=fuzzer,address,undefined -o $@ $^ $(ANALYZER_LIBS)
fuzz: $(FUZZ)
	@FUZZ_SECONDS=$(FUZZ_SECONDS) scripts/run-tests scripts/run-fuzz

# --- compiling --------------------------------------------------------------------------------------
$(O)/%.c.o: %.c | $(O)/.have-build
	@mkdir -p $(@D)
	$(call say,CC)$(CC) $(OUR_CFLAGS) $(EXTRA) $(CFLAGS) -c -o $@ $<
$(O)/%.S.o: %.S | $(O)/.have-build
	@mkdir -p $(@D)
	$(call say,CC)$(CC) $(OUR_CFLAGS) $(EXTRA) $(CFLAGS) -c -o $@ $<

# Says in a sentence which header is missing, before the compiler says it in twenty.
$(O)/.have-%: scripts/packages scripts/need
	@mkdir -p $(@D)
	@scripts/need $* $(CC) $(CFLAGS) $(CUDA_CFLAGS)
	@touch $@
$(UNIT:%=%.c.o): | $(O)/.have-test

# --- installing: the shim looks for the recorder beside itself, then in ../libexec/sparktrace --------
install: all
	install -D -m 755 $(O)/libsparktrace.so $(DESTDIR)$(PREFIX)/lib/libsparktrace.so
	install -D -m 755 $(O)/sparktrace-recorder $(DESTDIR)$(PREFIX)/libexec/sparktrace/sparktrace-recorder
	install -D -m 755 $(O)/sparktrace-analyze $(DESTDIR)$(PREFIX)/bin/sparktrace-analyze
	install -D -m 644 include/sparktrace/sparktrace.h $(DESTDIR)$(PREFIX)/include/sparktrace/sparktrace.h
	$(REFRESH_LOADER)
# In a folder of its own, which ld.so never looks into by itself: nothing shadows a real driver by accident.
SIM_INSTALLED = $(DESTDIR)$(PREFIX)/lib/sparktrace-sim
install-sim: simcuda
	install -d $(SIM_INSTALLED) $(DESTDIR)$(PREFIX)/bin
	install -m 755 $(filter-out %/libcudart.so,$(SIMCUDA)) $(SIM_INSTALLED)
	ln -sf libcudart.so.13 $(SIM_INSTALLED)/libcudart.so
	install -m 755 tests/simcuda/sparktrace-sim $(DESTDIR)$(PREFIX)/bin/sparktrace-sim
uninstall:
	rm -f $(DESTDIR)$(PREFIX)/lib/libsparktrace.so $(addprefix $(DESTDIR)$(PREFIX)/bin/,sparktrace-analyze sparktrace-sim)
	rm -rf $(DESTDIR)$(PREFIX)/libexec/sparktrace $(DESTDIR)$(PREFIX)/include/sparktrace $(SIM_INSTALLED)
	$(REFRESH_LOADER)
# So that LD_PRELOAD=libsparktrace.so is found by its bare name.
REFRESH_LOADER = @if [ -z "$(DESTDIR)" ] && [ "$$(id -u)" = 0 ]; then ldconfig; fi

clean:
	rm -rf $(O)

.PHONY: all shim recorder analyzer unit test-programs check-fast check-now check loaders-now check-loaders check-long demo demo-now bench \
	bench-now lint check-arm64 check-gpu check-fresh format docs fuzz install install-sim uninstall clean
.SECONDARY:
.DELETE_ON_ERROR:
-include $(shell find $(O) -type f -name '*.d' 2>/dev/null)
