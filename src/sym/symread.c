/* SPDX-License-Identifier: MIT */
/*
 * The symbols of one file, as they stand in .symtab and .dynsym, filtered: what
 * is left are functions that lie in executable memory and objects that lie in
 * memory, with printable names.
 */
#include "sym/internal.h"

#include <stdlib.h>
#include <string.h>

#define NAME_LEN_MAX 8192
#define NAME_BYTES_MAX (UINT64_C(1) << 30)
#define MAX_VERSIONS 4096
#define VERSION_LEN_MAX 256

struct table {
	const struct image *main, *img; /* segments are main's, sections the file's own */
	const struct fdes *fdes;
	Elf64_Sym *sym;
	uint64_t nr;
	char *str;
	uint64_t str_size;
	uint16_t *versym; /* NULL: none; nr_versym else */
	uint64_t nr_versym;
	const char **version; /* by index, MAX_VERSIONS */
};

/*
 * Length and hash of a name up to its version; 0 if it is unfit.  Control
 * characters would let a file write to the terminal of whoever lists it.
 */
static uint16_t scan_name(struct symtab *t, const char *name, uint64_t room, uint32_t *hash,
                          const char **version)
{
	uint32_t h = 2166136261u;
	bool fit = true;
	size_t n, bare = 0;

	*version = NULL;
	for (n = 0; n < room && name[n] && fit; n++) {
		unsigned char c = (unsigned char)name[n];

		fit = c >= 0x20 && c != 0x7f && n < NAME_LEN_MAX && (c != '@' || n);
		if (c == '@' && !*version) {
			bare = n;
			*version = name + n + (name[n + 1] == '@' ? 2 : 1);
		}
		if (!*version)
			h = (h ^ c) * 16777619u;
	}
	t->name_bytes += n + 1;
	*hash = h;
	return fit ? (uint16_t)(*version ? bare : n) : 0;
}

uint32_t symtab_hash(const char *name, size_t len)
{
	uint32_t h = 2166136261u;

	for (size_t i = 0; i < len; i++)
		h = (h ^ (unsigned char)name[i]) * 16777619u;
	return h;
}

/* Is it code, is it data, or nothing of interest? */
static bool classify(const struct table *tab, const Elf64_Sym *s, struct symbol *out)
{
	unsigned int type = ELF64_ST_TYPE(s->st_info), bind = ELF64_ST_BIND(s->st_info);
	const Elf64_Phdr *ph = image_segment(tab->main, s->st_value);
	const Elf64_Shdr *sh = NULL;
	const struct fde *fde;
	bool code;

	if (s->st_shndx == SHN_UNDEF || s->st_shndx == SHN_ABS || s->st_shndx == SHN_COMMON || !ph)
		return false;
	code = ph->p_flags & PF_X;
	out->global = bind == STB_GLOBAL || bind == STB_WEAK || bind == STB_GNU_UNIQUE;
	if (s->st_shndx < tab->img->nr_sh) {
		sh = &tab->img->sh[s->st_shndx];
		if (section_is_plt(tab->img, sh))
			return false;
		/* _etext stands behind its section's last byte */
		if (type == STT_NOTYPE &&
		    (!(sh->sh_flags & SHF_EXECINSTR) || s->st_value - sh->sh_addr >= sh->sh_size))
			return false;
	}
	switch (type) {
	case STT_GNU_IFUNC:
		out->ifunc = true;
		/* fallthrough */
	case STT_FUNC:
		out->func = true;
		return code;
	case STT_OBJECT:
		return true;
	case STT_NOTYPE:
		/* Functions in assembler often have no type; local labels aren't functions. */
		out->func = true;
		fde = code ? fdes_find(tab->fdes, s->st_value) : NULL;
		return code && (out->global || (fde && fde->start == s->st_value));
	default:
		return false;
	}
}

static const char *version_of(const struct table *tab, uint64_t i, bool *old)
{
	unsigned int v = i < tab->nr_versym ? tab->versym[i] & 0x7fff : 0;

	*old = i < tab->nr_versym && (tab->versym[i] & 0x8000);
	return tab->version && v < MAX_VERSIONS ? tab->version[v] : NULL;
}

static bool imports(const struct table *tab, const Elf64_Sym *s, const char *name)
{
	const char *at = tab->str + s->st_name;
	size_t len = strlen(name);

	return s->st_shndx == SHN_UNDEF && tab->str_size - s->st_name > len &&
	       !memcmp(at, name, len) && (!at[len] || at[len] == '@');
}

/* Each of them has libc start a thread that does the work. */
static bool imports_aio(const struct table *tab, const Elf64_Sym *s)
{
	static const char *const names[] = { "aio_read",    "aio_read64",   "aio_write",
		                             "aio_write64", "aio_fsync",    "aio_fsync64",
		                             "lio_listio",  "lio_listio64", "getaddrinfo_a" };
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (imports(tab, s, names[i]))
			return true;
	return false;
}

/* False: no more memory or patience. */
static bool add(struct symtab *t, const struct table *tab, uint64_t i)
{
	const Elf64_Sym *s = &tab->sym[i];
	const Elf64_Phdr *ph;
	struct symbol new = { .addr = s->st_value, .size = s->st_size };

	if (s->st_name >= tab->str_size)
		return true;
	t->timers |= imports(tab, s, "timer_create");
	t->aio |= imports_aio(tab, s);
	if (!classify(tab, s, &new))
		return true;
	ph = image_segment(tab->main, s->st_value);
	if (new.size > ph->p_memsz - (new.addr - ph->p_vaddr))
		new.size = ph->p_memsz - (new.addr - ph->p_vaddr);
	new.section = s->st_shndx;
	new.name = tab->str + s->st_name;
	new.len = scan_name(t, new.name, tab->str_size - s->st_name, &new.hash, &new.version);
	if (!new.len)
		return t->name_bytes < NAME_BYTES_MAX;
	new.old = new.version &&new.version[-2] != '@';
	if (!new.version)
		new.version = version_of(tab, i, &new.old);
	if (t->nr >= UINT32_MAX - 1 || sym_grow(&t->sym, &t->room, t->nr, sizeof(new)))
		return false;
	t->sym[t->nr++] = new;
	return t->name_bytes < NAME_BYTES_MAX;
}

/*
 * .gnu.version_d: the names of the versions that this file defines.  An entry's
 * first name is its own, the others are its parents'.
 */
static void read_verdef(struct table *tab, const Elf64_Shdr *sh)
{
	uint8_t *buf = image_load_section(tab->img, sh);
	uint64_t at = 0;

	tab->version = calloc(MAX_VERSIONS, sizeof(*tab->version));
	for (unsigned int i = 0; buf && tab->version && i < MAX_VERSIONS; i++) {
		Elf64_Verdef vd;
		Elf64_Verdaux aux;

		if (at > sh->sh_size || sh->sh_size - at < sizeof(vd))
			break;
		memcpy(&vd, buf + at, sizeof(vd));
		if (vd.vd_aux > sh->sh_size - at || sh->sh_size - at - vd.vd_aux < sizeof(aux))
			break;
		memcpy(&aux, buf + at + vd.vd_aux, sizeof(aux));
		if (vd.vd_ndx < MAX_VERSIONS && aux.vda_name < tab->str_size &&
		    !(vd.vd_flags & VER_FLG_BASE) &&
		    strnlen(tab->str + aux.vda_name, VERSION_LEN_MAX) < VERSION_LEN_MAX)
			tab->version[vd.vd_ndx] = tab->str + aux.vda_name;
		if (!vd.vd_next)
			break;
		at += vd.vd_next;
	}
	free(buf);
}

static void read_versions(struct table *tab)
{
	for (unsigned int i = 1; i < tab->img->nr_sh; i++) {
		const Elf64_Shdr *sh = &tab->img->sh[i];

		if (sh->sh_type == SHT_GNU_versym && !tab->versym) {
			tab->versym = image_load_section(tab->img, sh);
			tab->nr_versym = tab->versym ? sh->sh_size / 2 : 0;
		} else if (sh->sh_type == SHT_GNU_verdef && !tab->version) {
			read_verdef(tab, sh);
		}
	}
}

/* "name@@VER" becomes "name"; only now, as names may share their tails. */
static void cut_versions(struct symtab *t, size_t from)
{
	for (size_t i = from; i < t->nr; i++) {
		char *at = t->sym[i].version ? strchr(t->sym[i].name, '@') : NULL;

		if (at && at > t->sym[i].name)
			*at = 0;
	}
}

/* Takes over the table's memory. */
static void read_table(struct symtab *t, struct table *tab)
{
	size_t from = t->nr;
	bool go_on = tab->sym && tab->str && t->nr_strtabs < MAX_STRTABS;

	for (uint64_t i = 1; go_on && i < tab->nr; i++)
		go_on = add(t, tab, i);
	cut_versions(t, from);
	if (t->nr > from) {
		t->strtab[t->nr_strtabs++] = tab->str;
		tab->str = NULL;
	}
	free(tab->sym);
	free(tab->str);
	free(tab->versym);
	free(tab->version);
}

static bool read_section(struct symtab *t, struct table tab, uint32_t type)
{
	for (unsigned int i = 1; i < tab.img->nr_sh; i++) {
		const Elf64_Shdr *sh = &tab.img->sh[i], *str;

		if (sh->sh_type != type || sh->sh_link >= tab.img->nr_sh ||
		    sh->sh_entsize != sizeof(Elf64_Sym))
			continue;
		str = &tab.img->sh[sh->sh_link];
		tab.sym = image_load_section(tab.img, sh);
		tab.nr = sh->sh_size / sizeof(Elf64_Sym);
		tab.str = str->sh_type == SHT_STRTAB ? image_load_section(tab.img, str) : NULL;
		tab.str_size = str->sh_size;
		if (type == SHT_DYNSYM && tab.str)
			read_versions(&tab);
		read_table(t, &tab);
		return true;
	}
	return false;
}

static uint32_t word(const struct image *img, uint64_t off)
{
	uint32_t v;

	return image_read(img, off, &v, sizeof(v)) ? 0 : v;
}

/* DT_GNU_HASH has no count: the last chain's end is it. */
static uint64_t count_gnu_hash(const struct image *img, uint64_t vaddr)
{
	uint64_t off, avail, chain, nr_buckets, first, words, last = 0;
	uint32_t *w;

	if (!image_offset(img, vaddr, &off, &avail) || avail < 16)
		return 0;
	nr_buckets = word(img, off);
	first = word(img, off + 4);
	chain = 4 + (uint64_t)word(img, off + 8) * 2;
	w = image_load(img, off, avail);
	words = avail / 4;
	if (!w || chain > words || nr_buckets > words - chain) {
		free(w);
		return 0;
	}
	for (uint64_t i = 0; i < nr_buckets; i++)
		last = w[chain + i] > last ? w[chain + i] : last;
	chain += nr_buckets;
	while (last >= first && last - first < words - chain && !(w[chain + last - first] & 1))
		last++;
	free(w);
	return last >= first ? last + 1 : first;
}

static void read_dynamic(struct symtab *t, struct table tab, uint64_t bias)
{
	uint64_t off, avail, str;
	struct dynamic d;

	if (!image_dynamic(tab.img, bias, &d))
		return;
	if (image_offset(tab.img, d.hash, &off, &avail) && avail >= 8)
		tab.nr = word(tab.img, off + 4);
	else
		tab.nr = count_gnu_hash(tab.img, d.gnu_hash);
	if (!image_offset(tab.img, d.strtab, &str, &avail) ||
	    !image_offset(tab.img, d.symtab, &off, &avail))
		return;
	if (tab.nr > avail / sizeof(Elf64_Sym))
		tab.nr = avail / sizeof(Elf64_Sym);
	tab.sym = image_load(tab.img, off, tab.nr * sizeof(Elf64_Sym));
	tab.str = image_load(tab.img, str, d.strsz);
	tab.str_size = d.strsz;
	read_table(t, &tab);
}

void symtab_read(struct symtab *t, const struct image *main, const struct image *img, uint64_t bias,
                 const struct fdes *fdes)
{
	struct table tab = { .main = main, .img = img, .fdes = fdes };

	read_section(t, tab, SHT_SYMTAB);
	if (!read_section(t, tab, SHT_DYNSYM) && img == main)
		read_dynamic(t, tab, bias);
}
