/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What a plug-in of iproute2's tc uses of tc, of the C library and of rtnetlink.
 * No distribution has a package of iproute2's headers. All of this is the same
 * in 6.1 to 7.3; newer versions have added "const" only.
 */
#ifndef _APIC_TC_IPROUTE2_H
#define _APIC_TC_IPROUTE2_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* <stdio.h>, <string.h>: tc has them linked */
typedef struct _IO_FILE FILE;
extern FILE *stderr;
int fprintf(FILE *file, const char *format, ...) __attribute__((format(printf, 2, 3)));
int snprintf(char *text, size_t size, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
int strcmp(const char *a, const char *b);
int strcasecmp(const char *a, const char *b);
void *memcpy(void *to, const void *from, size_t size);
void *memset(void *at, int value, size_t size);

/* <linux/netlink.h>, <linux/rtnetlink.h> */
struct nlmsghdr {
	uint32_t nlmsg_len;
	uint16_t nlmsg_type;
	uint16_t nlmsg_flags;
	uint32_t nlmsg_seq;
	uint32_t nlmsg_pid;
};

struct rtattr {
	uint16_t rta_len;
	uint16_t rta_type;
};

#define NLA_F_NESTED	(1 << 15)
#define TCA_OPTIONS	2

static inline void *rta_data(struct rtattr *attr)
{
	return attr + 1;
}

static inline size_t rta_payload(const struct rtattr *attr)
{
	return attr->rta_len - sizeof(*attr);
}

/* tc/tc_util.h: what tc looks up as apic_qdisc_util */
struct qdisc_util {
	struct qdisc_util *next;
	const char *id;
	int (*parse_qopt)(const struct qdisc_util *qu, int argc, char **argv, struct nlmsghdr *n,
			  const char *dev);
	int (*print_qopt)(const struct qdisc_util *qu, FILE *f, struct rtattr *opt);
	int (*print_xstats)(const struct qdisc_util *qu, FILE *f, struct rtattr *xstats);
	int (*parse_copt)(const struct qdisc_util *qu, int argc, char **argv, struct nlmsghdr *n,
			  const char *dev);
	int (*print_copt)(const struct qdisc_util *qu, FILE *f, struct rtattr *opt);
	int (*has_block)(const struct qdisc_util *qu, struct rtattr *opt, bool *has);
};

/* include/libnetlink.h, include/utils.h */
int addattr_l(struct nlmsghdr *n, int room, int type, const void *data, int length);
struct rtattr *addattr_nest(struct nlmsghdr *n, int room, int type);
int addattr_nest_end(struct nlmsghdr *n, struct rtattr *nest);
int parse_rtattr_flags(struct rtattr *tb[], int max, struct rtattr *attr, int length,
		       unsigned short flags);
extern int show_details;

/* include/json_print.h, include/color.h: with -j these write JSON, otherwise by their formats */
enum output_type { PRINT_FP = 1, PRINT_JSON = 2, PRINT_ANY = 4 };
enum color_attr { COLOR_NONE = 6 };

bool is_json_context(void);
int print_color_string(enum output_type type, enum color_attr color, const char *key,
		       const char *format, const char *value);
int print_color_uint(enum output_type type, enum color_attr color, const char *key,
		     const char *format, unsigned int value);
int print_color_int(enum output_type type, enum color_attr color, const char *key,
		    const char *format, int value);
int print_color_u64(enum output_type type, enum color_attr color, const char *key,
		    const char *format, uint64_t value);
void open_json_array(enum output_type type, const char *key);
void close_json_array(enum output_type type, const char *key);

#endif /* _APIC_TC_IPROUTE2_H */
