// SPDX-License-Identifier: GPL-2.0
/*
 * Search for a key, as in the contests of 1997 and 1998: each key encrypts a known
 * block. RC5 consists of rotations by unpredictable numbers, each of which depends on
 * the previous one; DES consists of loads from tables, XOR and shifts. Together, they
 * distinguish a core's speed of rotation from that of everything else.
 */
#include "keys.h"
#include "tsc.h"

/* RC5 with words of 32 bits and 12 rounds, as in Rivest's paper of 1994 */

#define ROUNDS		12
#define TABLE		(2 * (ROUNDS + 1))
#define MAGIC_P		0xb7e15163
#define MAGIC_Q		0x9e3779b9

static inline uint32_t rol(uint32_t word, uint32_t by)
{
	by &= 31;
	return word << by | word >> (-by & 31);
}

static inline __attribute__((always_inline)) void
rc5(uint32_t *key, unsigned int words, const uint32_t plain[2], uint32_t block[2])
{
	uint32_t table[TABLE], a = 0, b = 0;
	unsigned int i, j = 0, k;

	table[0] = MAGIC_P;
	for (i = 1; i < TABLE; i++)
		table[i] = table[i - 1] + MAGIC_Q;
	for (k = 0; k < 3; k++) {
		for (i = 0; i < TABLE; i++) {
			a = rol(table[i] + a + b, 3);
			table[i] = a;
			b = rol(key[j] + a + b, a + b);
			key[j] = b;
			j = (j + 1) % words;
		}
	}
	a = plain[0] + table[0];
	b = plain[1] + table[1];
	for (i = 2; i < TABLE; i += 2) {
		a = rol(a ^ b, b) + table[i];
		b = rol(b ^ a, a) + table[i + 1];
	}
	block[0] = a;
	block[1] = b;
}

void keys_rc5_encrypt(const uint32_t *key, unsigned int words, uint32_t block[2])
{
	uint32_t plain[2] = { block[0], block[1] }, mixed[4] = { 0 };
	unsigned int i;

	for (i = 0; i < words && i < 4; i++)
		mixed[i] = key[i];
	rc5(mixed, words, plain, block);
}

/*
 * The block that a search compares with, and the number of matches: volatile, so that the
 * compiler knows neither.
 */
static volatile uint64_t wanted, found;

void keys_want(uint64_t block)
{
	wanted = block;
	found = 0;
}

uint64_t keys_found(void)
{
	return found;
}

uint64_t keys_rc5(uint64_t count)
{
	static const uint32_t plain[2] = { (uint32_t)KEYS_PLAIN, KEYS_PLAIN >> 32 };
	uint32_t first = wanted, second = wanted >> 32, key[2], block[2];
	uint64_t start = tsc_read_fenced(), i;

	for (i = 0; i < count; i++) {
		key[0] = i;
		key[1] = i >> 32;
		rc5(key, 2, plain, block);
		if (block[0] == first && block[1] == second)
			found++;
	}
	return tsc_read_fenced() - start;
}

/* DES, as in FIPS 46: bits are counted from 1, the highest */

static const unsigned char initial[64] = {
	58, 50, 42, 34, 26, 18, 10, 2, 60, 52, 44, 36, 28, 20, 12, 4,
	62, 54, 46, 38, 30, 22, 14, 6, 64, 56, 48, 40, 32, 24, 16, 8,
	57, 49, 41, 33, 25, 17, 9, 1, 59, 51, 43, 35, 27, 19, 11, 3,
	61, 53, 45, 37, 29, 21, 13, 5, 63, 55, 47, 39, 31, 23, 15, 7,
};

static const unsigned char choice_1[56] = {
	57, 49, 41, 33, 25, 17, 9, 1, 58, 50, 42, 34, 26, 18,
	10, 2, 59, 51, 43, 35, 27, 19, 11, 3, 60, 52, 44, 36,
	63, 55, 47, 39, 31, 23, 15, 7, 62, 54, 46, 38, 30, 22,
	14, 6, 61, 53, 45, 37, 29, 21, 13, 5, 28, 20, 12, 4,
};

static const unsigned char choice_2[48] = {
	14, 17, 11, 24, 1, 5, 3, 28, 15, 6, 21, 10,
	23, 19, 12, 4, 26, 8, 16, 7, 27, 20, 13, 2,
	41, 52, 31, 37, 47, 55, 30, 40, 51, 45, 33, 48,
	44, 49, 39, 56, 34, 53, 46, 42, 50, 36, 29, 32,
};

static const unsigned char permutation[32] = {
	16, 7, 20, 21, 29, 12, 28, 17, 1, 15, 23, 26, 5, 18, 31, 10,
	2, 8, 24, 14, 32, 27, 3, 9, 19, 13, 30, 6, 22, 11, 4, 25,
};

static const unsigned char boxes[8][64] = {
	{ 14, 4, 13, 1, 2, 15, 11, 8, 3, 10, 6, 12, 5, 9, 0, 7,
	  0, 15, 7, 4, 14, 2, 13, 1, 10, 6, 12, 11, 9, 5, 3, 8,
	  4, 1, 14, 8, 13, 6, 2, 11, 15, 12, 9, 7, 3, 10, 5, 0,
	  15, 12, 8, 2, 4, 9, 1, 7, 5, 11, 3, 14, 10, 0, 6, 13 },
	{ 15, 1, 8, 14, 6, 11, 3, 4, 9, 7, 2, 13, 12, 0, 5, 10,
	  3, 13, 4, 7, 15, 2, 8, 14, 12, 0, 1, 10, 6, 9, 11, 5,
	  0, 14, 7, 11, 10, 4, 13, 1, 5, 8, 12, 6, 9, 3, 2, 15,
	  13, 8, 10, 1, 3, 15, 4, 2, 11, 6, 7, 12, 0, 5, 14, 9 },
	{ 10, 0, 9, 14, 6, 3, 15, 5, 1, 13, 12, 7, 11, 4, 2, 8,
	  13, 7, 0, 9, 3, 4, 6, 10, 2, 8, 5, 14, 12, 11, 15, 1,
	  13, 6, 4, 9, 8, 15, 3, 0, 11, 1, 2, 12, 5, 10, 14, 7,
	  1, 10, 13, 0, 6, 9, 8, 7, 4, 15, 14, 3, 11, 5, 2, 12 },
	{ 7, 13, 14, 3, 0, 6, 9, 10, 1, 2, 8, 5, 11, 12, 4, 15,
	  13, 8, 11, 5, 6, 15, 0, 3, 4, 7, 2, 12, 1, 10, 14, 9,
	  10, 6, 9, 0, 12, 11, 7, 13, 15, 1, 3, 14, 5, 2, 8, 4,
	  3, 15, 0, 6, 10, 1, 13, 8, 9, 4, 5, 11, 12, 7, 2, 14 },
	{ 2, 12, 4, 1, 7, 10, 11, 6, 8, 5, 3, 15, 13, 0, 14, 9,
	  14, 11, 2, 12, 4, 7, 13, 1, 5, 0, 15, 10, 3, 9, 8, 6,
	  4, 2, 1, 11, 10, 13, 7, 8, 15, 9, 12, 5, 6, 3, 0, 14,
	  11, 8, 12, 7, 1, 14, 2, 13, 6, 15, 0, 9, 10, 4, 5, 3 },
	{ 12, 1, 10, 15, 9, 2, 6, 8, 0, 13, 3, 4, 14, 7, 5, 11,
	  10, 15, 4, 2, 7, 12, 9, 5, 6, 1, 13, 14, 0, 11, 3, 8,
	  9, 14, 15, 5, 2, 8, 12, 3, 7, 0, 4, 10, 1, 13, 11, 6,
	  4, 3, 2, 12, 9, 5, 15, 10, 11, 14, 1, 7, 6, 0, 8, 13 },
	{ 4, 11, 2, 14, 15, 0, 8, 13, 3, 12, 9, 7, 5, 10, 6, 1,
	  13, 0, 11, 7, 4, 9, 1, 10, 14, 3, 5, 12, 2, 15, 8, 6,
	  1, 4, 11, 13, 12, 3, 7, 14, 10, 15, 6, 8, 0, 5, 9, 2,
	  6, 11, 13, 8, 1, 4, 10, 7, 9, 5, 0, 15, 14, 2, 3, 12 },
	{ 13, 2, 8, 4, 6, 15, 11, 1, 10, 9, 3, 14, 5, 0, 12, 7,
	  1, 15, 13, 8, 10, 3, 7, 4, 12, 5, 6, 11, 0, 14, 9, 2,
	  7, 11, 4, 1, 9, 12, 14, 2, 0, 6, 10, 13, 15, 3, 5, 8,
	  2, 1, 14, 7, 4, 10, 8, 13, 15, 12, 9, 0, 3, 5, 6, 11 },
};

/*
 * A key for each of 16 rounds. It has eight parts of 6 bits, each at the top of a byte;
 * those with even numbers are in one word, the others in another.
 */
struct schedule {
	uint32_t even[16], odd[16];
};

static uint32_t looked_up[8][64];	/* output of a box and the permutation after it */
static struct schedule of_bit[56];	/* schedule of a key with one of the effective bits set */

static uint64_t permute(uint64_t from, unsigned int bits, const unsigned char *table,
			unsigned int count)
{
	uint64_t to = 0;
	unsigned int i;

	for (i = 0; i < count; i++)
		to = to << 1 | (from >> (bits - table[i]) & 1);
	return to;
}

/* @half: half of the key, in 28 bits */
static uint64_t rotate_half(uint64_t half, unsigned int by)
{
	return (half << by | half >> (28 - by)) & 0xfffffff;
}

/* @chosen: the 56 bits that choice 1 leaves */
static void make_schedule(struct schedule *schedule, uint64_t chosen)
{
	uint64_t left = chosen >> 28, right = chosen & 0xfffffff, key;
	unsigned int round, by, part;

	for (round = 0; round < 16; round++) {
		by = round < 2 || round == 8 || round == 15 ? 1 : 2;
		left = rotate_half(left, by);
		right = rotate_half(right, by);
		key = permute(left << 28 | right, 56, choice_2, 48);
		schedule->even[round] = 0;
		schedule->odd[round] = 0;
		for (part = 0; part < 8; part += 2) {
			schedule->even[round] |= (key >> (42 - 6 * part) & 63) << (26 - 4 * part);
			schedule->odd[round] |= (key >> (36 - 6 * part) & 63) << (26 - 4 * part);
		}
	}
}

/* The outer two of 6 bits choose the row. Return: the box's output, in place. */
static uint64_t box_of(unsigned int box, unsigned int in)
{
	unsigned int row = (in >> 4 & 2) | (in & 1), column = in >> 1 & 15;

	return (uint64_t)boxes[box][16 * row + column] << (28 - 4 * box);
}

static void prepare(void)
{
	unsigned int box, in, bit;

	if (looked_up[0][0])
		return;
	for (box = 0; box < 8; box++)
		for (in = 0; in < 64; in++)
			looked_up[box][in] = permute(box_of(box, in), 32, permutation, 32);
	for (bit = 0; bit < 56; bit++)
		make_schedule(&of_bit[bit], 1ULL << bit);
}

static inline uint32_t round_of(uint32_t half, uint32_t even, uint32_t odd)
{
	even ^= rol(half, 31);
	odd ^= rol(half, 3);
	return looked_up[0][even >> 26] ^ looked_up[2][even >> 18 & 63] ^
	       looked_up[4][even >> 10 & 63] ^ looked_up[6][even >> 2 & 63] ^
	       looked_up[1][odd >> 26] ^ looked_up[3][odd >> 18 & 63] ^
	       looked_up[5][odd >> 10 & 63] ^ looked_up[7][odd >> 2 & 63];
}

static inline uint64_t rounds_of(const struct schedule *schedule, uint64_t block)
{
	uint32_t left = block >> 32, right = block;
	unsigned int round;

	for (round = 0; round < 16; round += 2) {
		left ^= round_of(right, schedule->even[round], schedule->odd[round]);
		right ^= round_of(left, schedule->even[round + 1], schedule->odd[round + 1]);
	}
	return (uint64_t)right << 32 | left;
}

uint64_t keys_des_encrypt(uint64_t key, uint64_t block)
{
	unsigned char final[64];
	struct schedule schedule;
	unsigned int i;

	prepare();
	for (i = 0; i < 64; i++)
		final[initial[i] - 1] = i + 1;
	make_schedule(&schedule, permute(key, 64, choice_1, 56));
	return permute(rounds_of(&schedule, permute(block, 64, initial, 64)), 64, final, 64);
}

uint64_t keys_des_key(uint64_t number)
{
	uint64_t chosen = number ^ number >> 1, key = 0;
	unsigned int i;

	for (i = 0; i < 56; i++)
		key |= (chosen >> (55 - i) & 1) << (64 - choice_1[i]);
	return key;
}

/*
 * Each key differs from the previous one by one bit, as in a Gray code, and so each
 * round's key differs by this bit's contribution. The first and the last
 * permutation are not repeated for each key.
 */
uint64_t keys_des(uint64_t count)
{
	uint64_t block = permute(KEYS_PLAIN, 64, initial, 64);
	uint64_t result = permute(wanted, 64, initial, 64), start, i;
	struct schedule schedule = { 0 };
	const struct schedule *change;
	unsigned int round;

	prepare();
	start = tsc_read_fenced();
	for (i = 1; i <= count; i++) {
		change = &of_bit[__builtin_ctzll(i) % 56];
		for (round = 0; round < 16; round++) {
			schedule.even[round] ^= change->even[round];
			schedule.odd[round] ^= change->odd[round];
		}
		if (rounds_of(&schedule, block) == result)
			found++;
	}
	return tsc_read_fenced() - start;
}
