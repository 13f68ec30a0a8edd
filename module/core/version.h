/* SPDX-License-Identifier: GPL-2.0 */
/* dkms.conf repeats this; "make check" compares them. */
#define APIC_TIMER_VERSION "0.1.0"
