/* SPDX-License-Identifier: MIT */
/*
 * Exits of the functions of hostile modules, for libFuzzer.
 *
 * Whatever the input: no fault, an end in reasonable time, and what is promised
 * of a function that is known holds: each return in its body is an exit, each
 * exit an instruction of its body, and jumps that are exits lead out of it.
 */
#include <stdlib.h>
#include <string.h>

#include "plan/exits.h"

#define CHECK(x)                 \
	do {                     \
		if (!(x))        \
			abort(); \
	} while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CODE 0x401000UL

struct head {
	uint8_t nr_funcs, nr_relocs, nr_pads, flags;
	uint16_t func[8][2];
	uint16_t reloc[4][2];
	uint16_t pad[4][2];
};

struct input {
	struct head h;
	const uint8_t *code;
	size_t size;
	struct plan_bounds func[8];
	struct plan_reloc reloc[4];
	struct plan_pad pad[4];
};

static size_t read_data(void *arg, uint64_t addr, void *buf, size_t len)
{
	const struct input *in = arg;
	uint64_t off = addr - CODE - in->size;

	if (off >= in->size)
		return 0;
	if (len > in->size - off)
		len = in->size - off;
	memcpy(buf, in->code + off, len);
	return len;
}

static bool cfa(void *arg, uint64_t pc, unsigned int *reg, int64_t *off)
{
	const struct input *in = arg;

	*reg = 7;
	*off = pc & in->h.flags ? 16 : 8;
	return !(in->h.flags & 64 && pc & 1);
}

static bool is_bare(void *arg, uint64_t pc)
{
	unsigned int reg;
	int64_t off;

	return cfa(arg, pc, &reg, &off) && off == 8;
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
	for (size_t i = 0; i < m.nr_funcs; i++) {
		const uint16_t *f = in->h.func[i];

		in->func[i] =
			(struct plan_bounds){ CODE + f[0], CODE + f[0] + f[1], f[1] & 1, f[1] & 2 };
	}
	for (size_t i = 0; i < m.nr_relocs; i++)
		in->reloc[i] =
			(struct plan_reloc){ CODE + in->h.reloc[i][0], CODE + in->h.reloc[i][1] };
	for (size_t i = 0; i < 4; i++)
		in->pad[i] = (struct plan_pad){ CODE + in->h.pad[i][0], CODE + in->h.pad[i][1] };
	qsort(in->func, m.nr_funcs, sizeof(in->func[0]), by_start);
	qsort(in->reloc, m.nr_relocs, sizeof(in->reloc[0]), by_start);
	if (!(in->h.flags & 1))
		qsort(in->pad, 4, sizeof(in->pad[0]), by_start);
	m.func = in->func;
	m.reloc = in->reloc;
	m.fixed = in->h.flags & 2;
	m.bare_stack = is_bare;
	return m;
}

static bool inside(const struct plan_range *r, uint32_t n, uint64_t addr)
{
	for (uint32_t i = 0; i < n; i++)
		if (addr >= r[i].start && addr < r[i].end)
			return true;
	return false;
}

static const struct plan_way_out *way_at(const struct plan_way_out *w, uint32_t n, uint64_t addr)
{
	for (uint32_t i = 0; i < n; i++)
		if (w[i].addr == addr)
			return &w[i];
	return NULL;
}

static void check_known(const struct input *in, const struct plan_targets *t,
                        const struct plan_exits *x, const struct plan_function *f)
{
	const struct plan_way_out *w = plan_exits_ways(x, f);
	const struct plan_range *r = plan_exits_body(x, f);
	uint32_t tails = 0, no_room = 0;

	CHECK(r && inside(r, f->nr_ranges, f->start));
	for (uint32_t i = 0; i < f->nr_exits; i++) {
		CHECK(!i || w[i].addr > w[i - 1].addr);
		CHECK(inside(r, f->nr_ranges, w[i].addr) && plan_targets_boundary(t, w[i].addr));
		CHECK(is_bare((void *)in, w[i].addr) || (in->h.flags & 64 && w[i].addr & 1));
		CHECK(w[i].kind != PLAN_WAY_TAIL || !inside(r, f->nr_ranges, w[i].target));
		CHECK(!w[i].window || w[i].addr - w[i].window < PLAN_WINDOW_LONG);
		CHECK(!w[i].window == (w[i].no_room != PLAN_WINDOW_OK));
		tails += w[i].kind != PLAN_WAY_RET;
		no_room += !w[i].window;
	}
	CHECK(tails == f->nr_tails && no_room == f->nr_no_room);
	for (uint32_t i = 0; i < f->nr_ranges; i++)
		for (uint64_t a = r[i].start; a < r[i].end; a++)
			if (plan_targets_boundary(t, a) && in->code[a - CODE] == 0xc3)
				CHECK(way_at(w, f->nr_exits, a));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct plan_exits_request req = { .cfa = cfa, .nr_pads = 4 };
	struct plan_targets *t;
	struct plan_exits *x;
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
	req.targets = t;
	req.module = &m;
	req.pad = in.pad;
	if (!plan_exits_new(&x, &req)) {
		const struct plan_function *f = plan_exits_all(x, &n);

		CHECK(n <= m.nr_funcs);
		for (size_t i = 0; i < n; i++) {
			CHECK(f[i].why < PLAN_EXITS_REASONS);
			CHECK(plan_exits_find(x, f[i].start) == &f[i]);
			CHECK(!f[i].nr_exits == (f[i].why != PLAN_EXITS_OK));
			if (!f[i].why)
				check_known(&in, t, x, &f[i]);
		}
		plan_exits_free(x);
	}
	plan_targets_free(t);
	return 0;
}
