/* SPDX-License-Identifier: MIT */
/*
 * A runtime that walks its own stack as HotSpot and V8 do: generated code leaves
 * its stack pointer somewhere and calls a function, which finds in the word
 * below it who called.  -DMARK='"NAME"' gives it the symbol of such a runtime,
 * -DGO_NOTE and -DGO_TABLE what a stripped Go program still has.
 * Each line on stdin is one call; "end" ends with how often that was wrong.
 */
#include <stdio.h>
#include <string.h>

extern const char generated_return[];
extern void generated(void);

void **last_sp;
static unsigned long wrong;

#ifdef MARK
extern void mark(void) __asm__(MARK);
void mark(void)
{
}
#endif

#ifdef GO_NOTE
__asm__(".pushsection .note.go.buildid, \"a\", @note\n"
        "	.long 4, 4, 4\n"
        "	.ascii \"Go\\0\\0id//\"\n"
        ".popsection\n");
#endif
#ifdef GO_TABLE
__asm__(".pushsection .gopclntab, \"a\"\n"
        "	.quad 0\n"
        ".popsection\n");
#endif

#if defined(GO_NOTE) || defined(GO_TABLE)
/* What Go's runtime may run with all signals blocked, and what a goroutine alone calls. */
extern void mexit(void) __asm__("runtime.mexit"), chansend1(void) __asm__("runtime.chansend1");
void mexit(void)
{
}
void chansend1(void)
{
}
#endif

__attribute__((noinline, used)) void callee(void)
{
	wrong += last_sp[-1] != (void *)generated_return;
}

__asm__(".text\n"
        ".globl generated\n"
        ".type generated, @function\n"
        "generated:\n"
        "	push %rbx\n"
        "	mov %rsp, last_sp(%rip)\n"
        "	call callee\n"
        "generated_return:\n"
        "	pop %rbx\n"
        "	ret\n"
        ".size generated, . - generated\n");

int main(void)
{
	char line[16];

	setvbuf(stdout, NULL, _IOLBF, 0);
	puts("ready");
	while (fgets(line, sizeof(line), stdin) && strcmp(line, "end\n")) {
		generated();
		printf("wrong %lu\n", wrong);
	}
	return 0;
}
