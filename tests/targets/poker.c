/* SPDX-License-Identifier: MIT */
/*
 * Writes an operand in its text again and again, as static branches are written
 * (through /proc/self/mem), between instructions that may be probed; "still" on stdin:
 * says how often it was not what it had written.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#define OPERAND 1 /* of mov $n,%eax */
#define LOOKS 2000

int poked(void);
__asm__(".text\n.type sled, @function\n"
        "sled: .rept 8000\n nop\n .endr\n ret\n.size sled, . - sled\n"
        ".type poked, @function\npoked: mov $0,%eax\n ret\n.size poked, . - poked\n"
        ".type runway, @function\n"
        "runway: .rept 8000\n nop\n .endr\n ret\n.size runway, . - runway\n");

static int ended;

static void *poke(void *arg)
{
	volatile uint32_t *operand = (uint32_t *)((uint8_t *)poked + OPERAND);
	int fd = open("/proc/self/mem", O_RDWR);
	uint32_t n = 0;
	long wrong = 0;

	while (!__atomic_load_n(&ended, __ATOMIC_RELAXED)) {
		n++;
		if (pwrite(fd, &n, sizeof(n), (long)operand) != sizeof(n))
			wrong = -1000000;
		for (int i = 0; i < LOOKS; i++)
			if (*operand != n) {
				wrong++;
				break;
			}
	}
	n = 0;
	pwrite(fd, &n, sizeof(n), (long)operand);
	close(fd);
	return (void *)wrong;
}

int main(void)
{
	pthread_t t;
	void *wrong;

	pthread_create(&t, NULL, poke, NULL);
	printf("ready\n");
	fflush(stdout);
	getchar();
	__atomic_store_n(&ended, 1, __ATOMIC_RELAXED);
	pthread_join(t, &wrong);
	printf("wrong %ld\ndone\n", (long)wrong);
	fflush(stdout);
	pause();
	return 0;
}
