/* SPDX-License-Identifier: MIT */
/*
 * Results that aren't in rax, as handlers at returns get them: by each mechanism, from
 * breakpoints and from jumps, whatever a handler before has done to the registers.
 */
#include <complex.h>
#include <pthread.h>

#include <ukprobes/fprobe.h>
#include <ukprobes/rethook.h>

#include "scenario.h"

static const unsigned int mechanisms[] = { UKP_BY_SLOT, UKP_BY_CALL, UKP_BY_EXIT };
static unsigned int by;

/* --- functions --------------------------------------------------------------------- */

TARGET float one_float(int n)
{
	__asm__ volatile("");
	return (float)n * 0.5f;
}

TARGET double one_double(int n)
{
	__asm__ volatile("");
	return (double)n * -0.25;
}

TARGET long double one_long_double(int n)
{
	__asm__ volatile("");
	return (long double)n / 3;
}

TARGET double complex two_doubles(int n)
{
	__asm__ volatile("");
	return n + 0.125 * I;
}

TARGET long no_double(int n)
{
	__asm__ volatile("");
	return n + 1L;
}

/* Through a pointer: compilers make a loop of recursion. */
static double (*volatile deeper)(int n);

TARGET double factorial(int n)
{
	return n > 1 ? deeper(n - 1) * n : 1;
}

/* --- what handlers saw ------------------------------------------------------------- */

static struct seen {
	int hits;
	bool f32_ok, f64_ok, f80_ok, xmm_ok, st1_ok;
	float f32;
	double f64;
	long double f80;
	double xmm[2][2];
	double sum; /* of the doubles of all hits */
} seen;

static void clobber(void)
{
	char text[64];

	snprintf(text, sizeof(text), "%f %Lf", 1.5 * seen.hits, (long double)seen.hits / 7);
	__asm__ volatile(
		"pcmpeqd %%xmm0, %%xmm0\n\tpcmpeqd %%xmm1, %%xmm1\n\tfldpi\n\tfstp %%st(0)" ::
			: "xmm0", "xmm1", "st");
}

static void look(const struct pt_regs *regs)
{
	clobber();
	seen.f32_ok = ukp_return_f32(regs, &seen.f32);
	seen.f64_ok = ukp_return_f64(regs, &seen.f64);
	seen.f80_ok = ukp_return_f80(regs, &seen.f80);
	seen.xmm_ok = ukp_return_xmm(regs, 0, seen.xmm[0]) && ukp_return_xmm(regs, 1, seen.xmm[1]);
	seen.sum += seen.f64;
	seen.hits++;
	clobber();
}

static int on_return(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	look(regs);
	return 0;
}

static void on_exit_of(struct fprobe *fp, unsigned long entry_ip, unsigned long ret_ip,
                       struct pt_regs *regs, void *data)
{
	look(regs);
}

static void on_hooked(struct rethook_node *n, void *data, unsigned long ret_addr,
                      struct pt_regs *regs)
{
	look(regs);
}

/* --- tests ------------------------------------------------------------------------- */

static void calls_all(void)
{
	memset(&seen, 0, sizeof(seen));
	assert_true(one_float(7) == 3.5f);
	assert_true(seen.hits == 1 && seen.f32_ok && seen.f32 == 3.5f);
	assert_true(one_double(7) == -1.75);
	assert_true(seen.hits == 2 && seen.f64_ok && seen.f64 == -1.75);
	assert_false(seen.f80_ok);
	assert_true(one_long_double(7) == 7.0L / 3);
	assert_true(seen.hits == 3 && seen.f80_ok && seen.f80 == 7.0L / 3);
	assert_true(two_doubles(7) == 7 + 0.125 * I);
	assert_true(seen.hits == 4 && seen.xmm_ok);
	assert_true(seen.xmm[0][0] == 7 && seen.xmm[1][0] == 0.125);
	assert_int_equal(no_double(7), 8);
	assert_int_equal(seen.hits, 5);
}

static const char *const names[] = { "one_float", "one_double", "one_long_double", "two_doubles",
	                             "no_double" };

static void kretprobes_get_them(void **state)
{
	struct kretprobe rp[5] = { 0 };
	int i;

	for (i = 0; i < 5; i++) {
		rp[i] = (struct kretprobe){ .kp = { .symbol_name = names[i], .flags = by },
			                    .handler = on_return };
		register_ok(register_kretprobe(&rp[i]));
	}
	calls_all();
	for (i = 0; i < 5; i++) {
		assert_int_equal(rp[i].nmissed, 0);
		unregister_kretprobe(&rp[i]);
	}
}

static void fprobes_get_them(void **state)
{
	struct fprobe fp = { .flags = by, .exit_handler = on_exit_of };
	const char *syms[5];

	memcpy(syms, names, sizeof(syms));
	register_ok(register_fprobe_syms(&fp, syms, 5));
	calls_all();
	assert_int_equal(unregister_fprobe(&fp), 0);
	assert_int_equal(fp.nmissed, 0);
}

static struct rethook *rh;

static int hooks(struct kprobe *p, struct pt_regs *regs)
{
	return rethook_hook(rethook_try_get(rh), regs, false);
}

static void rethooks_get_them(void **state)
{
	struct kprobe kp[5] = { 0 };
	int i;

	rh = rethook_alloc(NULL, on_hooked, sizeof(struct rethook_node), 4);
	assert_non_null(rh);
	for (i = 0; i < 5; i++) {
		kp[i] = (struct kprobe){ .symbol_name = names[i], .pre_handler = hooks };
		register_ok(register_kprobe(&kp[i]));
	}
	calls_all();
	for (i = 0; i < 5; i++)
		unregister_kprobe(&kp[i]);
	rethook_free(rh);
}

static void each_of_several_probes_gets_them(void **state)
{
	struct kretprobe rp = { .kp = { .symbol_name = "factorial", .flags = by },
		                .handler = on_return },
			 other = rp;
	struct fprobe fp = { .flags = by, .exit_handler = on_exit_of };

	register_ok(register_kretprobe(&rp));
	register_ok(register_fprobe(&fp, "factorial", NULL));
	register_ok(register_kretprobe(&other));
	memset(&seen, 0, sizeof(seen));
	deeper = factorial;
	assert_true(deeper(5) == 120);
	assert_int_equal(seen.hits, 15);
	assert_true(seen.sum == 3 * (1 + 2 + 6 + 24 + 120));
	unregister_kretprobe(&rp);
	assert_int_equal(unregister_fprobe(&fp), 0);
	unregister_kretprobe(&other);
}

struct checked {
	int n;
};

static unsigned long checks, wrong;

static int on_entry(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	((struct checked *)ri->data)->n = (int)regs->di;
	return 0;
}

static int compare(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	double value;
	bool ok = ukp_return_f64(regs, &value) && value == ((struct checked *)ri->data)->n * -0.25;

	__atomic_fetch_add(&checks, 1, __ATOMIC_RELAXED);
	__atomic_fetch_add(&wrong, !ok, __ATOMIC_RELAXED);
	return 0;
}

static void *calls_often(void *from)
{
	int i;

	for (i = 0; i < 3000; i++)
		one_double((int)(long)from + i);
	return NULL;
}

static void each_thread_gets_its_own(void **state)
{
	struct kretprobe rp = { .kp = { .symbol_name = "one_double", .flags = by },
		                .entry_handler = on_entry,
		                .handler = compare,
		                .data_size = sizeof(struct checked) };
	pthread_t t[3];
	long i;

	checks = wrong = 0;
	register_ok(register_kretprobe(&rp));
	for (i = 0; i < 3; i++)
		assert_int_equal(pthread_create(&t[i], NULL, calls_often, (void *)(i * 100000)), 0);
	for (i = 0; i < 3; i++)
		pthread_join(t[i], NULL);
	unregister_kretprobe(&rp);
	assert_int_equal(checks, 9000);
	assert_int_equal(wrong, 0);
}

/* --- where there are none ---------------------------------------------------------- */

static int asked, got;

static int asks(const struct pt_regs *regs)
{
	double value;

	asked++;
	got += ukp_return_f64(regs, &value);
	return 0;
}

static int asks_at_entry(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	return asks(regs);
}

static int asks_for_other_registers(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	struct pt_regs copy = *regs;

	return asks(&copy);
}

static int asks_before(struct kprobe *p, struct pt_regs *regs)
{
	return asks(regs);
}

static void nobody_else_gets_any(void **state)
{
	struct kretprobe rp = { .kp = { .symbol_name = "one_double", .flags = by },
		                .entry_handler = asks_at_entry,
		                .handler = asks_for_other_registers };
	struct kretprobe novec = { .kp = { .symbol_name = "one_double", .flags = by | UKP_NOVEC },
		                   .handler = asks_at_entry };
	struct kprobe kp = { .symbol_name = "one_double", .pre_handler = asks_before };
	struct pt_regs none = { 0 };

	asked = got = 0;
	register_ok(register_kretprobe(&rp));
	register_ok(register_kprobe(&kp));
	register_ok(register_kretprobe(&novec));
	one_double(1);
	assert_int_equal(asked, 4);
	asks(&none);
	asks(NULL);
	assert_int_equal(got, 0);
	unregister_kretprobe(&rp);
	unregister_kprobe(&kp);
	unregister_kretprobe(&novec);
}

#define T(name) cmocka_unit_test_teardown(name, untouched)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(kretprobes_get_them),      T(fprobes_get_them),
		T(rethooks_get_them),        T(each_of_several_probes_gets_them),
		T(each_thread_gets_its_own), T(nobody_else_gets_any),
	};
	int failed = 0;
	size_t i;

	for (i = 0; i < sizeof(mechanisms) / sizeof(*mechanisms); i++) {
		by = mechanisms[i];
		in_jumps = false;
		failed += run_in_both_forms(tests);
	}
	return failed;
}
