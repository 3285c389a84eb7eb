/* SPDX-License-Identifier: MIT */
/*
 * ukprobe: the command.  Written on <ukprobes/session.h> alone, as any client
 * could be.  Exit status: 0; 1 when something was refused or failed, with the
 * reason on stderr; with -- CMD, CMD's own.
 */
#include "front/options.h"

int main(int argc, char **argv)
{
	return command_main(argc, argv);
}
