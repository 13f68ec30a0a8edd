// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A library for LD_PRELOAD that lets srand() take the seed LAB_SEED instead of
 * what the program passes, such as the time. No headers: it is compiled where
 * no libc headers are.
 */

char *getenv(const char *name);
int atoi(const char *text);
void srandom(unsigned int seed);
void srand(unsigned int seed);

void srand(unsigned int seed)
{
	char *wanted = getenv("LAB_SEED");

	srandom(wanted ? (unsigned int)atoi(wanted) : seed);
}
