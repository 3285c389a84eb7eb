/* SPDX-License-Identifier: MIT */
/*
 * Target sets, windows and detours of hostile modules, for libFuzzer.
 *
 * Whatever the input: no fault, an end in reasonable time, and what is promised
 * of a window holds: nothing in it is a target, it lies in one region, its
 * detour's map is in order and leads back into the window; and a set made for one
 * region misses nothing that the whole module's set has there.
 */
#include <stdlib.h>
#include <string.h>

#include "plan/detour.h"

#define CHECK(x)                 \
	do {                     \
		if (!(x))        \
			abort(); \
	} while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CODE 0x401000UL

struct head {
	uint8_t nr_funcs, nr_relocs, flags, data;
	uint32_t saves;
	uint16_t func[8][2];
	uint16_t reloc[4][2];
};

struct input {
	struct head h;
	const uint8_t *code;
	size_t size;
	struct plan_bounds func[8];
	struct plan_reloc reloc[4];
};

/* Read-only data: the code itself, further on. */
static size_t read_data(void *arg, uint64_t addr, void *buf, size_t len)
{
	const struct input *in = arg;
	uint64_t off = addr - CODE - (in->h.data & 1 ? 0 : in->size);

	if (off >= in->size)
		return 0;
	if (len > in->size - off)
		len = in->size - off;
	memcpy(buf, in->code + off, len);
	return len;
}

static bool is_bare(void *arg, uint64_t pc)
{
	return pc & ((struct input *)arg)->h.flags;
}

static int by_start(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static struct plan_module make(struct input *in, const struct plan_code *text)
{
	struct plan_module m = { .code = text, .nr_code = 1, .read = read_data, .arg = in };

	m.nr_funcs = in->h.nr_funcs % 9;
	m.nr_relocs = in->h.nr_relocs % 5;
	for (size_t i = 0; i < m.nr_funcs; i++)
		in->func[i] = (struct plan_bounds){ CODE + in->h.func[i][0],
			                            CODE + in->h.func[i][0] + in->h.func[i][1],
			                            in->h.func[i][1] & 1, in->h.func[i][1] & 2 };
	for (size_t i = 0; i < m.nr_relocs; i++)
		in->reloc[i] =
			(struct plan_reloc){ CODE + in->h.reloc[i][0], CODE + in->h.reloc[i][1] };
	if (in->h.flags & 1) {
		qsort(in->func, m.nr_funcs, sizeof(in->func[0]), by_start);
		qsort(in->reloc, m.nr_relocs, sizeof(in->reloc[0]), by_start);
	}
	m.func = in->func;
	m.reloc = in->reloc;
	m.fixed = in->h.flags & 2;
	m.bare_stack = in->h.flags & 4 ? is_bare : NULL;
	return m;
}

static void check_detour(const struct input *in, const struct plan_window *w, uint64_t addr)
{
	static struct plan_detour d;
	struct plan_detour_request req = {
		.code = in->code + (addr - CODE),
		.addr = addr,
		.window = w,
		.buf = CODE + 0x100000,
		.engine = CODE + 0x200000,
		.entry = CODE + 0x200100,
		.form = { in->h.saves, in->h.flags & 8, in->h.flags & 16, in->h.flags & 32 },
		.probes = in->h.data,
	};
	struct ukp_detour_frame f;

	if (plan_detour(&req, &d))
		return;
	CHECK(d.d.size <= PLAN_DETOUR_MAX && d.d.npc <= UKP_DETOUR_PCS);
	for (unsigned int i = 1; i < d.d.npc; i++)
		CHECK(d.pc[i].off > d.pc[i - 1].off);
	for (unsigned int i = 0; i < d.d.npc; i++)
		CHECK(ukp_detour_frame(&d.d, &d.shape, d.d.buf + d.pc[i].off, 0, &f));
	for (unsigned int i = 0; i < w->nr; i++) {
		uint64_t at = ukp_detour_park(&d.d, addr + w->insn[i].off);

		CHECK(i ? at - d.d.buf < d.d.size : at == addr);
		CHECK(ukp_detour_frame(&d.d, &d.shape, d.d.buf + d.d.insn[i].copy, 0, &f));
		/* a nop has the place of what is behind it */
		CHECK(f.pc >= addr + w->insn[i].off && f.pc <= addr + w->len && !f.saved);
	}
}

static void check_windows(const struct input *in, const struct plan_targets *t)
{
	for (uint64_t a = CODE; a < CODE + in->size; a++) {
		size_t left = (size_t)(CODE + in->size - a);
		struct plan_window_request req = { t, in->code + (a - CODE),
			                           left < PLAN_WINDOW_MAX ? left : PLAN_WINDOW_MAX,
			                           a, NULL };
		struct plan_window w;

		if (!plan_window(&req, &w)) {
			CHECK(w.why && plan_window_reason((enum plan_window_why)w.why)[0]);
			continue;
		}
		CHECK(w.nr && w.nr <= UKP_WINDOW_INSNS && w.len <= w.covered && w.covered >= 5);
		CHECK(w.covered <= left && plan_targets_boundary(t, a));
		CHECK(!plan_targets_any(t, a + 1, a + 5));
		CHECK(plan_targets_region(t, a) == plan_targets_region(t, a + w.len - 1));
		CHECK(!(plan_targets_region(t, a)->flags & PLAN_REGION_BROKEN));
		check_detour(in, &w, a);
	}
}

/* Made for a region alone, a set knows of each target in it, but for tables in far parts. */
static void check_near(const struct plan_module *m, const struct plan_targets *t, uint64_t addr)
{
	const struct plan_region *r = plan_targets_region(t, addr), *g;
	struct plan_targets *one;
	uint64_t from, to;

	if (!r || plan_targets_near(&one, m, addr))
		return;
	g = plan_targets_region(one, addr);
	CHECK(g && g->start == r->start && g->end == r->end && !g->flags && !r->flags);
	plan_targets_range(one, &from, &to);
	CHECK(from == r->start && to >= r->end);
	for (uint64_t a = from; a < to; a++)
		CHECK(!plan_targets_any(t, a, a + 1) || plan_targets_any(one, a, a + 1));
	for (uint64_t a = from; a < r->end; a++)
		CHECK(plan_targets_boundary(t, a) == plan_targets_boundary(one, a));
	plan_targets_free(one);
}

static void check_all_near(const struct plan_module *m, const struct plan_targets *t)
{
	size_t i;

	for (i = 0; i < m->nr_funcs; i++)
		if (m->func[i].part)
			return;
	for (i = 0; i < m->nr_funcs; i++)
		check_near(m, t, m->func[i].start);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct plan_targets *t;
	struct plan_module m;
	struct input in;
	size_t n;

	if (size < sizeof(in.h) || size > sizeof(in.h) + 4096)
		return 0;
	memcpy(&in.h, data, sizeof(in.h));
	in.code = data + sizeof(in.h);
	in.size = size - sizeof(in.h);

	struct plan_code text = { CODE, in.code, in.size };

	m = make(&in, &text);
	if (plan_targets_new(&t, &m))
		return 0;
	check_windows(&in, t);
	check_all_near(&m, t);
	plan_targets_exits(t, 0, UINT64_MAX, &n);
	CHECK(n <= 2 * in.size);
	plan_targets_free(t);
	return 0;
}
