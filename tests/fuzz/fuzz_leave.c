/* SPDX-License-Identifier: MIT */
/*
 * The control area that is found in a process, of any content, and its memory:
 * whoever takes out what a killed broker has left believes neither.  It must come
 * to its end, and read and write the area within its bounds.
 *
 * The input: two threads' registers, the area's head, whose magic and the like are made
 * good, some mappings, and the rest; the process's memory is the same once more.
 */
#include <stdlib.h>
#include <string.h>

#include "sym/internal.h"
#undef PAGE /* restore.c has its own */

#include "session/inside.c"
#include "session/leave.c"
#include "session/leave_signals.c"
#include "session/restore.c"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define BASE 0x10000u
#define THREADS 2
#define MAPS 4
#define HEAD offsetof(struct ukp_ctl, mapping)

const unsigned char agent_image[4096], agent_image_end[1];

static struct inject_thread threads[THREADS];
static uint8_t *memory;
static size_t memory_len;
static unsigned long work;

/* What a hostile area can make us do is bounded by its size. */
static void worked(size_t n)
{
	work += n;
	if (work > (1ul << 30))
		abort();
}

static uint8_t *at(uint64_t addr, size_t len)
{
	worked(len + 64);
	return addr >= BASE && len <= memory_len && addr - BASE <= memory_len - len
	               ? memory + (addr - BASE)
	               : NULL;
}

int inject_read(struct inject *t, uint64_t addr, void *buf, size_t len)
{
	const uint8_t *p = at(addr, len);

	if (p)
		memcpy(buf, p, len);
	return p ? 0 : -EIO;
}

int inject_write(struct inject *t, uint64_t addr, const void *buf, size_t len)
{
	uint8_t *p = at(addr, len);

	if (p)
		memcpy(p, buf, len);
	return p ? 0 : -EIO;
}

int inject_begin(struct inject *t, struct err *err)
{
	return 0;
}

void inject_end(struct inject *t)
{
}

int inject_breathe(struct inject *t, unsigned int us, struct err *err)
{
	return us ? -ETIMEDOUT : 0;
}

int inject_calls(struct inject *t, struct inject_call *v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		v[i].ret = 0;
	worked(n);
	return 0;
}

long inject_syscall(struct inject *t, long nr, long a, long b, long c, long d, long e, long f)
{
	return 0;
}

void inject_use_runner(struct inject *t, uint64_t addr)
{
}

uint64_t inject_scratch(struct inject *t, size_t len)
{
	return BASE;
}

pid_t inject_pid(const struct inject *t)
{
	return 1;
}

size_t inject_nr_threads(const struct inject *t)
{
	return THREADS;
}

struct inject_thread *inject_thread_at(struct inject *t, size_t i)
{
	return &threads[i];
}

bool inject_pending(const struct inject *t, size_t i, int sig, int code)
{
	return false;
}

int inject_set_mask(struct inject *t, size_t i, uint64_t mask)
{
	return 0;
}

int inject_set_regs(struct inject *t, size_t i, const struct user_regs_struct *regs)
{
	threads[i].regs = *regs;
	return 0;
}

uint64_t inject_region_end(struct inject *t, uint64_t addr)
{
	return addr >= BASE && addr < BASE + memory_len ? BASE + memory_len : 0;
}

bool optimize_leads(const struct target *t, uint64_t pc, uint64_t *to)
{
	return false;
}

uint64_t target_frames(const struct target *t, struct ukp_frames *laid_out)
{
	return 0;
}

uint64_t target_area_size(void)
{
	return 1u << 30;
}

/* It reads /proc. */
void leave_copies(struct leave *l)
{
}

static const uint8_t *take(const uint8_t **data, size_t *size, size_t n)
{
	const uint8_t *p = *data;

	if (*size < n)
		return NULL;
	*data += n;
	*size -= n;
	return p;
}

/* Within the rest mostly, and on a boundary. */
static uint32_t inside(uint32_t off, size_t rest)
{
	return off % 16 == 15 ? off : (uint32_t)(sizeof(struct ukp_ctl) + off % (rest + 1) / 8 * 8);
}

/* The head's fields, some mappings, and what comes behind it. */
static struct ukp_ctl *make_area(const uint8_t *data, size_t size, size_t *len)
{
	const uint8_t *head = take(&data, &size, HEAD);
	const uint8_t *maps = head ? take(&data, &size, MAPS * sizeof(struct ukp_mapping)) : NULL;
	struct ukp_ctl *area = maps ? calloc(1, sizeof(*area) + size) : NULL;

	if (!area)
		return NULL;
	*len = sizeof(*area) + size;
	memcpy(area, head, HEAD);
	memcpy(area->mapping, maps, MAPS * sizeof(struct ukp_mapping));
	memcpy(area + 1, data, size);
	area->magic = UKP_CTL_MAGIC;
	area->version = UKP_CTL_VERSION;
	area->size = UKP_CTL_SIZE;
	area->self = BASE;
	area->nr_mappings = 1 + area->nr_mappings % MAPS;
	area->mapping[0].kind = UKP_MAP_TEXT;
	area->sites = inside(area->sites, size);
	area->detours = inside(area->detours, size);
	area->priv = area->priv % 8 ? area->priv : BASE + sizeof(*area);
	area->next_free = (uint32_t)*len;
	return area;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t *regs = take(&data, &size, sizeof(uint32_t) * 2 * THREADS);
	struct err err = ERR_INIT;
	struct sym_proc sym = { 0 };
	struct ukp_ctl *area;
	uint32_t word[2];
	size_t i;

	area = regs ? make_area(data, size, &memory_len) : NULL;
	if (!area)
		return 0;
	memory = malloc(memory_len);
	if (!memory)
		abort();
	memcpy(memory, area, memory_len);
	for (i = 0; i < THREADS; i++) {
		memcpy(word, regs + i * sizeof(word), sizeof(word));
		threads[i].regs.rip = BASE + word[0] % (2 * memory_len);
		threads[i].regs.rsp = BASE + word[1] % memory_len;
	}
	work = 0;
	leave_target(NULL, &sym, area, area, memory_len, true, &err);
	free(area);
	free(memory);
	return 0;
}
