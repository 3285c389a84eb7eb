/* SPDX-License-Identifier: MIT */
/*
 * An ELF file's headers, checked once when it is opened.
 *
 * Headers are read by hand: libelf allocates by what the file claims (a sparse
 * file of 4 GiB with its section count in section 0 costs it 13 GB), so each
 * count would have to be checked here first anyway.
 */
#include "sym/internal.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/pause.h"

#define READ_AT_ONCE (256 << 10) /* bytes; nobody pauses in a system call */

int image_read(const struct image *img, uint64_t off, void *buf, uint64_t len)
{
	uint8_t *to = buf;

	if (off > img->size || len > img->size - off)
		return -EIO;
	if (img->fd < 0) {
		memcpy(buf, img->mem + off, len);
		return 0;
	}
	while (len) {
		ssize_t n;

		pause_point();
		n = pread(img->fd, to, len < READ_AT_ONCE ? len : READ_AT_ONCE, (off_t)off);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return -EIO;
		to += n;
		off += (uint64_t)n;
		len -= (uint64_t)n;
	}
	return 0;
}

void *image_load(const struct image *img, uint64_t off, uint64_t len)
{
	char *buf;

	if (off > img->size || len > img->size - off || len > IMAGE_LOAD_MAX)
		return NULL;
	buf = malloc(len + 1);
	if (!buf)
		return NULL;
	if (image_read(img, off, buf, len)) {
		free(buf);
		return NULL;
	}
	buf[len] = 0;
	return buf;
}

void *image_load_section(const struct image *img, const Elf64_Shdr *sh)
{
	if (sh->sh_type == SHT_NOBITS || (sh->sh_flags & SHF_COMPRESSED))
		return NULL;
	return image_load(img, sh->sh_offset, sh->sh_size);
}

const char *image_section_name(const struct image *img, const Elf64_Shdr *sh)
{
	return img->shstr && sh->sh_name < img->shstr_size ? img->shstr + sh->sh_name : "";
}

const Elf64_Shdr *image_section(const struct image *img, const char *name)
{
	for (unsigned int i = 1; i < img->nr_sh; i++)
		if (!strcmp(image_section_name(img, &img->sh[i]), name))
			return &img->sh[i];
	return NULL;
}

const Elf64_Phdr *image_segment(const struct image *img, uint64_t vaddr)
{
	for (unsigned int i = 0; i < img->nr_ph; i++) {
		const Elf64_Phdr *ph = &img->ph[i];

		if (ph->p_type == PT_LOAD && vaddr >= ph->p_vaddr &&
		    vaddr - ph->p_vaddr < ph->p_memsz)
			return ph;
	}
	return NULL;
}

bool image_offset(const struct image *img, uint64_t vaddr, uint64_t *off, uint64_t *avail)
{
	const Elf64_Phdr *ph = image_segment(img, vaddr);

	if (!ph || vaddr - ph->p_vaddr >= ph->p_filesz)
		return false;
	*off = ph->p_offset + (vaddr - ph->p_vaddr);
	*avail = ph->p_filesz - (vaddr - ph->p_vaddr);
	return true;
}

/*
 * Neighbouring segments share a page of the file, so an offset may lie in two:
 * the one with the mapping's own executability wins.
 */
bool image_bias(const struct image *img, uint64_t start, uint64_t offset, bool x, uint64_t *bias)
{
	const Elf64_Phdr *best = NULL;

	for (unsigned int i = 0; i < img->nr_ph; i++) {
		const Elf64_Phdr *ph = &img->ph[i];

		if (ph->p_type != PT_LOAD || offset < PAGE_DOWN(ph->p_offset) ||
		    offset >= ph->p_offset + ph->p_filesz)
			continue;
		if (!best || (!!(ph->p_flags & PF_X) == x && !!(best->p_flags & PF_X) != x))
			best = ph;
	}
	if (!best)
		return false;
	*bias = start - (PAGE_DOWN(best->p_vaddr) + offset - PAGE_DOWN(best->p_offset));
	return true;
}

static bool segment_is_sane(const struct image *img, const Elf64_Phdr *ph)
{
	uint64_t end;

	return ph->p_memsz && ph->p_filesz <= ph->p_memsz &&
	       !__builtin_add_overflow(ph->p_vaddr, ph->p_memsz, &end) && end <= INT64_MAX &&
	       ph->p_offset <= img->size && ph->p_filesz <= img->size - ph->p_offset &&
	       ph->p_vaddr % PAGE == ph->p_offset % PAGE;
}

static int read_segments(struct image *img)
{
	const Elf64_Ehdr *eh = &img->eh;

	if (!eh->e_phnum || eh->e_phnum > IMAGE_MAX_SEGMENTS ||
	    eh->e_phentsize != sizeof(Elf64_Phdr))
		return -ENOEXEC;
	img->ph = image_load(img, eh->e_phoff, eh->e_phnum * sizeof(Elf64_Phdr));
	if (!img->ph)
		return -ENOEXEC;
	img->nr_ph = eh->e_phnum;
	img->low = UINT64_MAX;
	for (unsigned int i = 0; i < img->nr_ph; i++) {
		Elf64_Phdr *ph = &img->ph[i];
		uint64_t end;

		if (ph->p_type != PT_LOAD)
			continue;
		/* Debug files keep the headers of segments that they don't have. */
		if (!segment_is_sane(img, ph)) {
			ph->p_type = PT_NULL;
			continue;
		}
		end = PAGE_DOWN(ph->p_vaddr + ph->p_memsz + PAGE - 1);
		if (PAGE_DOWN(ph->p_vaddr) < img->low)
			img->low = PAGE_DOWN(ph->p_vaddr);
		if (end > img->high)
			img->high = end;
	}
	return 0;
}

/* Without sections there are still dynamic symbols: no failure. */
static void read_sections(struct image *img)
{
	const Elf64_Ehdr *eh = &img->eh;
	uint64_t nr = eh->e_shnum, names = eh->e_shstrndx;
	Elf64_Shdr first;

	if (!eh->e_shoff || eh->e_shentsize != sizeof(first) ||
	    image_read(img, eh->e_shoff, &first, sizeof(first)))
		return;
	if (!nr)
		nr = first.sh_size;
	if (names == SHN_XINDEX)
		names = first.sh_link;
	if (!nr || nr > IMAGE_MAX_SECTIONS)
		return;
	img->sh = image_load(img, eh->e_shoff, nr * sizeof(first));
	if (!img->sh)
		return;
	img->nr_sh = (unsigned int)nr;
	if (names && names < nr && img->sh[names].sh_size <= PAGE * 1024) {
		img->shstr = image_load_section(img, &img->sh[names]);
		img->shstr_size = img->shstr ? img->sh[names].sh_size : 0;
	}
}

/* A copy of the first note by that owner and of that type in a piece of the file, to be freed. */
static uint8_t *note_in(const struct image *img, uint64_t off, uint64_t size, const char *owner,
                        uint32_t type, uint32_t *len)
{
	uint8_t *notes = size <= 65536 ? image_load(img, off, size) : NULL;
	uint64_t at = 0, owner_len = strlen(owner) + 1;

	while (notes && size - at >= sizeof(Elf64_Nhdr)) {
		Elf64_Nhdr nh;
		uint64_t name, desc, end;

		memcpy(&nh, notes + at, sizeof(nh));
		name = at + sizeof(nh);
		desc = name + (((uint64_t)nh.n_namesz + 3) & ~UINT64_C(3));
		end = desc + nh.n_descsz;
		if (end > size)
			break;
		/* Owners are padded, and some say so in their length. */
		if (nh.n_type == type && nh.n_namesz >= owner_len &&
		    !memcmp(notes + name, owner, owner_len)) {
			memmove(notes, notes + desc, nh.n_descsz);
			*len = nh.n_descsz;
			return notes;
		}
		at = (end + 3) & ~UINT64_C(3);
		if (at > size)
			break;
	}
	free(notes);
	return NULL;
}

static uint8_t *find_note(const struct image *img, const char *owner, uint32_t type, uint32_t *len)
{
	uint8_t *desc = NULL;

	/* Sections first: in a debug file the segment's offset is elsewhere. */
	for (unsigned int i = 1; i < img->nr_sh && !desc; i++)
		if (img->sh[i].sh_type == SHT_NOTE)
			desc = note_in(img, img->sh[i].sh_offset, img->sh[i].sh_size, owner, type,
			               len);
	for (unsigned int i = 0; i < img->nr_ph && !desc; i++)
		if (img->ph[i].p_type == PT_NOTE)
			desc = note_in(img, img->ph[i].p_offset, img->ph[i].p_filesz, owner, type,
			               len);
	return desc;
}

static void read_build_id(struct image *img)
{
	uint32_t len, i;
	uint8_t *id = find_note(img, "GNU", NT_GNU_BUILD_ID, &len);

	for (i = 0; id && i < len && len <= 64; i++) {
		img->build_id[2 * i] = "0123456789abcdef"[id[i] >> 4];
		img->build_id[2 * i + 1] = "0123456789abcdef"[id[i] & 15];
	}
	free(id);
}

#define NT_GO_BUILD_ID 4

/* Stripping takes the symbols; the table by which Go walks its stacks, and its notes, stay. */
static void read_go(struct image *img)
{
	uint32_t len;
	uint8_t *id = find_note(img, "Go", NT_GO_BUILD_ID, &len);

	img->go = id || image_section(img, ".gopclntab") ||
	          image_section(img, ".data.rel.ro.gopclntab") ||
	          image_section(img, ".go.buildinfo");
	free(id);
}

static int image_start(struct image **ret, struct image *img)
{
	const Elf64_Ehdr *eh = &img->eh;
	int r = -ENOEXEC;

	if (image_read(img, 0, &img->eh, sizeof(img->eh)) || memcmp(eh->e_ident, ELFMAG, SELFMAG) ||
	    eh->e_ident[EI_CLASS] != ELFCLASS64 || eh->e_ident[EI_DATA] != ELFDATA2LSB ||
	    eh->e_machine != EM_X86_64 || (eh->e_type != ET_EXEC && eh->e_type != ET_DYN))
		goto fail;
	r = read_segments(img);
	if (r)
		goto fail;
	read_sections(img);
	read_build_id(img);
	read_go(img);
	*ret = img;
	return 0;
fail:
	image_free(img);
	return r;
}

int image_from_fd(struct image **ret, int fd)
{
	struct image *img = calloc(1, sizeof(*img));
	struct stat st;

	*ret = NULL;
	if (!img || fstat(fd, &st) || !S_ISREG(st.st_mode)) {
		free(img);
		close(fd);
		return -ENOEXEC;
	}
	img->fd = fd;
	img->trusted = true;
	img->size = (uint64_t)st.st_size;
	return image_start(ret, img);
}

int image_from_buffer(struct image **ret, const void *buf, size_t len, bool own)
{
	struct image *img = calloc(1, sizeof(*img));

	*ret = NULL;
	if (!img) {
		if (own)
			free((void *)buf);
		return -ENOMEM;
	}
	img->fd = -1;
	img->mem = buf;
	img->own_mem = own;
	img->size = len;
	return image_start(ret, img);
}

void image_free(struct image *img)
{
	if (!img)
		return;
	if (img->fd >= 0)
		close(img->fd);
	if (img->own_mem)
		free((void *)img->mem);
	free(img->ph);
	free(img->sh);
	free(img->shstr);
	free(img);
}
