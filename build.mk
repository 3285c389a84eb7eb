# SPDX-License-Identifier: MIT
# How things are built; what is built is in the Makefile.

define free_rule
$(O)/obj/$(1)/%.c.o: src/$(1)/%.c
	@mkdir -p $$(@D)
	$$(CC) $$(free) -c -o $$@ $$<
$(O)/obj/$(1)/%.S.o: src/$(1)/%.S
	@mkdir -p $$(@D)
	$$(CC) $$(free) -c -o $$@ $$<
endef
$(foreach z,$(free_zones) agent/in,$(eval $(call free_rule,$(z))))

$(O)/obj/%.c.o: src/%.c
	@mkdir -p $(@D)
	$(CC) $(hosted) $(san) -c -o $@ $<

$(O)/obj/%.S.o: src/%.S
	@mkdir -p $(@D)
	$(CC) $(hosted) -I$(O) -c -o $@ $<

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
	@set -e; for t in $(unit_bin); do echo "== $$t"; $$t; done

.PHONY: all unit

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
