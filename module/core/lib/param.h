/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _APIC_TIMER_PARAM_H
#define _APIC_TIMER_PARAM_H

#include <linux/moduleparam.h>

/**
 * struct apic_timer_param - a numeric module parameter
 * @value:	variable that holds it
 * @min:	minimum
 * @max:	maximum
 * @unit:	unit of all three
 */
struct apic_timer_param {
	unsigned int *value;
	unsigned int min;
	unsigned int max;
	const char *unit;
};

extern const struct kernel_param_ops apic_timer_param_ops;

/*
 * Define a parameter with its default, range, unit and description, from which
 * the text of "modinfo" is made. With a value out of range the module is not
 * loaded, and the kernel log says why.
 *
 * The manual's table is generated from these lines: @_default, @_min and @_max are
 * numbers, and @_unit and @_what are strings.
 */
#define APIC_TIMER_PARAM(_name, _default, _min, _max, _unit, _what)	\
	APIC_TIMER_PARAM_NAMED(_name, _name, static, _default, _min,	\
			       _max, _unit, _what)

/* Same as APIC_TIMER_PARAM(), for a variable of another name that other files use. */
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
