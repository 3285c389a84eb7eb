/* SPDX-License-Identifier: MIT */
/* Each form of copy, bytes in and bytes out.  Code at 0x1000, slot at 0x3000. */
#include "unit/plan/copying.h"

/* From the end of any straight-line copy, as far as it is long: back behind the original. */
#define JMP_BACK 0xe9, 0xfb, 0xdf, 0xff, 0xff

static void a_plain_instruction_is_copied_and_jumps_back(void **state)
{
	expect_copy(BYTES(0x55), INTO(0x55, JMP_BACK));
	expect_copy(BYTES(0x48, 0x89, 0xe5), INTO(0x48, 0x89, 0xe5, JMP_BACK));
	expect_copy(BYTES(0xf3, 0x0f, 0x1e, 0xfa), INTO(0xf3, 0x0f, 0x1e, 0xfa, JMP_BACK));
}

static void bytes_behind_the_instruction_are_not_copied(void **state)
{
	struct copied c = copy_to(BYTES(0x55, 0x48, 0x89, 0xe5), ADDR, SLOT, 0);

	expect_bytes(&c, INTO(0x55, JMP_BACK));
	assert_int_equal(c.site.len, 1);
	assert_memory_equal(c.site.orig, "\x55\0\0\0", 4);
}

static void lock_and_rep_prefixes_are_copied_whole(void **state)
{
	expect_copy(BYTES(0xf0, 0x48, 0x0f, 0xb1, 0x0f),
	            INTO(0xf0, 0x48, 0x0f, 0xb1, 0x0f, JMP_BACK));
	expect_copy(BYTES(0xf3, 0x48, 0xa5), INTO(0xf3, 0x48, 0xa5, JMP_BACK));
}

static void a_rip_operand_means_the_same_address(void **state)
{
	/* mov 0x2000,%eax; lea 0x2000,%rdi; vmovdqa 0x2000,%ymm0; vmovdqa64 0x2000,%zmm0 */
	expect_copy(BYTES(0x8b, 0x05, 0xfa, 0x0f, 0, 0),
	            INTO(0x8b, 0x05, 0xfa, 0xef, 0xff, 0xff, JMP_BACK));
	expect_copy(BYTES(0x48, 0x8d, 0x3d, 0xf9, 0x0f, 0, 0),
	            INTO(0x48, 0x8d, 0x3d, 0xf9, 0xef, 0xff, 0xff, JMP_BACK));
	expect_copy(BYTES(0xc5, 0xfd, 0x6f, 0x05, 0xf8, 0x0f, 0, 0),
	            INTO(0xc5, 0xfd, 0x6f, 0x05, 0xf8, 0xef, 0xff, 0xff, JMP_BACK));
	expect_copy(BYTES(0x62, 0xf1, 0xfd, 0x48, 0x6f, 0x05, 0xf6, 0x0f, 0, 0),
	            INTO(0x62, 0xf1, 0xfd, 0x48, 0x6f, 0x05, 0xf6, 0xef, 0xff, 0xff, JMP_BACK));
}

static void an_immediate_behind_a_rip_operand_stays(void **state)
{
	/* movl $0x12345678,0x2000 */
	expect_copy(BYTES(0xc7, 0x05, 0xf6, 0x0f, 0, 0, 0x78, 0x56, 0x34, 0x12),
	            INTO(0xc7, 0x05, 0xf6, 0xef, 0xff, 0xff, 0x78, 0x56, 0x34, 0x12, JMP_BACK));
}

static void an_operand_without_rip_is_left_alone(void **state)
{
	/* mov 0xffa(absolute),%eax; movabs 0x1122334455667788,%al */
	expect_copy(BYTES(0x8b, 0x04, 0x25, 0xfa, 0x0f, 0, 0),
	            INTO(0x8b, 0x04, 0x25, 0xfa, 0x0f, 0, 0, JMP_BACK));
	expect_copy(BYTES(0xa0, 0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11),
	            INTO(0xa0, 0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11, JMP_BACK));
}

static void an_eip_operand_reaches_from_anywhere(void **state)
{
	/* lea 0x2000(eip form),%eax: the sum is cut to 32 bits */
	expect_moved(BYTES(0x67, 0x8d, 0x05, 0xf9, 0x0f, 0, 0), ADDR, HIGH + 0x3000, 0,
	             INTO(0x67, 0x8d, 0x05, 0xf9, 0xef, 0xff, 0xff, 0xff, 0x25, 0, 0, 0, 0, 0x07,
	                  0x10, 0, 0, 0, 0, 0, 0));
}

#define TAKE_RSI 0x48, 0x8d, 0x64, 0x24, 0x80, 0x56, 0x48, 0xbe
#define GIVE_RSI 0x5e, 0x48, 0x8d, 0xa4, 0x24, 0x80, 0, 0, 0
#define FAR_BACK(n) 0xff, 0x25, 0, 0, 0, 0, n, 0x10, 0, 0, 0, 0, 0, 0

static void an_operand_out_of_reach_goes_through_a_register(void **state)
{
	/* mov 0x2000,%eax becomes mov 0(%rsi),%eax */
	expect_moved(BYTES(0x8b, 0x05, 0xfa, 0x0f, 0, 0), ADDR, HIGH, 0,
	             INTO(TAKE_RSI, 0, 0x20, 0, 0, 0, 0, 0, 0, 0x8b, 0x86, 0, 0, 0, 0, GIVE_RSI,
	                  FAR_BACK(6)));
	/* it makes room for the post handler, too */
	expect_moved(BYTES(0x8b, 0x05, 0xfa, 0x0f, 0, 0), ADDR, HIGH, HIGH + 0x1000,
	             INTO(TAKE_RSI, 0, 0x20, 0, 0, 0, 0, 0, 0, 0x8b, 0x86, 0, 0, 0, 0, 0x5e, 0xe8,
	                  0xe4, 0x0f, 0, 0, 0xcc));
}

/* What is made of an instruction that is far away from its operand. */
static void expect_far(const uint8_t *code, size_t n, const uint8_t *want, size_t want_n,
                       uint8_t push)
{
	struct copied c = copy_to(code, n, ADDR, HIGH, 0);

	assert_int_equal(c.why, PLAN_OK);
	assert_int_equal(n, want_n);
	assert_int_equal(c.out[5], push);
	assert_memory_equal(c.out + 16, want, n);
	assert_int_equal(c.out[16 + n], push + 8);
}

static void the_register_is_one_that_the_instruction_does_not_use(void **state)
{
	/* mov %rsi,m; mov %dil,m; lock cmpxchg16b m; div m; xsave m */
	expect_far(BYTES(0x48, 0x89, 0x35, 0, 0, 0, 0), INTO(0x48, 0x89, 0xb7, 0, 0, 0, 0), 0x57);
	expect_far(BYTES(0x40, 0x88, 0x3d, 0, 0, 0, 0), INTO(0x40, 0x88, 0xbe, 0, 0, 0, 0), 0x56);
	expect_far(BYTES(0xf0, 0x48, 0x0f, 0xc7, 0x0d, 0, 0, 0, 0),
	           INTO(0xf0, 0x48, 0x0f, 0xc7, 0x8e, 0, 0, 0, 0), 0x56);
	expect_far(BYTES(0x48, 0xf7, 0x35, 0, 0, 0, 0), INTO(0x48, 0xf7, 0xb6, 0, 0, 0, 0), 0x56);
	expect_far(BYTES(0x0f, 0xae, 0x25, 0, 0, 0, 0), INTO(0x0f, 0xae, 0xa6, 0, 0, 0, 0), 0x56);
	/* mulx m,%rsi,%rdi; andn m,%rsi,%rdi: in vvvv, too */
	expect_far(BYTES(0xc4, 0xe2, 0xc3, 0xf6, 0x35, 0, 0, 0, 0),
	           INTO(0xc4, 0xe2, 0xc3, 0xf6, 0xb3, 0, 0, 0, 0), 0x53);
	expect_far(BYTES(0xc4, 0xe2, 0xc8, 0xf2, 0x3d, 0, 0, 0, 0),
	           INTO(0xc4, 0xe2, 0xc8, 0xf2, 0xbb, 0, 0, 0, 0), 0x53);
	/* the upper bit of the base, which rip doesn't have: REX, VEX, EVEX */
	expect_far(BYTES(0x49, 0x89, 0x05, 0, 0, 0, 0), INTO(0x48, 0x89, 0x86, 0, 0, 0, 0), 0x56);
	expect_far(BYTES(0xc4, 0xc1, 0x7d, 0x6f, 0x05, 0, 0, 0, 0),
	           INTO(0xc4, 0xe1, 0x7d, 0x6f, 0x86, 0, 0, 0, 0), 0x56);
	expect_far(BYTES(0xc5, 0xfd, 0x6f, 0x05, 0, 0, 0, 0),
	           INTO(0xc5, 0xfd, 0x6f, 0x86, 0, 0, 0, 0), 0x56);
	expect_far(BYTES(0x62, 0xd1, 0xfd, 0x48, 0x6f, 0x05, 0, 0, 0, 0),
	           INTO(0x62, 0xf1, 0xfd, 0x48, 0x6f, 0x86, 0, 0, 0, 0), 0x56);
}

static void a_far_slot_jumps_and_calls_through_memory_by_a_return(void **state)
{
	/* jmp *0x2000; call *%fs:0x2000 */
	expect_moved(BYTES(0xff, 0x25, 0xfa, 0x0f, 0, 0), ADDR, HIGH, 0,
	             INTO(TAKE_RSI, 0, 0x20, 0, 0, 0, 0, 0, 0, 0x48, 0x8b, 0x36, 0x48, 0x87, 0x34,
	                  0x24, 0xc2, 0x80, 0));
	expect_moved(BYTES(0x64, 0xff, 0x15, 0xf9, 0x0f, 0, 0), HIGH + ADDR, ADDR, 0,
	             INTO(0x48, 0x8d, 0xa4, 0x24, 0x78, 0xff, 0xff, 0xff, 0x56, 0x48, 0xbe, 0, 0x20,
	                  0, 0, 0, 0x7f, 0, 0, 0x64, 0x48, 0x8b, 0x36, 0x48, 0x87, 0x34, 0x24, 0xc7,
	                  0x84, 0x24, 0x88, 0, 0, 0, 7, 0x10, 0, 0, 0xc7, 0x84, 0x24, 0x8c, 0, 0, 0,
	                  0, 0x7f, 0, 0, 0xc2, 0x80, 0));
}

static void a_far_slot_jumps_back_through_memory(void **state)
{
	expect_moved(BYTES(0x90), ADDR, HIGH, 0,
	             INTO(0x90, 0xff, 0x25, 0, 0, 0, 0, 0x01, 0x10, 0, 0, 0, 0, 0, 0));
}

static void a_jump_goes_straight_to_its_target(void **state)
{
	expect_copy(BYTES(0xeb, 0x0e), INTO(0xe9, 0x0b, 0xe0, 0xff, 0xff));
	expect_copy(BYTES(0xe9, 0x0b, 0, 0, 0), INTO(0xe9, 0x0b, 0xe0, 0xff, 0xff));
	expect_moved(BYTES(0xeb, 0x0e), ADDR, HIGH, 0,
	             INTO(0xff, 0x25, 0, 0, 0, 0, 0x10, 0x10, 0, 0, 0, 0, 0, 0));
}

static void a_conditional_jump_is_widened(void **state)
{
	for (uint8_t cc = 0; cc < 16; cc++) {
		expect_copy(BYTES(0x70 | cc, 0x0e), INTO(0x0f, 0x80 | cc, 0x0a, 0xe0, 0xff, 0xff,
		                                         0xe9, 0xf7, 0xdf, 0xff, 0xff));
		expect_copy(BYTES(0x0f, 0x80 | cc, 0x0a, 0, 0, 0),
		            INTO(0x0f, 0x80 | cc, 0x0a, 0xe0, 0xff, 0xff, 0xe9, 0xfb, 0xdf, 0xff,
		                 0xff));
	}
}

static void a_conditional_jump_out_of_reach_takes_an_island(void **state)
{
	expect_moved(BYTES(0x74, 0x0e), ADDR, HIGH, 0,
	             INTO(0x74, 0x0e, 0xff, 0x25, 0, 0, 0, 0, 0x02, 0x10, 0, 0, 0, 0, 0, 0, 0xff,
	                  0x25, 0, 0, 0, 0, 0x10, 0x10, 0, 0, 0, 0, 0, 0));
}

static void a_loop_takes_an_island(void **state)
{
	for (uint8_t kind = 0xe0; kind <= 0xe3; kind++) {
		expect_copy(BYTES(kind, 0x0e), INTO(kind, 0x05, 0xe9, 0xfb, 0xdf, 0xff, 0xff, 0xe9,
		                                    0x04, 0xe0, 0xff, 0xff));
		expect_copy(BYTES(0x67, kind, 0x0d), INTO(0x67, kind, 0x05, 0xe9, 0xfb, 0xdf, 0xff,
		                                          0xff, 0xe9, 0x03, 0xe0, 0xff, 0xff));
	}
}

static void a_call_pushes_the_original_return_address(void **state)
{
	expect_copy(BYTES(0xe8, 0x0b, 0, 0, 0),
	            INTO(0x68, 0x05, 0x10, 0, 0, 0xe9, 0x06, 0xe0, 0xff, 0xff));
	/* ... also above 2 and 4 GiB, where push alone can't */
	expect_moved(BYTES(0xe8, 0x0b, 0, 0, 0), 0x80001000, 0x80003000, 0,
	             INTO(0x68, 0x05, 0x10, 0, 0x80, 0xc7, 0x44, 0x24, 0x04, 0, 0, 0, 0, 0xe9, 0xfe,
	                  0xdf, 0xff, 0xff));
	expect_moved(BYTES(0xe8, 0x0b, 0, 0, 0), HIGH + ADDR, HIGH + SLOT, 0,
	             INTO(0x68, 0x05, 0x10, 0, 0, 0xc7, 0x44, 0x24, 0x04, 0, 0x7f, 0, 0, 0xe9, 0xfe,
	                  0xdf, 0xff, 0xff));
}

static void the_linkers_padded_calls_are_calls(void **state)
{
	/* data16 data16 rex.W call (TLS); addr32 call; bnd call */
	expect_copy(BYTES(0x66, 0x66, 0x48, 0xe8, 0x08, 0, 0, 0),
	            INTO(0x68, 0x08, 0x10, 0, 0, 0xe9, 0x06, 0xe0, 0xff, 0xff));
	expect_copy(BYTES(0x67, 0xe8, 0x0a, 0, 0, 0),
	            INTO(0x68, 0x06, 0x10, 0, 0, 0xe9, 0x06, 0xe0, 0xff, 0xff));
	expect_copy(BYTES(0xf2, 0xe8, 0x0a, 0, 0, 0),
	            INTO(0x68, 0x06, 0x10, 0, 0, 0xe9, 0x06, 0xe0, 0xff, 0xff));
}

static void an_indirect_call_becomes_push_and_jump(void **state)
{
	/* *%rax; *%r11; notrack *%rdx; *8(%rbx,%rcx,2); *0x2000(rip) */
	expect_copy(BYTES(0xff, 0xd0), INTO(0x68, 0x02, 0x10, 0, 0, 0xff, 0xe0));
	expect_copy(BYTES(0x41, 0xff, 0xd3), INTO(0x68, 0x03, 0x10, 0, 0, 0x41, 0xff, 0xe3));
	expect_copy(BYTES(0x3e, 0xff, 0xd2), INTO(0x68, 0x03, 0x10, 0, 0, 0x3e, 0xff, 0xe2));
	expect_copy(BYTES(0xff, 0x54, 0x4b, 0x08),
	            INTO(0x68, 0x04, 0x10, 0, 0, 0xff, 0x64, 0x4b, 0x08));
	expect_copy(BYTES(0xff, 0x15, 0xfa, 0x0f, 0, 0),
	            INTO(0x68, 0x06, 0x10, 0, 0, 0xff, 0x25, 0xf5, 0xef, 0xff, 0xff));
}

static void an_operand_on_the_stack_is_found_behind_the_push(void **state)
{
#define PUSHED(n) 0x68, n, 0x10, 0, 0
	expect_copy(BYTES(0xff, 0x14, 0x24), INTO(PUSHED(3), 0xff, 0x64, 0x24, 0x08));
	expect_copy(BYTES(0xff, 0x54, 0x24, 0x10), INTO(PUSHED(4), 0xff, 0x64, 0x24, 0x18));
	expect_copy(BYTES(0xff, 0x54, 0x24, 0x78),
	            INTO(PUSHED(4), 0xff, 0xa4, 0x24, 0x80, 0, 0, 0));
	expect_copy(BYTES(0xff, 0x94, 0x24, 0, 1, 0, 0),
	            INTO(PUSHED(7), 0xff, 0xa4, 0x24, 8, 1, 0, 0));
	expect_copy(BYTES(0xff, 0x14, 0xcc), INTO(PUSHED(3), 0xff, 0x64, 0xcc, 0x08));
	expect_copy(BYTES(0xff, 0x54, 0x24, 0xf0), INTO(PUSHED(4), 0xff, 0x64, 0x24, 0xf8));
	/* r12 has rsp's number but for REX.B, and r12 as an index is one */
	expect_copy(BYTES(0x41, 0xff, 0x14, 0x24), INTO(PUSHED(4), 0x41, 0xff, 0x24, 0x24));
	expect_copy(BYTES(0x42, 0xff, 0x14, 0x24), INTO(PUSHED(4), 0x42, 0xff, 0x64, 0x24, 8));
}

static void returns_and_indirect_jumps_are_copied_alone(void **state)
{
	expect_copy(BYTES(0xc3), INTO(0xc3));
	expect_copy(BYTES(0xf3, 0xc3), INTO(0xf3, 0xc3));
	expect_copy(BYTES(0xc2, 0x10, 0), INTO(0xc2, 0x10, 0));
	expect_copy(BYTES(0xff, 0xe0), INTO(0xff, 0xe0));
	expect_copy(BYTES(0x3e, 0xff, 0xe0), INTO(0x3e, 0xff, 0xe0));
	expect_copy(BYTES(0xff, 0x64, 0x24, 0x10), INTO(0xff, 0x64, 0x24, 0x10));
	expect_copy(BYTES(0xff, 0x25, 0xfa, 0x0f, 0, 0), INTO(0xff, 0x25, 0xfa, 0xef, 0xff, 0xff));
}

static void a_syscall_leaves_the_original_pc_in_rcx(void **state)
{
	expect_copy(BYTES(0x0f, 0x05),
	            INTO(0x0f, 0x05, 0xb9, 0x02, 0x10, 0, 0, 0xe9, 0xf6, 0xdf, 0xff, 0xff));
	expect_moved(BYTES(0x0f, 0x05), HIGH + ADDR, HIGH + SLOT, 0,
	             INTO(0x0f, 0x05, 0x48, 0xb9, 0x02, 0x10, 0, 0, 0, 0x7f, 0, 0, 0xe9, 0xf1, 0xdf,
	                  0xff, 0xff));
}

static void a_post_handler_is_called_below_the_red_zone(void **state)
{
	struct copied c = copy_to(BYTES(0x90), ADDR, SLOT, 0x5000);

	expect_bytes(&c, INTO(0x90, 0x48, 0x8d, 0x64, 0x24, 0x80, 0xe8, 0xf5, 0x1f, 0, 0, 0xcc));
	assert_int_equal(c.site.flags, UKP_SITE_POST);
	c = copy_to(BYTES(0x90), ADDR, SLOT, HIGH);
	expect_bytes(&c, INTO(0x90, 0x48, 0x8d, 0x64, 0x24, 0x80, 0xff, 0x15, 0, 0, 0, 0, 0, 0, 0,
	                      0, 0, 0x7f, 0, 0));
}

static void control_flow_ignores_a_post_handler(void **state)
{
	struct copied c = copy_to(BYTES(0xc3), ADDR, SLOT, 0x5000);

	expect_bytes(&c, INTO(0xc3));
	assert_int_equal(c.site.flags, UKP_SITE_CONTROL);
}

static void fields_that_are_not_the_planners_stay(void **state)
{
	const uint8_t code[] = { 0x90 };
	const struct plan_request req = { code, 1, ADDR, SLOT, 0 };
	struct ukp_site site = {
		.action = 7, .nmissed = 8, .resume = 9, .flags = UKP_SITE_INTERNAL | UKP_SITE_POST
	};
	uint8_t out[UKP_SLOT_SIZE];

	assert_int_equal(plan_copy(&req, out, &site), PLAN_OK);
	assert_int_equal(site.action, 7);
	assert_int_equal(site.nmissed, 8);
	assert_int_equal(site.resume, 9);
	assert_int_equal(site.flags, UKP_SITE_INTERNAL);
}

static void a_refusal_writes_nothing(void **state)
{
	const uint8_t code[] = { 0xff, 0x35, 0, 0, 0, 0 };
	const struct plan_request req = { code, sizeof(code), ADDR, HIGH, 0 };
	struct ukp_site site, before;
	uint8_t out[UKP_SLOT_SIZE], out_before[UKP_SLOT_SIZE];

	memset(&site, 0x5a, sizeof(site));
	memset(out, 0xa5, sizeof(out));
	before = site;
	memcpy(out_before, out, sizeof(out));
	assert_int_equal(plan_copy(&req, out, &site), PLAN_OUT_OF_REACH);
	assert_memory_equal(&site, &before, sizeof(site));
	assert_memory_equal(out, out_before, sizeof(out));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_plain_instruction_is_copied_and_jumps_back),
		cmocka_unit_test(bytes_behind_the_instruction_are_not_copied),
		cmocka_unit_test(lock_and_rep_prefixes_are_copied_whole),
		cmocka_unit_test(a_rip_operand_means_the_same_address),
		cmocka_unit_test(an_immediate_behind_a_rip_operand_stays),
		cmocka_unit_test(an_operand_without_rip_is_left_alone),
		cmocka_unit_test(an_eip_operand_reaches_from_anywhere),
		cmocka_unit_test(an_operand_out_of_reach_goes_through_a_register),
		cmocka_unit_test(the_register_is_one_that_the_instruction_does_not_use),
		cmocka_unit_test(a_far_slot_jumps_and_calls_through_memory_by_a_return),
		cmocka_unit_test(a_far_slot_jumps_back_through_memory),
		cmocka_unit_test(a_jump_goes_straight_to_its_target),
		cmocka_unit_test(a_conditional_jump_is_widened),
		cmocka_unit_test(a_conditional_jump_out_of_reach_takes_an_island),
		cmocka_unit_test(a_loop_takes_an_island),
		cmocka_unit_test(a_call_pushes_the_original_return_address),
		cmocka_unit_test(the_linkers_padded_calls_are_calls),
		cmocka_unit_test(an_indirect_call_becomes_push_and_jump),
		cmocka_unit_test(an_operand_on_the_stack_is_found_behind_the_push),
		cmocka_unit_test(returns_and_indirect_jumps_are_copied_alone),
		cmocka_unit_test(a_syscall_leaves_the_original_pc_in_rcx),
		cmocka_unit_test(a_post_handler_is_called_below_the_red_zone),
		cmocka_unit_test(control_flow_ignores_a_post_handler),
		cmocka_unit_test(fields_that_are_not_the_planners_stay),
		cmocka_unit_test(a_refusal_writes_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
