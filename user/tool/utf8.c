// SPDX-License-Identifier: GPL-2.0
#include <stdbool.h>
#include <string.h>

#include "utf8.h"

int utf8_read(const char *at, uint32_t *code)
{
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	const unsigned char *byte = (const unsigned char *)at;
	int i, length;

	*code = *byte;
	if (*byte < 0x80)
		return 1;
	length = *byte >> 5 == 6 ? 2 : *byte >> 4 == 14 ? 3 : *byte >> 3 == 30 ? 4 : 0;
	if (!length)
		return 0;
	*code &= 0x7f >> length;
	for (i = 1; i < length; i++) {
		if (byte[i] >> 6 != 2)
			return 0;
		*code = *code << 6 | (byte[i] & 0x3f);
	}
	if (*code < least[length] || *code > 0x10ffff || (*code >= 0xd800 && *code < 0xe000))
		return 0;
	return length;
}

/* Terminals also obey the control characters from U+0080 to U+009F. */
static bool obeyed(uint32_t code)
{
	return (code < ' ' && code != '\n') || (code >= 0x7f && code <= 0x9f);
}

void utf8_make_printable(char *text)
{
	uint32_t code;
	int length;

	for (; *text; text += length) {
		length = utf8_read(text, &code);
		if (length && !obeyed(code))
			continue;
		length = length ? length : 1;
		memset(text, '?', (size_t)length);
	}
}
