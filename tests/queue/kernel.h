/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The parts of the kernel that module/core/lib/queue.c needs, for a process.
 */
#ifndef _APIC_TIMER_QUEUE_KERNEL_H
#define _APIC_TIMER_QUEUE_KERNEL_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

typedef uint32_t u32;
typedef uint64_t u64;
typedef int64_t s64;
typedef s64 ktime_t;

#define likely(x)		__builtin_expect(!!(x), 1)
#define unlikely(x)		__builtin_expect(!!(x), 0)
#define noinline		__attribute__((noinline))
#define READ_ONCE(x)		(*(const volatile __typeof__(x) *)&(x))
#define __aligned(n)		__attribute__((aligned(n)))
#ifndef __always_inline
#define __always_inline		inline __attribute__((always_inline))
#endif

#define APIC_TIMER_DECLARATIONS_ONLY
#define ___PASTE(a, b)		a##b
#define __PASTE(a, b)		___PASTE(a, b)
#define static_assert(e)	_Static_assert(e, #e)

#define U64_MAX			UINT64_MAX
#define BIT(n)			(1UL << (n))
#define __ffs(x)		((unsigned int)__builtin_ctzl(x))

static inline u32 ror32(u32 word, unsigned int shift)
{
	return (word >> (shift & 31)) | (word << (-shift & 31));
}

#define for_each_set_bit(bit, word, size)				\
	for ((bit) = 0; (bit) < (size); (bit)++)			\
		if (*(word) & BIT(bit))

struct notifier_block;

u64 apic_timer_tsc_shift(u64 tsc, s64 shift);

struct rb_node {
	struct rb_node *parent, *rb_right, *rb_left;
};

/* As in the kernel, the colour is the lowest bit of the parent's address. */
struct rb_root {
	struct rb_node *rb_node;
};

struct rb_root_cached {
	struct rb_root rb_root;
	struct rb_node *rb_leftmost;
};

#define RB_ROOT_CACHED		((struct rb_root_cached) { })
#define rb_parent(node)							\
	((struct rb_node *)((uintptr_t)(node)->parent & ~1UL))
#define rb_first_cached(root)	((root)->rb_leftmost)
#define rb_entry(ptr, type, member)					\
	((type *)((char *)(ptr) - offsetof(type, member)))

static inline void rb_link_node(struct rb_node *node, struct rb_node *parent,
				struct rb_node **link)
{
	*node = (struct rb_node) { .parent = parent };
	*link = node;
}

void rb_insert_color(struct rb_node *node, struct rb_root *root);
void rb_erase(struct rb_node *node, struct rb_root *root);
struct rb_node *rb_prev(const struct rb_node *node);
struct rb_node *rb_next(const struct rb_node *node);
void rb_replace_node(struct rb_node *old, struct rb_node *new,
		     struct rb_root *root);

static inline void rb_insert_color_cached(struct rb_node *node,
					  struct rb_root_cached *root,
					  bool leftmost)
{
	if (leftmost)
		root->rb_leftmost = node;
	rb_insert_color(node, &root->rb_root);
}

static inline void rb_erase_cached(struct rb_node *node,
				   struct rb_root_cached *root)
{
	if (root->rb_leftmost == node)
		root->rb_leftmost = rb_next(node);
	rb_erase(node, &root->rb_root);
}

static inline void rb_replace_node_cached(struct rb_node *old,
					  struct rb_node *new,
					  struct rb_root_cached *root)
{
	if (root->rb_leftmost == old)
		root->rb_leftmost = new;
	rb_replace_node(old, new, &root->rb_root);
}

#endif /* _APIC_TIMER_QUEUE_KERNEL_H */
