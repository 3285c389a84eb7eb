/* SPDX-License-Identifier: MIT */
/*
 * A fixed number of objects for places that can't allocate: handlers, signal
 * handlers, code that malloc() itself calls.
 *
 *	static struct objpool_head pool;
 *
 *	int err = objpool_init(&pool, 1000, sizeof(struct call), GFP_KERNEL,
 *			       NULL, NULL, NULL);
 *	...
 *	struct call *c = objpool_pop(&pool);	in a handler
 *	objpool_push(c, &pool);			in another one
 *	...
 *	objpool_fini(&pool);			when all are back
 *
 * Follows include/linux/objpool.h of Linux 6.12.  What differs is marked "here:".
 *
 * Units: sizes are bytes, rounded up to 8.
 *
 * Ownership: the caller owns struct objpool_head and must leave it where it is
 * until the pool is gone: until objpool_free(), or until the last of
 * objpool_fini() and the objpool_drop()s after it.  The pool owns the objects;
 * a popped one is its taker's until it is pushed or dropped.
 *
 * Errors: 0 or a negative errno.
 *
 * Context: objpool_pop() and objpool_push() may be called anywhere, also in a
 * signal handler that interrupted one of them: they take no lock, make no
 * system call and can't be probed.  All else may sleep; objpool_drop() does so
 * for the last object only.
 *
 * Here: the kernel's ring a CPU counts on interrupts being off.  In its place
 * stands a stack a CPU, which nothing can disturb; what is promised is the same:
 * a CPU's own objects are taken first, then others', and a push never fails.
 */
#ifndef UKPROBES_OBJPOOL_H
#define UKPROBES_OBJPOOL_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

/* Here: accepted for the sake of sources, and without effect. */
typedef unsigned int gfp_t;
#ifndef GFP_KERNEL
#define GFP_KERNEL ((gfp_t)0xcc0)
#define GFP_ATOMIC ((gfp_t)0x820)
#endif

#define OBJPOOL_NR_OBJECT_MAX (1UL << 24)
#define OBJPOOL_OBJECT_SIZE_MAX (1UL << 16)

struct objpool_head;

/* Called by objpool_init() for each object, which is zeroed; nonzero: objpool_init() fails with it.
 */
typedef int (*objpool_init_obj_cb)(void *obj, void *context);
/* Called when the pool's memory is gone; head may be freed here.  The result is ignored. */
typedef int (*objpool_fini_cb)(struct objpool_head *head, void *context);

struct objpool_head {
	int obj_size; /* rounded up */
	int nr_objs;
	int nr_possible_cpus; /* stacks that objects are pushed to */
	int capacity;         /* nr_objs up to a power of two */
	gfp_t gfp;
	unsigned int
		ref; /* nr_objs + 1; each object that is dropped, and objpool_fini(), take one */
	unsigned long flags;
	objpool_fini_cb release;
	void *context;

	/* The library's own. */
	struct ukp_objpool *ukp_pool; /* NULL: there is none */
	char *ukp_objs;
	size_t ukp_size;
};

/*
 * -EINVAL: nr_objs or object_size is not positive or past its limit; -ENOMEM;
 * or what objinit returned.  objinit and release may be NULL.
 */
int objpool_init(struct objpool_head *pool, int nr_objs, int object_size, gfp_t gfp, void *context,
                 objpool_init_obj_cb objinit, objpool_fini_cb release);

/* An object, or NULL if there is none left. */
void *objpool_pop(struct objpool_head *pool);
/* Gives one back: 0.  Here: -EINVAL for what is no object of this pool. */
int objpool_push(void *obj, struct objpool_head *pool);

/*
 * Gives one up for ever, for takers that come after objpool_fini().  0: it was
 * the last, and the pool is gone; -EAGAIN: others are out; -EINVAL: NULL.
 */
int objpool_drop(void *obj, struct objpool_head *pool);
/*
 * Ends the pool: now, if all objects are in it, else with the last
 * objpool_drop().  Objects that are out stay valid until then.
 */
void objpool_fini(struct objpool_head *pool);
/* Ends the pool at once, wherever its objects are. */
void objpool_free(struct objpool_head *pool);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif
