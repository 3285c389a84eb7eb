/* SPDX-License-Identifier: MIT */
/*
 * The file behind a mapping.
 *
 * Paths come from the target and may by now lead to anything: a FIFO, a tape
 * drive, a link to somebody else's file.  So a path is first opened without
 * being opened (O_PATH), checked to be a regular file and the mapped inode, and
 * only then reopened for reading.
 */
#include "sym/internal.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define MEMORY_MAX (UINT64_C(64) << 20)
#define VDSO_MAX (UINT64_C(64) << 10)

bool file_is_vdso(const struct sym_map *m)
{
	return !m->inode && m->x && !strcmp(m->path, "[vdso]");
}

static int open_beneath(int root, const char *path, uint64_t flags)
{
	struct open_how how = {
		.flags = O_PATH | O_CLOEXEC | flags,
		.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS,
	};

	return (int)syscall(SYS_openat2, root, path, &how, sizeof(how));
}

static int open_root(pid_t pid)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/root", (int)pid);
	return open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

/* From O_PATH to a readable descriptor of the same file; closes fd. */
static int reopen(int fd)
{
	char path[64];
	struct stat st;
	int r = -EACCES;

	if (!fstat(fd, &st) && S_ISREG(st.st_mode)) {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		r = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
		r = r < 0 ? -errno : r;
	}
	close(fd);
	return r;
}

int file_open_path(pid_t pid, const char *path)
{
	int root = open_root(pid), fd;

	if (root < 0)
		return -errno;
	fd = open_beneath(root, path, 0);
	close(root);
	return fd < 0 ? -errno : reopen(fd);
}

static int open_mem(pid_t pid)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/mem", (int)pid);
	return open(path, O_RDONLY | O_CLOEXEC);
}

/*
 * The inode decides.  On overlayfs and btrfs, maps and stat may disagree on the
 * device, on overlayfs of several file systems on the inode as well: there the
 * build-id that is in memory has to be the file's.
 */
static bool same_build_id(struct sym_proc *p, size_t map, int fd)
{
	struct image *file = NULL, *mem = file_from_memory(p, map);
	int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	bool same = false;

	if (mem && copy >= 0 && !image_from_fd(&file, copy))
		same = *file->build_id && !strcmp(file->build_id, mem->build_id);
	else if (!mem && copy >= 0)
		close(copy);
	image_free(file);
	image_free(mem);
	return same;
}

/* O_PATH to readable if it is the mapped file; closes fd. */
static int checked(struct sym_proc *p, size_t map, int fd)
{
	const struct sym_map *m = &p->maps[map];
	struct stat st;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) || !S_ISREG(st.st_mode)) {
		close(fd);
		return -ESTALE;
	}
	fd = reopen(fd);
	if (fd < 0 || st.st_ino == m->inode || same_build_id(p, map, fd))
		return fd;
	close(fd);
	return -ESTALE;
}

int file_open(struct sym_proc *p, size_t map)
{
	const struct sym_map *m = &p->maps[map];
	const char *names[] = { m->path, p->raw[map] };
	int root = open_root(p->pid), fd = -ENOENT;
	char link[96];

	/*
	 * maps shows paths as seen from our root: the same as from the target's,
	 * unless it is in a chroot of our mount namespace.
	 */
	for (int i = 0; i < 2 && fd < 0; i++) {
		if (names[i][0] != '/' || (i && names[1] == names[0]))
			continue;
		if (root >= 0)
			fd = checked(p, map, open_beneath(root, names[i], O_NOFOLLOW));
		if (fd < 0)
			fd = checked(p, map, open(names[i], O_PATH | O_NOFOLLOW | O_CLOEXEC));
	}
	if (root >= 0)
		close(root);
	if (fd >= 0)
		return fd;
	snprintf(link, sizeof(link), "/proc/%d/map_files/%lx-%lx", (int)p->pid,
	         (unsigned long)m->start, (unsigned long)m->end);
	fd = open(link, O_PATH | O_CLOEXEC);
	return fd < 0 ? -ENOENT : reopen(fd);
}

static uint64_t memory_read(int fd, uint64_t addr, uint8_t *buf, uint64_t len)
{
	uint64_t done = 0;

	while (done < len) {
		ssize_t n = pread(fd, buf + done, len - done, (off_t)(addr + done));

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		done += (uint64_t)n;
	}
	return done;
}

/*
 * The vdso is the kernel's, but the target may have been written to: only if
 * it is ours byte for byte, ours is the original.
 */
static struct image *vdso_image(const uint8_t *theirs, uint64_t len)
{
	const uint8_t *own = (const uint8_t *)getauxval(AT_SYSINFO_EHDR);
	struct image *mine, *img = NULL;
	char id[sizeof(img->build_id)];
	Elf64_Ehdr eh;
	uint64_t end;
	void *copy;

	if (!own || len < sizeof(eh))
		return NULL;
	memcpy(&eh, own, sizeof(eh));
	end = eh.e_shoff + (uint64_t)eh.e_shnum * sizeof(Elf64_Shdr);
	if (end > len || image_from_buffer(&mine, own, end, false))
		return NULL;
	memcpy(id, mine->build_id, sizeof(id));
	image_free(mine);
	/* The mapping is whole pages of the kernel's, so ours is as long as theirs. */
	if (image_from_buffer(&img, theirs, len, false))
		return NULL;
	if (!*id || strcmp(id, img->build_id)) {
		image_free(img);
		return NULL;
	}
	image_free(img);
	copy = malloc(end);
	if (!copy)
		return NULL;
	memcpy(copy, own, end);
	if (image_from_buffer(&img, copy, end, true))
		return NULL;
	img->trusted = true;
	return img;
}

/* Lay the read-only parts out as the file had them. */
static struct image *laid_out(struct sym_proc *p, size_t map, int fd)
{
	const struct sym_map *m = &p->maps[map];
	struct image *img = NULL;
	size_t first = map, last = map;
	uint64_t size = 0;
	uint8_t *buf;

	while (first && p->maps[first - 1].inode == m->inode && p->maps[first].offset)
		first--;
	if (p->maps[first].offset || p->maps[first].inode != m->inode)
		return NULL;
	for (last = first; last < p->nr_maps && p->maps[last].inode == m->inode; last++) {
		const struct sym_map *l = &p->maps[last];
		uint64_t end = l->offset + (l->end - l->start);

		if (last > first && !l->offset)
			break;
		if (end < l->offset || end > MEMORY_MAX)
			return NULL;
		size = end > size ? end : size;
	}
	buf = calloc(1, size);
	if (!buf)
		return NULL;
	for (size_t i = first; i < last; i++)
		memory_read(fd, p->maps[i].start, buf + p->maps[i].offset,
		            p->maps[i].end - p->maps[i].start);
	return image_from_buffer(&img, buf, size, true) ? NULL : img;
}

struct image *file_from_memory(struct sym_proc *p, size_t map)
{
	const struct sym_map *m = &p->maps[map];
	struct image *img = NULL;
	int fd = open_mem(p->pid);
	uint8_t *buf;

	if (fd < 0)
		return NULL;
	if (!file_is_vdso(m)) {
		img = laid_out(p, map, fd);
	} else if (m->end - m->start <= VDSO_MAX && (buf = malloc(m->end - m->start))) {
		if (memory_read(fd, m->start, buf, m->end - m->start) == m->end - m->start)
			img = vdso_image(buf, m->end - m->start);
		free(buf);
	}
	close(fd);
	return img;
}
