/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dlsym and dlvsym. The C library answers RTLD_NEXT and RTLD_DEFAULT by the return address it finds, so for
 * everything that is not ours these stubs jump to the real function with arguments, stack and return address
 * as they were; a function in C would be taken for the caller.
 *
 * door_dlsym and door_dlvsym (door.c) return { where to jump, or 0; what to return }: rax, rdx.
 */
	.text

	.macro door name, decide
	.globl	\name
	.type	\name, @function
	.hidden	\decide
	.p2align 4
\name:
	.cfi_startproc
	endbr64
	pushq	%rdi
	.cfi_adjust_cfa_offset 8
	pushq	%rsi
	.cfi_adjust_cfa_offset 8
	pushq	%rdx
	.cfi_adjust_cfa_offset 8
	movq	24(%rsp), %rcx		/* the caller, fourth argument */
	call	\decide
	movq	%rax, %r11
	movq	%rdx, %rax
	popq	%rdx
	.cfi_adjust_cfa_offset -8
	popq	%rsi
	.cfi_adjust_cfa_offset -8
	popq	%rdi
	.cfi_adjust_cfa_offset -8
	testq	%r11, %r11
	jnz	1f
	ret
1:	jmp	*%r11
	.cfi_endproc
	.size	\name, . - \name
	.endm

	door	dlsym, door_dlsym
	door	dlvsym, door_dlvsym

	.section .note.GNU-stack, "", @progbits

	/* Branch tracking and shadow stacks: without this note the linker turns both off for the library. */
	.section .note.gnu.property, "a", @note
	.p2align 3
	.long	4, 16, 5		/* name, content, NT_GNU_PROPERTY_TYPE_0 */
	.asciz	"GNU"
	.long	0xc0000002, 4, 3, 0	/* X86_FEATURE_1_AND: IBT, SHSTK */
