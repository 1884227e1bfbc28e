# make help lists the targets.
CC      ?= gcc
AR      ?= ar
B       ?= build
OPT     ?= -O3
CSTD    := -std=c11 -D_GNU_SOURCE
WARN    := -Wall -Wextra -Wpedantic -Wshadow -Wconversion
# -ffp-contract=off: one stated rounding everywhere; see docs/DESIGN.md
FLAGS   := $(CSTD) $(OPT) -g -ffp-contract=off -fno-math-errno -fvisibility=hidden -fPIC -DPINCH_BUILD -Iinclude -Isrc $(WARN) $(EXTRA)
ARCH    := $(shell $(CC) -dumpmachine | cut -d- -f1)

ROOMS   := base gguf quant kernels kernels/scalar sched graph models state sample token chat engine
ifeq ($(ARCH),x86_64)
ROOMS   += kernels/x86
endif
ifeq ($(ARCH),aarch64)
ROOMS   += kernels/neon
endif
SRC     := $(wildcard $(addprefix src/,$(addsuffix /*.c,$(ROOMS))))
CLI     := $(wildcard src/cli/*.c)
OBJ     := $(SRC:%.c=$(B)/%.o)
CLIOBJ  := $(CLI:%.c=$(B)/%.o)

# instruction levels belong to files, by suffix
$(B)/%_avx2.o:    ISA := -mavx2 -mfma -mf16c
$(B)/%_avx512.o:  ISA := -mavx512f -mavx512bw -mavx512vl -mavx512dq -mavx512vnni -mfma -mf16c -mavx2
$(B)/%_dotprod.o: ISA := -march=armv8.2-a+dotprod

all: $(B)/pinch $(B)/libpinch.a $(B)/libpinch.so ## the program and the library

$(B)/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(FLAGS) $(ISA) -MMD -MP -c -o $@ $<

$(B)/libpinch.a: $(OBJ)
	@rm -f $@
	$(AR) rcs $@ $^
$(B)/libpinch.so: $(OBJ)
	$(CC) -shared $(EXTRA) -o $@ $^ -lm -lpthread
$(B)/pinch: $(CLIOBJ) $(B)/libpinch.a
	$(CC) $(EXTRA) -o $@ $^ -lm -lpthread

# tests/<room>_<what>.c is one program, linked with the library
TESTS   := $(wildcard tests/*.c)
$(B)/tests/%: $(B)/tests/%.o $(B)/libpinch.a
	$(CC) $(EXTRA) -o $@ $^ -lm -lpthread

help: ## this list
	@grep -hE '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 16
clean: ## removes build/
	rm -rf $(B)
.PHONY: all help clean
.SECONDARY:
-include $(OBJ:.o=.d) $(CLIOBJ:.o=.d)
