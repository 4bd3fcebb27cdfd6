/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dlsym and dlvsym. The C library answers RTLD_NEXT and RTLD_DEFAULT by the return address it finds, so for
 * everything that is not ours these stubs jump to the real function with arguments, stack and return address
 * as they were; a function in C would be taken for the caller.
 *
 * door_dlsym and door_dlvsym (door.c) return { where to jump, or 0; what to return }: x0, x1.
 * The jump goes through x16, which `bti c` at the other end admits. The hints are no-ops on older processors:
 * 34 bti c, 25 paciasp, 29 autiasp.
 */
	.text

	.macro door name, decide
	.globl	\name
	.type	\name, %function
	.hidden	\decide
	.p2align 4
\name:
	.cfi_startproc
	hint	#34
	mov	x3, x30			/* the caller, fourth argument */
	hint	#25
	.cfi_negate_ra_state
	stp	x29, x30, [sp, #-48]!
	.cfi_def_cfa_offset 48
	.cfi_offset 29, -48
	.cfi_offset 30, -40
	mov	x29, sp
	stp	x0, x1, [sp, #16]
	str	x2, [sp, #32]
	bl	\decide
	mov	x16, x0
	mov	x17, x1
	ldp	x0, x1, [sp, #16]
	ldr	x2, [sp, #32]
	ldp	x29, x30, [sp], #48
	.cfi_restore 29
	.cfi_restore 30
	.cfi_def_cfa_offset 0
	hint	#29
	.cfi_negate_ra_state
	cbnz	x16, 1f
	mov	x0, x17
	ret
1:	br	x16
	.cfi_endproc
	.size	\name, . - \name
	.endm

	door	dlsym, door_dlsym
	door	dlvsym, door_dlvsym

	.section .note.GNU-stack, "", %progbits

	/* Branch targets and signed returns: without this note the linker turns both off for the library. */
	.section .note.gnu.property, "a", %note
	.p2align 3
	.long	4, 16, 5		/* name, content, NT_GNU_PROPERTY_TYPE_0 */
	.asciz	"GNU"
	.long	0xc0000000, 4, 3, 0	/* AARCH64_FEATURE_1_AND: BTI, PAC */
