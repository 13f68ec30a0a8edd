/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The option ROM of a Bochs guest: loads a kernel and its initramfs from the
 * first disk, and starts it by the PVH entry point.
 *
 * The BIOS calls option ROMs when it is done with the CPUs, the interrupt
 * controllers and the ACPI tables. This one does not return to it. What it is to
 * do is in the fields below; lab/pvh.py fills them in, and appends what the
 * kernel gets to know.
 */
#define BATCH		256		/* sectors of a command */

	.code16
	.globl	start
start:
	.byte	0x55, 0xaa, 0		/* signature; size in 512 bytes */
	jmp	code
	.balign	8
address:
	.long	0			/* offset 8: where the disk goes */
batches:
	.long	0			/* offset 12: how much of it */
entry:	.long	0			/* offset 16: of the kernel */
info:	.long	0			/* offset 20: struct hvm_start_info */
apic:	.long	0			/* offset 24: IA32_APIC_BASE, 0: as is */

code:
	cli
	lgdtl	%cs:(table - start)
	movl	%cr0, %eax
	orb	$1, %al
	movl	%eax, %cr0
	ljmpl	$8, $protected

	.code32
protected:
	movl	$16, %eax
	movl	%eax, %ds
	movl	%eax, %es
	movl	%eax, %fs
	movl	%eax, %gs
	movl	%eax, %ss

	cld
	movl	address, %edi
	movl	batches, %ebp
	xorl	%esi, %esi		/* sector */
command:
	movw	$0x1f2, %dx
	movb	$(BATCH & 0xff), %al
	outb	%al, %dx
	movl	%esi, %eax
	incw	%dx
	outb	%al, %dx		/* 0x1f3: bits 0 to 7 */
	shrl	$8, %eax
	incw	%dx
	outb	%al, %dx
	shrl	$8, %eax
	incw	%dx
	outb	%al, %dx
	shrl	$8, %eax
	orb	$0xe0, %al		/* first disk, by sector number */
	incw	%dx
	outb	%al, %dx
	incw	%dx
	movb	$0x20, %al		/* READ SECTORS */
	outb	%al, %dx
	movl	$BATCH, %ebx
sector:
	movw	$0x1f7, %dx
1:	inb	%dx, %al
	andb	$0x88, %al		/* BSY, DRQ */
	cmpb	$0x08, %al
	jne	1b
	movw	$0x1f0, %dx
	movl	$128, %ecx
	rep insl
	decl	%ebx
	jnz	sector
	addl	$BATCH, %esi
	decl	%ebp
	jnz	command

	movl	apic, %eax
	testl	%eax, %eax
	jz	1f
	movl	$0x1b, %ecx		/* IA32_APIC_BASE */
	xorl	%edx, %edx
	wrmsr
1:	movl	info, %ebx
	jmp	*entry

	.balign	8
gdt:	.quad	0
	.quad	0x00cf9b000000ffff	/* 8: code, 4 GiB */
	.quad	0x00cf93000000ffff	/* 16: data, 4 GiB */
table:	.word	. - gdt - 1
	.long	gdt
