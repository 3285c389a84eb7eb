/* SPDX-License-Identifier: MIT */
/* From the words of the command line to a subcommand; see options.h. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <ukprobes/session.h>

#include "front/again.h"
#include "front/options.h"

static void usage(void)
{
	printf("usage: ukprobe COMMAND [OPTIONS...]\n"
	       "\n"
	       "Probes in live programs, by the kernel's names.\n"
	       "\n");
	for (const struct command *c = commands; c->name; c++)
		printf("  %-10s %s\n", c->name, c->summary);
	printf("\n"
	       "  -h, --help          this text; ukprobe COMMAND --help for each\n"
	       "      --version       the version\n");
}

/* Text for standard output was printed; it counts only when it arrived. */
static int printed(void)
{
	if (!fflush(stdout) && !ferror(stdout))
		return 0;
	return complain("can't write to standard output: %s", strerror(errno));
}

static int no_command(const char *name)
{
	const struct command *near = command_near(name);

	if (*name == '-')
		return complain("no option '%s'; see ukprobe --help", name);
	if (near)
		return complain("no command '%s'; did you mean '%s'?", name, near->name);
	return complain("no command '%s'; see ukprobe --help", name);
}

static int run(const struct command *c, int argc, char **argv)
{
	struct options o;
	char why[512];
	int status;

	if (options_parse(&o, c, argc, argv, why, sizeof(why)))
		return complain("%s", why);
	if (!o.help) {
		status = c->run(&o);
		while (again(c, &o)) {
			int more = c->run(&o);

			status = more ? more : status;
		}
		return again_status(status);
	}
	fputs(c->usage, stdout);
	return printed();
}

static int help(const char *name)
{
	const struct command *c = name ? command_find(name) : NULL;

	if (name && !c)
		return no_command(name);
	if (c)
		fputs(c->usage, stdout);
	else
		usage();
	return printed();
}

int command_main(int argc, char **argv)
{
	const struct command *c;
	const char *name = argc > 1 ? argv[1] : NULL;

	if (!name)
		return complain("no command; see ukprobe --help");
	if (!strcmp(name, "-h") || !strcmp(name, "--help") || !strcmp(name, "help"))
		return help(*name == '-' || argc < 3 ? NULL : argv[2]);
	if (!strcmp(name, "--version")) {
		printf("ukprobe %s\n", UKP_VERSION);
		return printed();
	}
	/* The library starts brokers so; it is nothing for people. */
	if (!strcmp(name, "broker"))
		return ukp_broker_main(argc - 1, argv + 1);
	c = command_find(name);
	return c ? run(c, argc - 1, argv + 1) : no_command(name);
}
