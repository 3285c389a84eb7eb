/* SPDX-License-Identifier: MIT */
/*
 * A small JIT: the same function in a page that is writable and executable ("rwx"), in
 * one that is made executable when it is written ("rx"), and in the program's own text,
 * where it changes it when it starts ("changed").  "shared" is a mapping that others
 * could have.
 *
 *	go N		calls each that is there, and says how many results were wrong
 *	patch, rewrite	the operand of each second instruction; all of each
 *	zero		each second instruction is another one of that length
 *	tail		all of rwx but its first instruction
 *	behind		the same, and its first byte isn't written
 *	trap		from its second mov on rwx is filled with int3, and called
 *	other		unmaps rwx and has something else there, which "check" compares
 *	fork N		go in a child
 *	churn, still	a thread writes rwx anew all the time, and calls it; it ends
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE 4096
#define OPERAND 5 /* of mov, in code[] */

typedef int (*fn)(int);

static const uint8_t code[] = {
	0x55,                         /* push %rbp */
	0x48, 0x89, 0xe5,             /* mov %rsp,%rbp */
	0xb8, 0x05, 0x00, 0x00, 0x00, /* mov $5,%eax */
	0x01, 0xf8,                   /* add %edi,%eax */
	0x5d,                         /* pop %rbp */
	0xc3,                         /* ret */
};

static const uint8_t anew[] = {
	0x8d, 0x87, 0x05, 0x00, 0x00, 0x00, /* lea 5(%rdi),%eax */
	0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0xc3,
};

static const uint8_t tail[] = {
	0x55,                               /* push %rbp */
	0x8d, 0x87, 0x05, 0x00, 0x00, 0x00, /* lea 5(%rdi),%eax */
	0x5d, 0xc3, 0x90, 0x90, 0x90, 0x90,
};

int changed(int i);
__asm__(".text\n.balign 4096\n.type changed, @function\n"
        "changed: push %rbp\n mov %rsp,%rbp\n mov $4,%eax\n add %edi,%eax\n pop %rbp\n ret\n"
        ".size changed, . - changed\n.balign 4096\n");

static struct {
	const char *name;
	uint8_t *at;
	int prot, add;
} v[3] = { { "rwx", NULL, PROT_READ | PROT_WRITE | PROT_EXEC, 5 },
	   { "rx", NULL, PROT_READ | PROT_EXEC, 5 },
	   { "changed", (uint8_t *)changed, PROT_READ | PROT_EXEC, 5 } };
static uint8_t other[PAGE];

static void write_code(int i, size_t off, const void *bytes, size_t len)
{
	uint8_t *page = (uint8_t *)((uintptr_t)v[i].at & ~(uintptr_t)(PAGE - 1));

	mprotect(page, PAGE, PROT_READ | PROT_WRITE);
	memcpy(v[i].at + off, bytes, len);
	mprotect(page, PAGE, v[i].prot);
}

static long go(int n)
{
	long wrong = 0;

	for (int k = 0; k < n; k++)
		for (int i = 0; i < 3; i++)
			if (v[i].at)
				wrong += ((fn)v[i].at)(k) != k + v[i].add;
	return wrong;
}

static void patch(int by)
{
	for (int i = 0; i < 3; i++) {
		if (!v[i].at)
			continue;
		v[i].add += by;
		write_code(i, OPERAND, &v[i].add, 4);
	}
}

static void zero(void)
{
	static const uint8_t and[] = { 0x25, 0, 0, 0, 0 }; /* and $0,%eax */

	for (int i = 0; i < 3; i++) {
		write_code(i, OPERAND - 1, and, sizeof(and));
		v[i].add = 0;
	}
}

static void rewrite(void)
{
	for (int i = 0; i < 3; i++) {
		write_code(i, 0, anew, sizeof(anew));
		v[i].add = 5;
	}
}

static void fill_other(void)
{
	for (int i = 0; i < PAGE; i++)
		other[i] = i % 16 < 6 ? 0xcc : (uint8_t)(i * 7);
}

static void trap(void)
{
	uint8_t fill[2 * sizeof(code)];

	/* As an operand they would do no harm: the function would return. */
	memset(fill, 0xcc, sizeof(fill));
	memcpy(fill + 5, tail + 7, 2);
	write_code(0, OPERAND - 1, fill, sizeof(fill));
	((fn)v[0].at)(0);
}

static uint8_t *place;

static void map_other(void)
{
	munmap(place, PAGE);
	place = mmap(place, PAGE, v[0].prot, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	memcpy(place, other, PAGE);
	v[0].at = NULL;
}

static long forked(int n)
{
	int status = 0;
	pid_t pid = fork();

	if (!pid)
		_exit(go(n) ? 1 : 0);
	waitpid(pid, &status, 0);
	return status;
}

static pthread_t thread;
static int churning;

static void *churn(void *arg)
{
	long wrong = 0;

	for (int i = 0; __atomic_load_n(&churning, __ATOMIC_RELAXED); i++) {
		memcpy(v[0].at, i % 2 ? anew : code, sizeof(code));
		for (int k = 0; k < 20; k++)
			wrong += ((fn)v[0].at)(i) != i + 5;
	}
	return (void *)wrong;
}

static void still(void)
{
	void *wrong;

	churning = 0;
	pthread_join(thread, &wrong);
	printf("wrong %ld\n", (long)wrong);
	write_code(0, 0, code, sizeof(code));
}

static void serve(const char *line)
{
	int n = strchr(line, ' ') ? atoi(strchr(line, ' ')) : 0;

	if (!strncmp(line, "go", 2))
		printf("wrong %ld\n", go(n));
	else if (!strncmp(line, "fork", 4))
		printf("wrong %ld\n", forked(n));
	else if (!strncmp(line, "patch", 5))
		patch(n);
	else if (!strncmp(line, "rewrite", 7))
		rewrite();
	else if (!strncmp(line, "zero", 4))
		zero();
	else if (!strncmp(line, "tail", 4))
		write_code(0, 0, tail, sizeof(tail));
	else if (!strncmp(line, "behind", 6))
		write_code(0, 1, tail + 1, sizeof(tail) - 1);
	else if (!strncmp(line, "trap", 4))
		trap();
	else if (!strncmp(line, "other", 5))
		map_other();
	else if (!strncmp(line, "check", 5))
		printf("wrong %d\n", memcmp(place, other, PAGE) != 0);
	else if (!strncmp(line, "churn", 5))
		churning = !pthread_create(&thread, NULL, churn, NULL);
	else if (!strncmp(line, "still", 5))
		still();
	/* Whether its own view of the code is as it should be. */
	for (int i = 0; i < 3; i++) {
		printf("%s ", v[i].name);
		for (size_t k = 0; v[i].at && k < sizeof(code); k++)
			printf("%02x", v[i].at[k]);
		printf("\n");
	}
	printf("done\n");
	fflush(stdout);
}

/* An old line, others, and the one that holds. */
static void tell_perf(void)
{
	char path[64];
	FILE *f;

	snprintf(path, sizeof(path), "/tmp/perf-%d.map", getpid());
	f = fopen(path, "w");
	if (!f)
		return;
	fprintf(f, "1000 10 made\nnonsense\n%lx 40 unmade\n%lx %zx made\n2000 10 made up\n",
	        (long)v[0].at, (long)v[1].at, sizeof(code));
	fclose(f);
}

int main(void)
{
	char line[64];
	void *shared;

	fill_other();
	for (int i = 0; i < 2; i++) {
		v[i].at = mmap(NULL, PAGE, v[i].prot, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		write_code(i, 0, code, sizeof(code));
	}
	place = v[0].at;
	write_code(2, OPERAND, &v[2].add, 4);
	shared = mmap(NULL, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_SHARED | MAP_ANONYMOUS,
	              -1, 0);
	memcpy(shared, code, sizeof(code));
	tell_perf();
	printf("at rwx 0x%lx\nat rx 0x%lx\nat shared 0x%lx\nready\n", (long)v[0].at, (long)v[1].at,
	       (long)shared);
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin))
		serve(line);
	return 0;
}
