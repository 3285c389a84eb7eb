/* SPDX-License-Identifier: MIT */
/*
 * What can be wrong with a definition: the kernel's names and texts, so that
 * whoever knows its error_log knows ours.  A text may be followed by ": " and
 * what it is about; the kernel's part comes first and unchanged.
 *
 * The second list has no counterpart in the kernel.
 */
#ifndef UKP_LANG_ERRORS_H
#define UKP_LANG_ERRORS_H

#define LANG_KERNEL_ERRORS(X)                                                        \
	X(BAD_MAXACT_TYPE, "Maxactive is only for function exit")                    \
	X(BAD_MAXACT, "Invalid maxactive number")                                    \
	X(MAXACT_TOO_BIG, "Maxactive is too big")                                    \
	X(BAD_PROBE_ADDR, "Invalid probed address or symbol")                        \
	X(NON_UNIQ_SYMBOL, "The symbol is not unique")                               \
	X(BAD_RETPROBE, "Retprobe address must be an function entry")                \
	X(BAD_ADDR_SUFFIX, "Invalid probed address suffix")                          \
	X(FAIL_REG_PROBE, "Failed to register probe event")                          \
	X(BAD_UPROBE_OFFS, "Invalid uprobe offset")                                  \
	X(NO_GROUP_NAME, "Group name is not specified")                              \
	X(GROUP_TOO_LONG, "Group name is too long")                                  \
	X(BAD_GROUP_NAME, "Group name must follow the same rules as C identifiers")  \
	X(NO_EVENT_NAME, "Event name is not specified")                              \
	X(EVENT_TOO_LONG, "Event name is too long")                                  \
	X(BAD_EVENT_NAME, "Event name must follow the same rules as C identifiers")  \
	X(RETVAL_ON_PROBE, "$retval is not available on probe")                      \
	X(NO_BTFARG, "This variable is not found at this probe point")               \
	X(NOSUP_BTFARG, "BTF is not available or not supported")                     \
	X(BAD_HYPHEN, "Failed to parse single hyphen. Forgot '>'?")                  \
	X(BAD_STACK_NUM, "Invalid stack number")                                     \
	X(BAD_ARG_NUM, "Invalid argument number")                                    \
	X(BAD_VAR, "Invalid $-variable specified")                                   \
	X(NOFENTRY_ARGS, "$arg* can be used only on function entry or exit")         \
	X(DOUBLE_ARGS, "$arg* can be used only once in the parameters")              \
	X(BAD_REG_NAME, "Invalid register name")                                     \
	X(BAD_MEM_ADDR, "Invalid memory address")                                    \
	X(BAD_IMM, "Invalid immediate value")                                        \
	X(IMMSTR_NO_CLOSE, "String is not closed with '\"'")                         \
	X(FILE_ON_KPROBE, "File offset is not available with kprobe")                \
	X(BAD_FETCH_ARG, "Invalid fetch argument")                                   \
	X(TOO_MANY_OPS, "Dereference is too much nested")                            \
	X(DEREF_NEED_BRACE, "Dereference needs a brace")                             \
	X(BAD_DEREF_OFFS, "Invalid dereference offset")                              \
	X(DEREF_OPEN_BRACE, "Dereference brace is not closed")                       \
	X(COMM_CANT_DEREF, "$comm can not be dereferenced")                          \
	X(ARRAY_NO_CLOSE, "Array is not closed")                                     \
	X(BAD_ARRAY_SUFFIX, "Array has wrong suffix")                                \
	X(BAD_ARRAY_NUM, "Invalid array size")                                       \
	X(ARRAY_TOO_BIG, "Array number is too big")                                  \
	X(BAD_TYPE, "Unknown type is specified")                                     \
	X(BAD_STRING, "String accepts only memory argument")                         \
	X(BAD_SYMSTRING, "Symbol String doesn't accept data/userdata")               \
	X(BAD_BITFIELD, "Invalid bitfield")                                          \
	X(NEED_STRING_TYPE, "$comm and immediate-string only accepts string type")   \
	X(ARG_NAME_TOO_LONG, "Argument name is too long")                            \
	X(NO_ARG_NAME, "Argument name is not specified")                             \
	X(BAD_ARG_NAME, "Argument name must follow the same rules as C identifiers") \
	X(USED_ARG_NAME, "This argument name is already used")                       \
	X(ARG_TOO_LONG, "Argument expression is too long")                           \
	X(NO_ARG_BODY, "No argument expression")                                     \
	X(TOO_MANY_ARGS, "Too many arguments are specified")                         \
	X(EVENT_TOO_BIG, "Event too big (too many fields?)")

#define LANG_OWN_ERRORS(X)                                                                \
	X(SYNTAX, "Not a probe definition")                                               \
	X(UNSUPPORTED, "Not supported yet")                                               \
	X(DURATION_ON_PROBE, "$duration is not available on probe")                       \
	X(DURATION_DEREF, "$duration can not be dereferenced")                            \
	X(DURATION_TYPE, "$duration is nanoseconds and takes the types u64 and s64 only") \
	X(FPU_DEREF, "Vector and x87 registers hold no address")                          \
	X(TOO_MANY_ENTRY, "Too many different $argN on a return probe")                   \
	X(IFUNC, "The symbol is an indirect function")                                    \
	X(BAD_KIND, "Unknown kind of error value")

enum lang_error {
#define X(code, text) LANG_##code,
	LANG_KERNEL_ERRORS(X) LANG_OWN_ERRORS(X)
#undef X
};

#endif
