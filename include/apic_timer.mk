# SPDX-License-Identifier: GPL-2.0
# For the Makefile of another module that uses apic_timer. Gives its compiler
# the headers, and modpost the exported symbols, of the apic-timer that DKMS has
# installed for the kernel that is built for:
#
#	obj-m := mine.o
#	include /usr/src/apic-timer/include/apic_timer.mk
#
# KERNELRELEASE is set by kbuild, which reads that Makefile too. The make that calls
# kbuild may also expand what is below, if the variable was assigned by := or comes
# from its environment or command line: there nothing is added.
apic_timer_find = $(if $(KERNELRELEASE),$(or \
	$(wildcard /var/lib/dkms/apic-timer/kernel-$(KERNELRELEASE)-x86_64/$(1)),\
	$(error apic-timer is not installed for kernel $(KERNELRELEASE): \
		see "dkms status apic-timer")))

# Usually expanded when used, so that cleaning needs neither.
ccflags-y += $(addprefix -I,$(call apic_timer_find,../../source/include))
ifneq ($(filter command,$(origin KBUILD_EXTRA_SYMBOLS)),)
# Otherwise what the command line says would replace this, and modpost would not know us.
override KBUILD_EXTRA_SYMBOLS += $(call apic_timer_find,module/Module.symvers)
else
KBUILD_EXTRA_SYMBOLS += $(call apic_timer_find,module/Module.symvers)
endif
