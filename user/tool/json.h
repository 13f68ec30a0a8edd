/* SPDX-License-Identifier: GPL-2.0 */
/* JSON on standard output, one value per line. A key is NULL within an array. */
#ifndef JSON_H
#define JSON_H

#include <stdbool.h>
#include <stdint.h>

void json_object(const char *key);
void json_array(const char *key);
void json_end(void);
void json_text(const char *key, const char *text);
void json_number(const char *key, int64_t number);
void json_real(const char *key, double number, int digits);
void json_bool(const char *key, bool value);
void json_null(const char *key);

#endif
