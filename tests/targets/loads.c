/* SPDX-License-Identifier: MIT */
/* Loads the libraries that it is told, says which it has, and waits. */
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv)
{
	int i;

	for (i = 1; i < argc; i++)
		printf("%s %d\n", argv[i], dlopen(argv[i], RTLD_NOW) != NULL);
	printf("ready\n");
	fflush(stdout);
	return getchar() == EOF;
}
