/* SPDX-License-Identifier: GPL-2.0 */
/* The kernel's errors, for programs without libc: see <errno.h>. */
#ifndef ERRORS_H
#define ERRORS_H

#define EPERM		1
#define ENOENT		2
#define ESRCH		3
#define EINTR		4
#define E2BIG		7
#define EAGAIN		11
#define EFAULT		14
#define EBUSY		16
#define EINVAL		22
#define ENOTTY		25
#define ENOSPC		28
#define ETIME		62
#define ESTALE		116
#define ECANCELED	125

#endif /* ERRORS_H */
