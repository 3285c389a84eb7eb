/* SPDX-License-Identifier: MIT */
/*
 * One instruction, once in place and once out of line, from the same state.
 *
 * Everything that the program could see must come out the same: registers,
 * flags, vectors, memory with the red zone, the next pc, and for a fault its
 * signal and, through the PC map, its pc and sp.
 *
 *	LOW + CODE	int3 but for the instruction	HIGH + CODE	the same
 *	LOW + SLOTS	int3 but for its copy		HIGH + SLOTS
 *	LOW + DATA	where pointers point		LOW + STACK
 *
 * Text is r-x there, written by another mapping of it, so that no random write
 * changes code.
 */
#ifndef TESTS_PLAN_TRIAL_H
#define TESTS_PLAN_TRIAL_H

#include <Zydis/Zydis.h>

#include "plan/detour.h"
#include "unit/plan/cpu.h"

#define LOW 0x40000000UL
#define HIGH 0x200000000000UL
#define CODE 0x0UL
#define SLOTS 0x4000000UL
#define DATA (LOW + 0x8000000UL)
#define STACK (LOW + 0xc000000UL)
#define TEXT_SIZE 0x2000UL
#define DATA_SIZE 0x2000UL

struct trial {
	uint8_t code[15];
	unsigned int n;
	uint64_t addr, slot, post;
	ZydisDecodedInstruction z;
	ZydisDecodedOperand ops[ZYDIS_MAX_OPERAND_COUNT];
	struct cpu cpu;
	struct xstate x;
	uint8_t data[DATA_SIZE], stack[DATA_SIZE];
};

struct tally {
	unsigned long run, fault, branch, post, far, borrowed, emulated, refused, again;
	unsigned long why[PLAN_REFUSALS];
};

static struct tally tally;
static uint64_t trial_rng;

static inline uint64_t rnd(void)
{
	trial_rng ^= trial_rng << 13;
	trial_rng ^= trial_rng >> 7;
	trial_rng ^= trial_rng << 17;
	return trial_rng * 0x2545f4914f6cdd1dUL;
}

static inline uint64_t below(uint64_t n)
{
	return (rnd() >> 16) % n;
}

static inline void trial_map(uint64_t at, uint64_t size)
{
	void *p = mmap((void *)at, size, PROT_READ | PROT_WRITE,
	               MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

	if (p != (void *)at) {
		perror("mmap");
		exit(1);
	}
}

static struct {
	uint64_t at;
	uint8_t *rw;
} arenas[4];

static inline void arena_map(unsigned int i, uint64_t at)
{
	int fd = memfd_create("text", 0);
	void *p = MAP_FAILED;

	if (fd >= 0 && !ftruncate(fd, TEXT_SIZE))
		p = mmap((void *)at, TEXT_SIZE, PROT_READ | PROT_EXEC,
		         MAP_SHARED | MAP_FIXED_NOREPLACE, fd, 0);
	arenas[i].at = at;
	arenas[i].rw = mmap(NULL, TEXT_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (p != (void *)at || arenas[i].rw == MAP_FAILED) {
		perror("mmap");
		exit(1);
	}
	close(fd);
	memset(arenas[i].rw, 0xcc, TEXT_SIZE);
}

static inline void poke(uint64_t at, const void *bytes, size_t n)
{
	for (unsigned int i = 0; i < 4; i++)
		if (at - arenas[i].at < TEXT_SIZE)
			memcpy(arenas[i].rw + (at - arenas[i].at), bytes, n);
}

static inline void wipe(uint64_t at, size_t n)
{
	uint8_t fill[PLAN_DETOUR_MAX];

	memset(fill, 0xcc, sizeof(fill));
	poke(at, fill, n);
}

static inline int trial_setup(void **state)
{
	const char *seed = getenv("UKP_TEST_SEED"); /* to look further than each check does */

	trial_rng = seed ? strtoul(seed, NULL, 0) | 1 : 0x756b70726f626573UL;
	printf("seed %#lx\n", trial_rng);
	arena_map(0, LOW + CODE);
	arena_map(1, LOW + SLOTS);
	arena_map(2, HIGH + CODE);
	arena_map(3, HIGH + SLOTS);
	trial_map(DATA, DATA_SIZE);
	trial_map(STACK, DATA_SIZE);
	cpu_setup();
	return 0;
}

/* An address in the code's arena that is not in the instruction. */
static inline uint64_t trial_target(const struct trial *t)
{
	return (t->addr & ~(TEXT_SIZE - 1)) + (t->addr & 0x1000 ? 0x100 : 0x1800) + below(256);
}

/* Random memory, half of its words addresses of int3s; random registers and vectors. */
static inline void trial_state(struct trial *t)
{
	alarm(900); /* an instruction that jumps to itself must not hang the tests */
	cpu_take_signals();
	for (unsigned int i = 0; i < DATA_SIZE; i += 8) {
		uint64_t d = rnd() & 1 ? trial_target(t) : rnd();
		uint64_t s = rnd() & 1 ? trial_target(t) : rnd();

		memcpy(t->data + i, &d, 8);
		memcpy(t->stack + i, &s, 8);
	}
	for (unsigned int i = 0; i < XSIZE; i += 8) {
		uint64_t v = rnd();

		memcpy(t->x.b + i, &v, 8);
	}
	memset(t->x.b + 512, 0, 64);
	t->x.b[512] = (uint8_t)(cpu_xcr0() & 0xe7);
	memset(t->x.b, 0, 32);
	t->x.b[0] = 0x7f; /* fcw 0x37f: all masked */
	t->x.b[1] = 0x03;
	t->x.b[3] = (uint8_t)(rnd() & 0x38); /* top */
	t->x.b[4] = (uint8_t)rnd();          /* which st are in use */
	t->x.b[24] = 0x80;
	t->x.b[25] = (uint8_t)(0x1f | (rnd() & 0x60)); /* mxcsr, any rounding */
}

static inline uint64_t trial_pointer(void)
{
	return DATA + DATA_SIZE / 2 + (rnd() & 1 ? below(24) * 64 : below(512));
}

static inline int trial_gpr(ZydisRegister r)
{
	if (r == ZYDIS_REGISTER_NONE || r == ZYDIS_REGISTER_RIP || r == ZYDIS_REGISTER_EIP)
		return -1;
	r = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, r);
	if (ZydisRegisterGetClass(r) != ZYDIS_REGCLASS_GPR64)
		return -1;
	return ZydisRegisterGetId(r);
}

static inline void trial_put_disp(struct trial *t, int64_t disp)
{
	memcpy(t->code + t->z.raw.disp.offset, &disp, t->z.raw.disp.size / 8);
}

/* Let one memory operand lead into DATA; an operand by rsp stays on the stack. */
static inline bool trial_pin(struct trial *t, const ZydisDecodedOperandMem *m, uint64_t fsbase)
{
	int base = trial_gpr(m->base), index = trial_gpr(m->index);
	uint64_t seg = m->segment == ZYDIS_REGISTER_FS ? fsbase : 0;
	bool rip = m->base == ZYDIS_REGISTER_RIP || m->base == ZYDIS_REGISTER_EIP;

	if (index >= 0 && index == base && t->z.address_width == 32)
		return false; /* nine times a pointer, cut to 32 bits: anywhere */
	if (m->base == ZYDIS_REGISTER_EIP && t->addr >= HIGH)
		return false;
	if (seg && (base < 0 || base == 4 || t->z.address_width == 32))
		return false;
	if (m->index != ZYDIS_REGISTER_NONE && index < 0) /* vsib: small indices */
		for (int i = 160; i < XSIZE - 8; i += 8) {
			uint64_t v = t->z.raw.disp.size ? 1 : below(64);

			if (i < 512 || i >= 576)
				memcpy(t->x.b + i, &v, 8);
		}
	if (index >= 0 && index != 4)
		t->cpu.gpr[index] = below(32);
	if (base >= 0 && base != 4) /* its upper half is of no account with 32 bits */
		t->cpu.gpr[base] =
			trial_pointer() - seg + (t->z.address_width == 32 ? rnd() << 32 : 0);
	if (!m->disp.has_displacement)
		return true;
	if (rip)
		trial_put_disp(t, (int64_t)(trial_pointer() - t->addr - t->n));
	else if (t->z.raw.disp.size >= 32 && base < 0)
		trial_put_disp(t, (int64_t)trial_pointer());
	else if (t->z.raw.disp.size == 32)
		trial_put_disp(t, (int64_t)below(600) - 300);
	return true;
}

/* A word of DATA or STACK that the instruction will read. */
static inline void trial_plant(struct trial *t, uint64_t at, uint64_t word)
{
	if (at - DATA < DATA_SIZE - 8)
		memcpy(t->data + (at - DATA), &word, 8);
	if (at - STACK < DATA_SIZE - 8)
		memcpy(t->stack + (at - STACK), &word, 8);
}

/* Mostly, let an indirect branch or a return find a place to go. */
static inline void trial_aim(struct trial *t, const struct plan_insn *insn, uint64_t fsbase)
{
	uint64_t at = (uint64_t)insn->disp;

	if (!below(4))
		return;
	if (insn->flow == PLAN_FLOW_RET)
		trial_plant(t, t->cpu.gpr[4], trial_target(t));
	if (insn->reg >= 0 && insn->reg != 4)
		t->cpu.gpr[insn->reg] = trial_target(t);
	if (!insn->mem)
		return;
	if (insn->base >= 0 && insn->base < 16)
		at += t->cpu.gpr[insn->base];
	if (insn->index >= 0)
		at += t->cpu.gpr[insn->index] * insn->scale;
	if (insn->addr32)
		at = (uint32_t)at;
	trial_plant(t, at + (insn->seg == 'f' ? fsbase : 0), trial_target(t));
}

static inline uint64_t trial_flags(void)
{
	return (rnd() & 0xcd5) | 0x202; /* CF PF AF ZF SF DF OF */
}

/* Registers that are harmless for this instruction.  False: it can't be made so. */
static inline bool trial_registers(struct trial *t, uint64_t fsbase)
{
	struct plan_insn insn;

	for (int i = 0; i < 16; i++) {
		unsigned int kind = (unsigned int)below(4);

		t->cpu.gpr[i] = kind == 0 ? below(64) : kind == 1 ? rnd() : trial_pointer();
	}
	t->cpu.gpr[4] = STACK + DATA_SIZE / 2 + 8 * below(32) + (below(8) ? 0 : below(8));
	t->cpu.flags = trial_flags();
	if (t->z.meta.category == ZYDIS_CATEGORY_STRINGOP ||
	    t->z.meta.category == ZYDIS_CATEGORY_IOSTRINGOP)
		t->cpu.gpr[1] = below(40);
	for (int i = 0; i < t->z.operand_count; i++) {
		const ZydisDecodedOperand *op = &t->ops[i];

		if (op->type == ZYDIS_OPERAND_TYPE_MEMORY &&
		    op->mem.type != ZYDIS_MEMOP_TYPE_AGEN && !trial_pin(t, &op->mem, fsbase))
			return false;
	}
	if (plan_decode(t->code, t->n, t->addr, &insn) == PLAN_OK)
		trial_aim(t, &insn, fsbase);
	if (t->z.opcode == 0x9d && t->z.opcode_map == ZYDIS_OPCODE_MAP_DEFAULT) {
		uint64_t flags = trial_flags(); /* popf: no trap flag */

		trial_plant(t, t->cpu.gpr[4], flags);
	}
	if (insn.flow == PLAN_FLOW_LOOP && below(2))
		t->cpu.gpr[1] = below(3) | (below(3) ? 0 : rnd() << 32);
	/* A jump into itself may never end. */
	return insn.target - t->addr >= t->n;
}

static inline void trial_load(const struct trial *t)
{
	memcpy((void *)DATA, t->data, DATA_SIZE);
	memcpy((void *)STACK, t->stack, DATA_SIZE);
}

static inline bool trial_bad(const struct trial *t, const char *what, const struct outcome *a,
                             const struct outcome *b)
{
	printf("DIFFERENT %s:", what);
	for (unsigned int i = 0; i < t->n; i++)
		printf(" %02x", t->code[i]);
	printf("  addr %#lx slot %#lx post %#lx\n", t->addr, t->slot, t->post);
	printf("  signal %d %d pc %#lx %#lx flags %#lx %#lx\n", a->signo, b->signo, a->cpu.pc,
	       b->cpu.pc, a->cpu.flags, b->cpu.flags);
	for (int i = 0; i < 16; i++)
		printf("  r%-2d %#18lx -> %#18lx %#18lx%s\n", i, t->cpu.gpr[i], a->cpu.gpr[i],
		       b->cpu.gpr[i], a->cpu.gpr[i] == b->cpu.gpr[i] ? "" : " !");
	return false;
}

/* Bytes of the stack that the copy alone may change; put right before comparing. */
static inline void trial_forgive(uint64_t at, const uint8_t *stack)
{
	for (uint64_t i = 0; i < 8; i++)
		if (at + i - STACK < DATA_SIZE)
			*(uint8_t *)(at + i) = stack[at + i - STACK];
}

/* Does the copy keep a register below the red zone? */
static inline bool trial_borrows(const struct ukp_site *site)
{
	for (unsigned int i = 0; i < site->npc; i++)
		if (site->pc[i].flags & UKP_PC_SAVED)
			return true;
	return false;
}

/* Where a thread at pc, with o's registers, is in the original. */
static inline bool trial_original(const struct ukp_site *site, uint64_t pc, struct outcome *o)
{
	struct ukp_site_frame f;

	if (!ukp_site_frame(site, pc, o->cpu.gpr[4], &f))
		return false;
	if (f.flags & UKP_PC_SAVED)
		memcpy(&o->cpu.gpr[f.reg], (void *)o->cpu.gpr[4], 8);
	o->cpu.pc = f.pc;
	o->cpu.gpr[4] = f.sp;
	return true;
}

/* What came out of the slot, told as if it had happened in place. */
static inline bool trial_translate(const struct trial *t, const struct ukp_site *site,
                                   struct outcome *b, const uint8_t *stack)
{
	uint64_t ra;

	if (t->post && b->signo == SIGTRAP && b->cpu.pc == t->post + 1 &&
	    (site->flags & UKP_SITE_POST)) {
		memcpy(&ra, (void *)b->cpu.gpr[4], 8);
		trial_forgive(b->cpu.gpr[4], stack);
		if (ra - site->slot >= site->slot_len || !trial_original(site, ra, b))
			return false;
		b->cpu.pc++;
		tally.post++;
		return true;
	}
	if (b->cpu.pc - t->slot >= UKP_SLOT_SIZE)
		return true;
	return b->signo != SIGTRAP && trial_original(site, b->cpu.pc, b);
}

static inline bool trial_emulate(const struct trial *t, const struct plan_insn *insn,
                                 const struct outcome *a, const uint8_t *stack, uint64_t fsbase)
{
	const uint64_t *g = t->cpu.gpr;
	struct pt_regs r = { g[15], g[14], g[13],       g[12], g[5],         g[3], g[11],
		             g[10], g[9],  g[8],        g[0],  g[1],         g[2], g[6],
		             g[7],  -1UL,  t->addr + 1, 0,     t->cpu.flags, g[4], 0 };
	uint64_t next = a->signo == SIGTRAP ? a->cpu.pc - 1 : a->cpu.pc;

	if (a->signo != SIGTRAP && a->cpu.pc == t->addr)
		return true; /* it would fault here too */
	trial_load(t);
	plan_emulate(insn, t->addr, &r, fsbase, 0);
	tally.emulated++;
	return r.ip == next && r.sp == a->cpu.gpr[4] && r.cx == a->cpu.gpr[1] &&
	       r.ax == a->cpu.gpr[0] && r.flags == t->cpu.flags &&
	       !memcmp((void *)STACK, stack, DATA_SIZE);
}

/* The post stub needs memory below sp, and pop %rsp may set sp to anything. */
static inline bool trial_has_stack(uint64_t sp)
{
	return sp - STACK - 256 < DATA_SIZE - 256;
}

/*
 * Run code at pc.  Under some hypervisors an int3 raises #UD once in a million
 * times, which no CPU does: such a run doesn't count.
 */
static inline void trial_execute(struct trial *t, uint64_t pc, struct outcome *o)
{
	t->cpu.pc = pc;
	for (int i = 0; i < 3; i++) {
		trial_load(t);
		cpu_run(&t->cpu, &t->x, o);
		if (o->signo != SIGILL || *(uint8_t *)o->cpu.pc != 0xcc)
			return;
		tally.again++;
	}
}

/* Both runs of a trial that is set up.  False, with a report, where they differ. */
static inline bool trial_run(struct trial *t, uint64_t fsbase)
{
	static struct outcome a, b;
	static uint8_t data[DATA_SIZE], stack[DATA_SIZE];
	struct plan_request req = { t->code, t->n, t->addr, t->slot, t->post };
	struct plan_insn insn;
	struct ukp_site site = { 0 };
	uint8_t out[UKP_SLOT_SIZE];

	enum plan_refusal why = plan_copy(&req, out, &site);

	if (why || plan_decode(t->code, t->n, t->addr, &insn)) {
		tally.refused++;
		tally.why[why]++;
		return !!why;
	}
	poke(t->addr, t->code, t->n);
	trial_execute(t, t->addr, &a);
	if (!trial_has_stack(a.cpu.gpr[4])) {
		t->post = req.post = 0;
		plan_copy(&req, out, &site);
	}
	poke(t->slot, out, sizeof(out));
	memcpy(data, (void *)DATA, DATA_SIZE);
	memcpy(stack, (void *)STACK, DATA_SIZE);
	trial_execute(t, t->slot, &b);
	if (insn.flow == PLAN_FLOW_CALL_IND && a.signo != SIGTRAP)
		trial_forgive(t->cpu.gpr[4] - 8, stack);
	wipe(t->slot, sizeof(out));
	wipe(t->addr, t->n);
	tally.run++;
	tally.fault += a.signo != SIGTRAP;
	tally.branch += insn.flow != PLAN_FLOW_NONE;
	tally.far += t->slot - t->addr + 0x80000000UL > 0xffffffffUL;
	tally.borrowed += trial_borrows(&site);
	if (!trial_translate(t, &site, &b, stack))
		return trial_bad(t, "place in the slot", &a, &b);
	for (unsigned int i = 0; trial_borrows(&site) && i < 2; i++)
		trial_forgive(t->cpu.gpr[4] - 128 - 8 - 8 * i, stack);
	if (memcmp(&a.cpu, &b.cpu, sizeof(a.cpu)) || a.signo != b.signo)
		return trial_bad(t, "registers", &a, &b);
	if (a.signo == SIGSEGV && a.fault != b.fault)
		return trial_bad(t, "fault address", &a, &b);
	if (!cpu_same_vectors(&a.x, &b.x))
		return trial_bad(t, "vector state", &a, &b);
	if (memcmp(data, (void *)DATA, DATA_SIZE) || memcmp(stack, (void *)STACK, DATA_SIZE))
		return trial_bad(t, "memory", &a, &b);
	if (insn.flow != PLAN_FLOW_NONE && !trial_emulate(t, &insn, &a, stack, fsbase))
		return trial_bad(t, "emulation", &a, &b);
	return true;
}

/* Somewhere new: code and slot near or far from each other, above or below 4 GiB. */
static inline void trial_place(struct trial *t, bool post)
{
	unsigned int where = (unsigned int)below(8);

	t->addr = (where & 4 ? HIGH : LOW) + CODE + 0x400 + below(0x1000);
	t->slot = ((where & 4 ? HIGH : LOW) ^ (where & 3 ? 0 : LOW ^ HIGH)) + SLOTS +
	          below(TEXT_SIZE / UKP_SLOT_SIZE) * UKP_SLOT_SIZE;
	t->post = post ? LOW + CODE + 0x1f00 + below(64) : 0;
}

static inline bool trial_decode(struct trial *t, const uint8_t *code, unsigned int avail)
{
	ZydisDecoder d;

	ZydisDecoderInit(&d, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&d, code, avail, &t->z, t->ops)))
		return false;
	t->n = t->z.length;
	memcpy(t->code, code, t->n);
	return true;
}

static inline void trial_report(const char *what)
{
	printf("%s: %lu executed (%lu faults, %lu branches, %lu post stubs, %lu out of reach, "
	       "%lu with a borrowed register, %lu emulated), %lu refused\n",
	       what, tally.run, tally.fault, tally.branch, tally.post, tally.far, tally.borrowed,
	       tally.emulated, tally.refused);
	for (int i = 1; i < PLAN_REFUSALS; i++)
		if (tally.why[i])
			printf("  refused %lu: %s\n", tally.why[i], plan_reason(i));
	if (tally.again)
		printf("%lu runs repeated: #UD where an int3 is\n", tally.again);
	memset(&tally, 0, sizeof(tally));
}

#endif
