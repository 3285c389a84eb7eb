# SPDX-License-Identifier: MIT
# How things are built; what is built is in the Makefile.

# What runs on a hit lies in a section of its own, which is the blacklist for
# probes on ourselves (tests/lint/hit_section.sh).
hit_section := objcopy --rename-section .text=ukp_hit_text

define free_rule
$(O)/obj/$(1)/%.c.o: src/$(1)/%.c
	@mkdir -p $$(@D)
	$$(CC) $$(free) $$(if $$(filter fuzzwire,$$(SAN)$(1)),$$(san)) -c -o $$@ $$<
	@$$(hit_section) $$@
$(O)/obj/$(1)/%.S.o: src/$(1)/%.S
	@mkdir -p $$(@D)
	$$(CC) $$(free) -c -o $$@ $$<
	@$$(hit_section) $$@
endef
$(foreach z,$(free_zones) agent/in,$(eval $(call free_rule,$(z))))

$(free_plan): $(O)/obj/%.c.o: src/%.c
	@mkdir -p $(@D)
	$(CC) $(free) -c -o $@ $<
	@$(hit_section) $@

$(O)/obj/%.c.o: src/%.c
	@mkdir -p $(@D)
	$(CC) $(hosted) $(san) -c -o $@ $<

$(O)/obj/%.S.o: src/%.S
	@mkdir -p $(@D)
	$(CC) $(hosted) -I$(O) -c -o $@ $<

$(free_objs): build.mk

# --- tests -------------------------------------------------------------------
# tests/unit/<zone>/test_*.c: one cmocka program each, linked with everything.

unit_src  := $(wildcard tests/unit/*/test_*.c)
unit_bin  := $(patsubst tests/%.c,$(O)/tests/%,$(unit_src))
test_libs := -lcmocka $(LIBS)

$(O)/test.a: $(hosted_objs) $(front_objs) $(free_objs)
	@rm -f $@
	@ar rcs $@ $(filter-out %/front/main.c.o,$^)

$(O)/tests/unit/%: tests/unit/%.c $(O)/test.a
	@mkdir -p $(@D)
	$(CC) $(hosted) $(san) -Itests -o $@ $< $(O)/test.a $(test_libs)

# The front is tested on a fake session: its object comes before the archive, so
# that the real one is not taken.
$(O)/tests/unit/front/fake_session.o: tests/unit/front/fake_session.c
	@mkdir -p $(@D)
	$(CC) $(hosted) $(san) -c -o $@ $<

$(O)/tests/unit/front/%: tests/unit/front/%.c $(O)/tests/unit/front/fake_session.o $(O)/test.a
	@mkdir -p $(@D)
	$(CC) $(hosted) $(san) -Itests -o $@ $< $(O)/tests/unit/front/fake_session.o \
		$(O)/test.a $(test_libs)

unit: $(unit_bin)
	@tests/run.sh $(unit_bin)

# Under ASan and UBSan: what runs in our own processes and reads foreign bytes.
san_bin := $(filter $(O)/tests/unit/plan/% $(O)/tests/unit/sym/% $(O)/tests/unit/lang/% \
	$(O)/tests/unit/wire/% $(O)/tests/unit/base/% $(O)/tests/unit/front/%,$(unit_bin))
san-tests: $(san_bin)

# Fuzz drivers, run for FUZZ_SECONDS each on the kept corpus.
FUZZ_SECONDS ?= 7
fuzz_bin := $(patsubst tests/fuzz/%.c,$(O)/tests/fuzz/%,$(wildcard tests/fuzz/fuzz_*.c))

$(O)/fuzz.a: $(hosted_objs) $(free_objs)
	@rm -f $@
	@ar rcs $@ $^

$(O)/tests/fuzz/%: tests/fuzz/%.c $(O)/fuzz.a
	@mkdir -p $(@D)
	$(CC) $(hosted) -Itests -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all $(wrap) -o $@ $< $(O)/fuzz.a $(LIBS)

# Files of /proc are the driver's.
$(O)/tests/fuzz/fuzz_proc: wrap := $(addprefix -Wl$(comma)--wrap=,open fopen readlink usleep)

fuzzers: $(fuzz_bin)

.PHONY: all unit san-tests fuzzers

# --- the agent ---------------------------------------------------------------
# Linked at 0; tests/lint/agent.sh links it elsewhere too and compares, so that
# nothing in it can depend on where it runs.

agent_in := $(call obj_of,engine) $(call obj_of,engine/x86) $(agent_objs)

$(O)/agent.elf: $(agent_in) src/agent/agent.lds
	$(CC) -nostdlib -static -Wl,--build-id=none -Wl,-T,src/agent/agent.lds -o $@ $(agent_in)

$(O)/agent.bin: $(O)/agent.elf
	objcopy -O binary -j .text $< $@

$(O)/obj/agent/image.S.o: $(O)/agent.bin

# --- the products ------------------------------------------------------------

lib_objs := $(hosted_objs) $(free_objs)

$(O)/ukprobe: $(front_objs) $(lib_objs)
	$(CC) $(san) $(LDFLAGS) -o $@ $^ $(LIBS)

# --- the front door ----------------------------------------------------------

demo:
	@scripts/deps.sh build demo
	@$(MAKE) --no-print-directory -s $(O)/ukprobe
	@O=$(O) scripts/demo.sh

.PHONY: demo


lint := $(wildcard tests/lint/*.sh)
e2e  := $(filter-out tests/e2e/lib.sh tests/e2e/run.sh,$(wildcard tests/e2e/*.sh))

# Everything, the bench included, is built by gcc and by clang without a warning, then all tests run:
# lint, unit, unit under sanitizers, fuzzers for some seconds, scenarios, and
# the command on real programs.  Of what can't be installed here only some tests
# may have need: these say so.
check:
	@scripts/deps.sh build
	@scripts/deps.sh demo check bench || echo "check: goes on without these"
	@$(MAKE) --no-print-directory -s -j2 WERROR=-Werror all $(unit_bin) $(scenario_bin) $(bench_bin)
	@$(MAKE) --no-print-directory -s -j2 WERROR=-Werror CC=clang O=$(O)/clang all
	@$(MAKE) --no-print-directory -s -j2 WERROR=-Werror SAN=1 O=$(O)/san san-tests
	@$(MAKE) --no-print-directory -s -j2 WERROR=-Werror CC=clang SAN=fuzz O=$(O)/fuzz fuzzers
	@O=$(O) FUZZ_SECONDS=$(FUZZ_SECONDS) tests/run.sh $(lint) $(unit_bin) \
		$(patsubst $(O)/%,$(O)/san/%,$(san_bin)) tests/fuzz/run.sh $(scenario_bin) $(e2e) tests/torture/quick.sh

.PHONY: check

# --- the bench ---------------------------------------------------------------
# bench/target.c and floor_int3.c are what is measured in; the rest measures.

$(O)/bench/target: bench/target.c bench/floor_int3.c bench/target.h
	@mkdir -p $(@D)
	$(CC) -std=gnu11 -O2 -g -D_GNU_SOURCE $(warn) -o $@ bench/target.c bench/floor_int3.c

$(O)/bench/library: bench/floor_jump.S bench/floor.inc
$(O)/bench/returns: bench/floor_return.S bench/floor.inc

$(O)/bench/scale_target: bench/scale_target.c
	@mkdir -p $(@D)
	$(CC) -std=gnu11 -O2 -g -D_GNU_SOURCE $(warn) -o $@ $< -ldl -lpthread

$(O)/bench/many.so: bench/many.sh
	@mkdir -p $(@D)
	bench/many.sh | $(CC) -shared -nostdlib -x assembler - -o $@

$(O)/bench/%: bench/%.c bench/child.c bench/uprobe.c bench/bench.h $(O)/test.a
	@mkdir -p $(@D)
	$(CC) $(filter-out -MMD -MP,$(hosted)) -o $@ $(filter %.c %.S %.a,$^) $(LIBS) -lelf

bench_bin := $(addprefix $(O)/bench/,target hits stop_time jump library returns flat many.so ring scale scale_target)

bench:
	@scripts/deps.sh build bench
	@scripts/deps.sh peers || true
	@$(MAKE) --no-print-directory -s $(O)/ukprobe $(bench_bin)
	@O=$(O) bench/run.sh

.PHONY: bench

# A probe on every instruction of whole modules, and the long runs of other tests:
# tests/torture/long.list names them.
torture_bin := $(sort $(subst $$O,$(O),$(filter $$O/%,$(shell cat tests/torture/long.list))))

torture:
	@scripts/deps.sh build demo check torture
	@$(MAKE) --no-print-directory -s -j2 all $(torture_bin)
	@O=$(O) tests/torture/run.sh

clean:
	rm -rf $(O)

.PHONY: torture clean

# --- the library -------------------------------------------------------------

SONAME := libukprobes.so.0

# Its handlers stay installed: it must never be unloaded, not even with the plugin that brought it.
$(O)/$(SONAME): $(lib_objs) src/lib/libukprobes.map
	$(CC) $(san) -shared -Wl,-soname,$(SONAME) -Wl,--version-script,src/lib/libukprobes.map \
		-Wl,-z,relro,-z,now,-z,nodelete -Wl,--no-undefined $(LDFLAGS) -o $@ $(lib_objs) $(LIBS)

$(O)/libukprobes.so: $(O)/$(SONAME)
	ln -sf $(SONAME) $@

$(O)/libukprobes.a: $(lib_objs)
	@rm -f $@
	ar rcs $@ $^

# Made anew for each PREFIX.
$(O)/prefix: FORCE
	@echo '$(PREFIX)' | cmp -s - $@ || echo '$(PREFIX)' > $@

$(O)/obj/session/connect.c.o: $(O)/prefix

$(O)/ukprobes.pc: src/lib/ukprobes.pc.in $(O)/prefix
	sed 's|@PREFIX@|$(PREFIX)|; s|@VERSION@|$(VERSION)|; s|@LIBS@|$(filter-out -ljson-c,$(LIBS))|' $< > $@

install: $(O)/ukprobe $(O)/libukprobes.so $(O)/libukprobes.a $(O)/ukprobes.pc
	install -d $(addprefix $(DESTDIR)$(PREFIX)/,bin lib/pkgconfig include/ukprobes \
		share/man/man1 share/man/man7 share/ukprobes/gdb)
	install -m 755 $(O)/ukprobe $(DESTDIR)$(PREFIX)/bin
	install -m 755 $(O)/$(SONAME) $(DESTDIR)$(PREFIX)/lib
	ln -sf $(SONAME) $(DESTDIR)$(PREFIX)/lib/libukprobes.so
	install -m 644 $(O)/libukprobes.a $(DESTDIR)$(PREFIX)/lib
	install -m 644 $(O)/ukprobes.pc $(DESTDIR)$(PREFIX)/lib/pkgconfig
	install -m 644 include/ukprobes/*.h $(DESTDIR)$(PREFIX)/include/ukprobes
	install -m 644 docs/man/*.1 $(DESTDIR)$(PREFIX)/share/man/man1
	sed -i 's|@PREFIX@|$(PREFIX)|' $(DESTDIR)$(PREFIX)/share/man/man1/ukprobe.1
	install -m 644 docs/man/*.7 $(DESTDIR)$(PREFIX)/share/man/man7
	install -m 644 gdb/ukprobes.py $(DESTDIR)$(PREFIX)/share/ukprobes/gdb

.PHONY: install

# --- scenarios: programs that use the library as installed ----------------------

scenario_bin := $(patsubst tests/%.c,$(O)/tests/%,$(wildcard tests/scenario/*.c))
sample_bin   := $(patsubst samples/%.c,$(O)/samples/%,$(wildcard samples/*.c))
as_user      := -std=gnu11 -O2 -g $(warn) -D_GNU_SOURCE -Iinclude -MMD -MP
use_lib      := -L$(O) -lukprobes -Wl,-rpath,$(abspath $(O))

$(O)/tests/scenario/%: tests/scenario/%.c $(O)/libukprobes.so
	@mkdir -p $(@D)
	$(CC) $(as_user) -o $@ $< $(use_lib) -lcmocka -lpthread

$(O)/samples/%: samples/%.c $(O)/libukprobes.so
	@mkdir -p $(@D)
	$(CC) $(as_user) -o $@ $< $(use_lib)

scenarios: $(scenario_bin) $(sample_bin)
	@set -e; for t in $(scenario_bin); do echo "== $$t"; $$t; done
	@sh tests/lint/hit_section.sh $(O)/libukprobes.so

.PHONY: scenarios FORCE

