/* SPDX-License-Identifier: MIT */
/*
 * The kernel's uprobes through perf_event_open(), without tracefs: the type is
 * a number in sysfs, config1 the path, config2 the offset in the file.
 */
#include "bench.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PMU "/sys/bus/event_source/devices/uprobe/"

static int read_number(const char *path, const char *format)
{
	FILE *f = fopen(path, "re");
	int n = -1;

	if (!f)
		return -1;
	if (fscanf(f, format, &n) != 1)
		n = -1;
	fclose(f);
	return n;
}

static uint64_t to_offset(Elf *elf, uint64_t addr)
{
	size_t n = 0, i;
	GElf_Phdr ph;

	elf_getphdrnum(elf, &n);
	for (i = 0; i < n; i++)
		if (gelf_getphdr(elf, (int)i, &ph) && ph.p_type == PT_LOAD &&
		    addr - ph.p_vaddr < ph.p_filesz)
			return addr - ph.p_vaddr + ph.p_offset;
	return 0;
}

/* Of a symbol in the file's .symtab; 0: not there. */
static uint64_t find_offset(const char *path, const char *func)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), i;
	Elf *elf = elf_version(EV_CURRENT) ? elf_begin(fd, ELF_C_READ, NULL) : NULL;
	Elf_Scn *scn = NULL;
	uint64_t off = 0;
	GElf_Shdr sh;
	GElf_Sym sym;

	while (elf && (scn = elf_nextscn(elf, scn))) {
		Elf_Data *data;

		if (!gelf_getshdr(scn, &sh) || sh.sh_type != SHT_SYMTAB)
			continue;
		data = elf_getdata(scn, NULL);
		for (i = 0; data && gelf_getsym(data, i, &sym); i++)
			if (!strcmp(elf_strptr(elf, sh.sh_link, sym.st_name), func))
				off = to_offset(elf, sym.st_value);
	}
	elf_end(elf);
	close(fd);
	return off;
}

int uprobe_open(pid_t pid, const char *path, const char *func, int ret, const char **why)
{
	struct perf_event_attr attr = { .size = sizeof(attr) };
	int type = read_number(PMU "type", "%d"), bit, fd;

	*why = "this kernel has no uprobes for perf (" PMU "type)";
	if (type < 0)
		return -1;
	bit = read_number(PMU "format/retprobe", "config:%d");
	attr.type = (uint32_t)type;
	attr.config = ret ? 1ull << (bit < 0 ? 0 : bit) : 0;
	attr.config1 = (uintptr_t)path;
	attr.config2 = find_offset(path, func);
	*why = "the function is not in the file's symbols";
	if (!attr.config2)
		return -1;
	fd = (int)syscall(SYS_perf_event_open, &attr, pid, -1, -1, PERF_FLAG_FD_CLOEXEC);
	*why = errno == EACCES || errno == EPERM ? "uprobes need root or CAP_PERFMON"
	                                         : strerror(errno);
	return fd;
}

uint64_t uprobe_count(int fd)
{
	uint64_t n = 0;

	return read(fd, &n, sizeof(n)) == sizeof(n) ? n : 0;
}
