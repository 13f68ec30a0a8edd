/* SPDX-License-Identifier: GPL-2.0 */
/* Searches for a key: RC5-32/12/8, and DES. */
#ifndef KEYS_H
#define KEYS_H

#include <stdint.h>

/* Encrypt two words under a key of 8 or 16 bytes, 2 or 4 words. */
void keys_rc5_encrypt(const uint32_t *key, unsigned int words, uint32_t block[2]);
/* The first bit of a block, or key, is the highest one. */
uint64_t keys_des_encrypt(uint64_t key, uint64_t block);

/* Known plain text: "The unkn", its first letter in the lowest byte */
#define KEYS_PLAIN	UINT64_C(0x6e6b6e7520656854)

/* Set the block to which the right key encrypts it. For RC5, the first word is the lower half. */
void keys_want(uint64_t block);
/* Get the number of matching keys since then */
uint64_t keys_found(void);

/* Try the keys 0 to @count - 1 of RC5, 1 to @count of DES. Return: TSC cycles. */
uint64_t keys_rc5(uint64_t count);
uint64_t keys_des(uint64_t count);
/* Get the key of 64 bits, without parity, with this number */
uint64_t keys_des_key(uint64_t number);

#endif
