# SPDX-License-Identifier: MIT
#
#   make            build/ukprobe and build/libukprobes.{so,a}
#   make demo       installs what is missing, builds, shows the main job
#   make check      installs what is missing, builds, runs the tests
#   make bench      ratios against the kernel's uprobes and the int3 floor
#   make torture    the long tests
#   make install    PREFIX, DESTDIR
#
# A file is built because it lies in its zone's folder: no lists.

ifeq ($(origin CC),default)
CC       := gcc
endif
PREFIX   ?= /usr/local
O        ?= build
VERSION  := 0.1.0
# SAN=1: AddressSanitizer and UBSan for hosted code; SAN=fuzz: for fuzz drivers too
SAN      ?=
WERROR   ?=

MAKEFLAGS += --no-builtin-rules

warn     := -Wall -Wextra -Wstrict-prototypes -Wmissing-prototypes -Wno-unused-parameter $(WERROR)
common   := -std=gnu11 -O2 -g $(warn) -Isrc -Iinclude -MMD -MP -fPIC
hosted   := $(common) -D_GNU_SOURCE -fvisibility=hidden -DUKP_PREFIX='"$(PREFIX)"' -DUKP_VERSION='"$(VERSION)"'
# What runs on a hit: no libc, no TLS, no vector registers, no red zone.
free     := $(common) -ffreestanding -mgeneral-regs-only -mno-red-zone -fno-stack-protector \
            -fcf-protection=none -fno-asynchronous-unwind-tables -fno-builtin -fvisibility=hidden \
            $(if $(findstring clang,$(CC)),,-fno-tree-loop-distribute-patterns)
comma    := ,
san      := $(if $(SAN),-fsanitize=$(if $(filter fuzz,$(SAN)),fuzzer-no-link$(comma))address$(comma)undefined \
            -fno-sanitize-recover=undefined -fno-omit-frame-pointer)
LIBS     := -lZydis -lZycore -ljson-c -lpthread

free_zones   := engine engine/x86 wire lib/hit lib/still lib/x86
hosted_zones := base plan plan/x86 sym lang inject inject/x86 patch session front lib agent

src_of    = $(wildcard src/$(1)/*.c src/$(1)/*.S)
obj_of    = $(patsubst src/%,$(O)/obj/%.o,$(call src_of,$(1)))
# Planned outside, done inside: of the planner only this runs on hits.
free_plan    := $(O)/obj/plan/x86/emulate.c.o
free_objs   := $(foreach z,$(free_zones),$(call obj_of,$(z))) $(free_plan)
agent_objs  := $(patsubst src/%,$(O)/obj/%.o,$(wildcard src/agent/in/*.c src/agent/in/*.S))
hosted_objs := $(filter-out $(free_plan),$(foreach z,$(filter-out front,$(hosted_zones)),$(call obj_of,$(z))))
front_objs  := $(call obj_of,front)

all: $(O)/ukprobe $(O)/libukprobes.so $(O)/libukprobes.a

include build.mk

-include $(shell find $(O) -name '*.d' 2>/dev/null)
