/* SPDX-License-Identifier: MIT */
/*
 * Maps a page of its own code once more, far away, as V8 does; then calls a
 * function of another page.
 */
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

__attribute__((noinline, aligned(4096))) void copied(void)
{
	__asm__ volatile("");
}

__attribute__((noinline, aligned(8192))) void work(void)
{
	__asm__ volatile("");
}

int main(void)
{
	void *page = (void *)((uintptr_t)copied & ~4095ul);

	if (mremap(page, 0, 4096, MREMAP_MAYMOVE) == MAP_FAILED) {
		FILE *f = fopen("/proc/self/exe", "r");
		extern const char __executable_start[];

		page = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fileno(f),
		            (char *)page - __executable_start);
		fclose(f);
		if (page == MAP_FAILED)
			return 1;
	}
	puts("ready");
	fflush(stdout);
	for (;;) {
		work();
		copied();
		usleep(1000);
	}
}
