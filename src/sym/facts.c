/* SPDX-License-Identifier: MIT */
/* Making and owning the facts of a module; its parts are made elsewhere. */
#include "sym/facts_in.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/pause.h"

#define CFA_BUDGET (UINT64_C(1) << 28)

int facts_spend(struct facts *f, uint64_t bytes)
{
	if (bytes > f->budget)
		return -EFBIG;
	f->budget -= bytes;
	return 0;
}

int facts_add_extra(struct facts *f, uint64_t addr)
{
	if (!facts_code(f, addr))
		return 0;
	if (f->nr_extra == FACTS_MAX)
		return -EFBIG;
	if (sym_grow(&f->extra, &f->room_extra, f->nr_extra, sizeof(*f->extra)))
		return -ENOMEM;
	f->extra[f->nr_extra++] = addr;
	return 0;
}

/* The block that has an offset; how many bytes of it are there from the offset on. */
static uint64_t block_at(struct facts *f, uint64_t off, const uint8_t **bytes)
{
	if (off - f->block_off >= f->block_len) {
		f->block_off = off & ~(FACTS_BLOCK - 1);
		f->block_len = f->img->size - f->block_off;
		if (f->block_len > FACTS_BLOCK)
			f->block_len = FACTS_BLOCK;
		if (image_read(f->img, f->block_off, f->block, f->block_len))
			f->block_len = 0;
	}
	if (off - f->block_off >= f->block_len)
		return 0;
	*bytes = f->block + (off - f->block_off);
	return f->block_len - (off - f->block_off);
}

size_t facts_fetch(struct facts *f, uint64_t addr, void *buf, size_t len)
{
	uint64_t off, avail, n;
	const uint8_t *bytes;
	size_t done = 0;

	if (!image_offset(f->img, addr, &off, &avail))
		return 0;
	len = len < avail ? len : (size_t)avail;
	if (len >= FACTS_BLOCK)
		return image_read(f->img, off, buf, len) ? 0 : len;
	while (done < len) {
		n = block_at(f, off + done, &bytes);
		if (!n)
			break;
		n = n < len - done ? n : len - done;
		memcpy((uint8_t *)buf + done, bytes, n);
		done += n;
	}
	return done;
}

static int copy_image(struct facts *f, const struct image *img)
{
	void *bytes;
	int fd;

	if (img->fd >= 0) {
		fd = fcntl(img->fd, F_DUPFD_CLOEXEC, 0);
		return fd < 0 ? -errno : image_from_fd(&f->img, fd);
	}
	bytes = image_load(img, 0, img->size);
	return bytes ? image_from_buffer(&f->img, bytes, img->size, true) : -ENOMEM;
}

static int by_value(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	pause_point();
	return *x < *y ? -1 : *x > *y;
}

static int by_func(const void *a, const void *b)
{
	const struct sym_facts_pad *x = a, *y = b;

	if (x->func != y->func)
		return x->func < y->func ? -1 : 1;
	return x->addr < y->addr ? -1 : x->addr > y->addr;
}

static void publish(struct facts *f)
{
	struct sym_facts *p = &f->pub;

	if (f->nr_extra)
		qsort(f->extra, f->nr_extra, sizeof(*f->extra), by_value);
	if (f->nr_pads)
		qsort(f->pad, f->nr_pads, sizeof(*f->pad), by_func);
	p->code = f->code;
	p->nr_code = f->nr_code;
	p->func = f->func;
	p->nr_funcs = f->nr_funcs;
	p->reloc = f->reloc;
	p->nr_relocs = f->nr_relocs;
	p->extra = f->extra;
	p->nr_extra = f->nr_extra;
	p->pad = f->pad;
	/* what is only needed to make them */
	free(f->unfit);
	free(f->sites);
	free(f->symbol);
	f->unfit = NULL;
	f->sites = NULL;
	f->symbol = NULL;
	p->bytes += sizeof(*f) + FACTS_BLOCK + f->room_code * sizeof(*f->code) +
	            f->room_funcs * sizeof(*f->func) + f->room_relocs * sizeof(*f->reloc) +
	            f->room_extra * sizeof(*f->extra) + f->room_pads * sizeof(*f->pad) +
	            f->room_fdes * sizeof(*f->fde) + (f->frames.buf ? f->frames.size : 0);
}

/*
 * Go's goroutines return to behind the first instruction of runtime.goexit, an address
 * that is computed when they begin: a call behind a nop that is there for that alone.
 */
static int behind_nops(struct facts *f)
{
	uint8_t code[2];
	size_t i;
	int r = 0;

	for (i = 0; i < f->nr_funcs && !r; i++)
		if (facts_fetch(f, f->func[i].start, code, 2) == 2 && code[0] == 0x90 &&
		    code[1] == 0xe8)
			r = facts_add_extra(f, f->func[i].start + 1);
	return r;
}

int facts_make(struct facts *f)
{
	const uint64_t size = f->img->size < IMAGE_LOAD_MAX ? f->img->size : IMAGE_LOAD_MAX;
	int r;

	f->cfa.fde = SIZE_MAX;
	f->cfa_budget = CFA_BUDGET;
	f->budget = 2 * size;
	f->pub.fixed = f->img->eh.e_type == ET_EXEC;
	f->block = malloc(FACTS_BLOCK);
	if (!f->block)
		return -ENOMEM;
	r = facts_text(f);
	if (!r)
		r = facts_funcs(f);
	f->pub.nr_pads = f->nr_extra;
	if (!r)
		r = facts_add_extra(f, f->img->eh.e_entry);
	if (!r)
		r = facts_relocs(f);
	if (!r)
		r = facts_labels(f);
	if (!r)
		r = behind_nops(f);
	if (!r)
		publish(f);
	return r;
}

int sym_facts_open(struct sym_module *m, struct sym_facts **ret, struct err *err)
{
	struct facts *f;
	int r;

	*ret = NULL;
	if (!m->img || !m->img->trusted)
		return err_set(err, -ENOENT, "%s: its file is gone or unreadable", m->path);
	f = calloc(1, sizeof(*f));
	r = f ? copy_image(f, m->img) : -ENOMEM;
	if (!r)
		r = facts_symbols(f, module_symbols(m));
	if (!r && !(f->path = strdup(m->path)))
		r = -ENOMEM;
	if (r) {
		sym_facts_free(f ? &f->pub : NULL);
		return err_set(err, r, "%s: %s", m->path, strerror(-r));
	}
	*ret = &f->pub;
	return 0;
}

int sym_facts_load(struct sym_facts *facts, struct err *err)
{
	struct facts *f = (struct facts *)facts;
	int r = facts_make(f);

	return r ? err_set(err, r, "%s: cannot tell where its code may be entered: %s", f->path,
	                   strerror(-r))
	         : 0;
}

int sym_facts(struct sym_module *m, struct sym_facts **ret, struct err *err)
{
	int r = sym_facts_open(m, ret, err);

	if (r)
		return r;
	r = sym_facts_load(*ret, err);
	if (r) {
		sym_facts_free(*ret);
		*ret = NULL;
	}
	return r;
}

void sym_facts_free(struct sym_facts *facts)
{
	struct facts *f = (struct facts *)facts;

	if (!f)
		return;
	for (size_t i = 0; i < f->nr_code; i++)
		free((void *)f->code[i].bytes);
	free(f->code);
	free(f->func);
	free(f->reloc);
	free(f->extra);
	free(f->frames.buf);
	free(f->fde);
	free(f->unfit);
	free(f->block);
	free(f->sites);
	free(f->pad);
	free(f->symbol);
	free(f->path);
	image_free(f->img);
	free(f);
}

size_t sym_facts_read(struct sym_facts *facts, uint64_t addr, void *buf, size_t len)
{
	struct facts *f = (struct facts *)facts;
	const Elf64_Phdr *ph = image_segment(f->img, addr);

	if (!ph || (ph->p_flags & PF_W) || f->textrel)
		return 0;
	return facts_fetch(f, addr, buf, len);
}

bool sym_facts_bare_stack(struct sym_facts *facts, uint64_t pc)
{
	return facts_bare_stack((struct facts *)facts, pc);
}

bool sym_facts_cfa(struct sym_facts *facts, uint64_t pc, unsigned int *reg, int64_t *off)
{
	const struct cfa_rule *rule = facts_cfa((struct facts *)facts, pc);

	if (!rule || rule->reg > UINT8_MAX)
		return false;
	*reg = (unsigned int)rule->reg;
	*off = rule->off;
	return true;
}
