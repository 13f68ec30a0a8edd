/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Whether this thread has its core to itself.
 *
 * Another hardware thread of the core, which in a virtual machine may be another guest's, slows
 * down what fills the core or its caches, for seconds at a time. No quantile of the repetitions
 * is undisturbed then. So each repetition is between two short probes, and a thread that is not
 * alone for long moves to another CPU.
 */
#ifndef CORE_H
#define CORE_H

#include <stdbool.h>

/* How long a command throws away repetitions, for each of its runs, by default */
#define CORE_PATIENCE_S	2.0

/* Throw away repetitions for this long in all. */
void core_patience(double s);
/* Begin a series of repetitions. */
void core_begin(void);
/*
 * Return: true if this thread was alone at both ends of the time since the last call, or since
 * core_begin(); or if it has not been for so long that there is no more time to wait for it.
 */
bool core_was_alone(void);
/*
 * Return: true once after it has turned out that the thread had not been alone before, although
 * it seemed to be: all repetitions since the first core_begin() are to be made again, and are
 * not counted any more.
 */
bool core_misjudged(void);
/* Return: the number of repetitions that were taken although the thread was not alone. */
long core_crowded(void);

#endif
