# make help lists the targets.
#
# A configuration is a compiler with flags and a folder of its own: make CONFIG=asan programs builds everything in build/asan.
CONFIG  ?= native
B       ?= build$(if $(filter-out native,$(CONFIG)),/$(CONFIG))
JOBS    ?= $(shell getconf _NPROCESSORS_ONLN)
PYTHON  ?= python3
PREFIX  ?= /usr/local
MINUTES ?= 10
HOST    := $(shell uname -m)

# gcc's conversion warnings see less of a value's range under sanitizers; the plain configurations have them
SANITIZE     := -O1 -fno-omit-frame-pointer -fno-sanitize-recover=all -Wno-conversion -Wno-sign-conversion
CC_native    := gcc
CC_static    := gcc
CC_uchar     := gcc
CC_clang     := clang
CC_asan      := gcc
CC_ubsan     := clang
CC_tsan      := gcc
CC_fuzz      := clang
CC_i686      := i686-linux-gnu-gcc
CC_arm64     := $(if $(filter aarch64,$(HOST)),gcc,aarch64-linux-gnu-gcc)
EXTRA_uchar  := -funsigned-char
EXTRA_asan   := $(SANITIZE) -fsanitize=address,undefined
EXTRA_ubsan  := $(SANITIZE) -fsanitize=undefined,float-cast-overflow
EXTRA_tsan   := $(SANITIZE) -fsanitize=thread
EXTRA_fuzz   := $(SANITIZE) -fsanitize=fuzzer-no-link,address,undefined
# the single files: small but for the kernels, no tables for unwinding, no indirection for shared libraries
OPT_static   := -Os
OPT_arm64    := -Os
EXTRA_static := -fno-pic -fno-asynchronous-unwind-tables
EXTRA_arm64  := $(EXTRA_static)
EXTRA_i686   := -msse2 -mfpmath=sse
LINK_static  := -static -s -Wl,-z,noseparate-code,--sort-section=alignment,-T,tools/static.ld
LINK_i686    := -static
LINK_arm64   := $(LINK_static)

ifneq ($(filter default undefined,$(origin CC)),)
CC      := $(CC_$(CONFIG))
endif
AR      ?= ar
OPT     ?= $(or $(OPT_$(CONFIG)),-O2)
EXTRA   ?= $(EXTRA_$(CONFIG))
LINK    ?= $(LINK_$(CONFIG))
WERROR  ?=
CSTD    := -std=c11 -D_GNU_SOURCE -D_FILE_OFFSET_BITS=64
WARN    := -Wall -Wextra -Wpedantic -Wshadow -Wconversion $(WERROR)
# -ffp-contract=off: one stated rounding everywhere; see docs/DESIGN.md
FLAGS    = $(CSTD) $(OPT) -g -ffp-contract=off -fno-math-errno -fvisibility=hidden -fPIC -ffunction-sections -fdata-sections \
           -DPINCH_BUILD -Iinclude -Isrc $(WARN) $(EXTRA)
# -pthread: a compiler for Android knows that its C library holds the threads and that there is no libpthread
LIBS    := -Wl,--gc-sections -lm -pthread
ARCH    := $(shell $(CC) -dumpmachine 2>/dev/null | cut -d- -f1)

ROOMS   := base gguf quant kernels kernels/scalar sched graph models state sample token chat engine
ROOMS   += $(if $(filter x86_64,$(ARCH)),kernels/x86) $(if $(filter aarch64,$(ARCH)),kernels/neon)
SRC     := $(wildcard $(addprefix src/,$(addsuffix /*.c,$(ROOMS))))
CLI     := $(wildcard src/cli/*.c)
OBJ     := $(SRC:%.c=$(B)/%.o)
CLIOBJ  := $(CLI:%.c=$(B)/%.o)
# tests/<room>_<what>.c is one program, tests/fuzz/<room>_fuzz.c one fuzz target; both are linked with the library
TESTS   := $(patsubst %.c,$(B)/%,$(wildcard tests/*.c))
FUZZERS := $(patsubst tests/%.c,$(B)/%,$(wildcard tests/fuzz/*_fuzz.c))

# instruction levels belong to files, by suffix
$(B)/%_avx2.o:    ISA := -mavx2 -mfma -mf16c
$(B)/%_avx512.o:  ISA := -mavx512f -mavx512bw -mavx512vl -mavx512dq -mavx512vnni -mfma -mf16c -mavx2
$(B)/%_dotprod.o: ISA := -march=armv8.2-a+dotprod

$(B)/src/kernels/scalar/%.o $(B)/src/kernels/x86/%.o $(B)/src/kernels/neon/%.o: OPT := -O3
# gcc's -O3 unrolls its sums into 8 KB each, which run at two thirds of the speed
$(B)/src/kernels/scalar/blocks_scalar.o: OPT := -O2

all: $(B)/pinch $(B)/libpinch.a $(B)/libpinch.so ## the program and the library

$(B)/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(FLAGS) $(ISA) -MMD -MP -c -o $@ $<
$(B)/libpinch.a: $(OBJ)
	@rm -f $@
	$(AR) rcs $@ $^
$(B)/libpinch.so: $(OBJ)
	$(CC) -shared $(EXTRA) -Wl,-soname,libpinch.so -o $@ $^ $(LIBS)
$(B)/pinch: $(CLIOBJ) $(B)/libpinch.a
	$(CC) $(EXTRA) $(LINK) -o $@ $^ $(LIBS)

$(B)/tests/%: $(B)/tests/%.o $(B)/libpinch.a
	$(CC) $(EXTRA) $(LINK) $(WRAP) -o $@ $^ $(LIBS)
# failure injection, counting: the test's own __wrap_ functions stand before these
$(B)/tests/engine_failures: WRAP := $(foreach f,malloc calloc realloc mmap64 munmap pread64,-Wl,--wrap=$(f))
$(B)/tests/gguf_failures: WRAP := $(foreach f,malloc calloc realloc mmap64 pread64,-Wl,--wrap=$(f))
$(B)/tests/sample_distribution: WRAP := $(foreach f,malloc calloc realloc,-Wl,--wrap=$(f))
$(B)/fuzz/%: $(B)/tests/fuzz/%.o $(if $(filter-out fuzz,$(CONFIG)),$(B)/tests/fuzz/replay.o) $(B)/libpinch.a
	@mkdir -p $(@D)
	$(CC) $(EXTRA) $(if $(filter fuzz,$(CONFIG)),-fsanitize=fuzzer) $(LINK) -o $@ $^ $(LIBS)

# for cycle models: symbols stay
$(B)/bench/%: $(B)/bench/%.o $(B)/libpinch.a
	$(CC) $(EXTRA) -static -o $@ $^ $(LIBS)

programs: $(TESTS) $(if $(filter asan,$(CONFIG)),$(FUZZERS)) $(B)/pinch ## every test program of a configuration
fuzzers: $(FUZZERS)

check: ## under a minute, no download: the house and every test program
	@$(PYTHON) tests/run.py house native
test: ## everything; installs what it needs
	@sh tools/test-needs.sh
	@$(PYTHON) tests/run.py all
clang uchar asan ubsan tsan i686 fuzz-replay: ## the test programs in one configuration
	@$(PYTHON) tests/run.py $@
qemu: ## aarch64 test programs on emulated cortex-a53, cortex-a76 and max
	@$(PYTHON) tests/run.py qemu-a53 qemu-a76 qemu-max
fuzz: ## each fuzz target for MINUTES= (10), new finds beside the corpus in build/fuzz
	@$(MAKE) --no-print-directory -j$(JOBS) CONFIG=fuzz fuzzers
	@$(PYTHON) tests/fuzz/fuzz.py $(MINUTES)

static: ## build/pinch-static: one x86-64 file that needs nothing
	@$(MAKE) --no-print-directory -j$(JOBS) CONFIG=static build/static/pinch
	@cp build/static/pinch build/pinch-static && ls -l build/pinch-static
arm64: ## build/pinch-arm64: one aarch64 file that needs nothing
	@$(MAKE) --no-print-directory -j$(JOBS) CONFIG=arm64 build/arm64/pinch
	@cp build/arm64/pinch build/pinch-arm64 && ls -l build/pinch-arm64

demo: ## builds, fetches a small model once and talks with it; MODEL=path for another
	@$(MAKE) --no-print-directory -j$(JOBS) all
	@PYTHON="$(PYTHON)" sh tools/demo.sh $(B)/pinch "$(MODEL)"
bench: ## speed of MODEL= on this machine
	@$(MAKE) --no-print-directory -j$(JOBS) all
	@$(B)/pinch bench -m "$(or $(MODEL),$(error say which model: make bench MODEL=path))"
install: all ## into PREFIX= (/usr/local)
	install -D -t $(DESTDIR)$(PREFIX)/bin $(B)/pinch
	install -D -m 644 -t $(DESTDIR)$(PREFIX)/lib $(B)/libpinch.a $(B)/libpinch.so
	install -D -m 644 -t $(DESTDIR)$(PREFIX)/include include/pinch.h

help: ## this list
	@grep -hE '^[a-z0-9 -]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 52
clean: ## removes build/
	rm -rf build
.PHONY: all programs fuzzers check test clang uchar asan ubsan tsan i686 fuzz-replay qemu fuzz static arm64 demo bench install help clean
.SECONDARY:
-include $(OBJ:.o=.d) $(CLIOBJ:.o=.d) $(TESTS:=.d) $(wildcard $(B)/tests/fuzz/*.d)
