# SPDX-License-Identifier: GPL-2.0
# For the Makefile of another module that uses apic_timer. Gives its compiler
# the headers, and modpost the exported symbols, of the apic-timer that DKMS has
# installed for the kernel that is built for:
#
#	obj-m := mine.o
#	include /usr/src/apic-timer/include/apic_timer.mk
#
# KERNELRELEASE is set by kbuild, which reads that Makefile too.
apic_timer_find = $(or \
	$(wildcard /var/lib/dkms/apic-timer/kernel-$(KERNELRELEASE)-x86_64/$(1)),\
	$(error apic-timer is not installed for kernel $(KERNELRELEASE): \
		see "dkms status apic-timer"))

# Expanded when used, so that cleaning needs neither.
ccflags-y += -I$(call apic_timer_find,../../source/include)
KBUILD_EXTRA_SYMBOLS += $(call apic_timer_find,module/Module.symvers)
