/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _APIC_TIMER_PARAM_H
#define _APIC_TIMER_PARAM_H

#include <linux/moduleparam.h>

/**
 * struct apic_timer_param - a number that is given when the module is loaded
 * @value:	where it is kept
 * @min:	smallest that is taken
 * @max:	largest that is taken
 * @unit:	of all three
 */
struct apic_timer_param {
	unsigned int *value;
	unsigned int min;
	unsigned int max;
	const char *unit;
};

extern const struct kernel_param_ops apic_timer_param_ops;

/*
 * All that is to be known of a parameter, and what "modinfo" prints. One that is
 * out of range is refused, and with it the module, which says so in the log.
 *
 * The manual's table is made of these lines: @_default, @_min and @_max are
 * numbers, and @_unit and @_what are strings.
 */
#define APIC_TIMER_PARAM(_name, _default, _min, _max, _unit, _what)	\
	APIC_TIMER_PARAM_NAMED(_name, _name, static, _default, _min,	\
			       _max, _unit, _what)

/* The same for a variable of another name, which other files know. */
#define APIC_TIMER_PARAM_NAMED(_name, _variable, _storage, _default,	\
			       _min, _max, _unit, _what)		\
	_storage unsigned int _variable = (_default);			\
	static_assert((_default) >= (_min) && (_default) <= (_max));	\
	static const struct apic_timer_param param_##_name = {		\
		.value = &(_variable),					\
		.min = (_min),						\
		.max = (_max),						\
		.unit = (_unit),					\
	};								\
	module_param_cb(_name, &apic_timer_param_ops,			\
			(void *)&param_##_name, 0444);			\
	__MODULE_PARM_TYPE(_name, "uint");				\
	MODULE_PARM_DESC(_name, _what ", in " _unit " (" #_min " to "	\
			 #_max ", default " #_default ")")

#endif /* _APIC_TIMER_PARAM_H */
