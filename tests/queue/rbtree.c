// SPDX-License-Identifier: GPL-2.0
/*
 * A red-black tree with the kernel's interface. The lowest bit of a parent's
 * address is set in a black node.
 */
#include "kernel.h"

#define BLACK	1UL

static struct rb_node *parent(const struct rb_node *node)
{
	return (struct rb_node *)((uintptr_t)node->parent & ~BLACK);
}

static bool black(const struct rb_node *node)
{
	return !node || (uintptr_t)node->parent & BLACK;
}

static void set_parent(struct rb_node *node, struct rb_node *to)
{
	node->parent = (struct rb_node *)
		((uintptr_t)to | ((uintptr_t)node->parent & BLACK));
}

static void set_black(struct rb_node *node, bool is)
{
	node->parent = (struct rb_node *)((uintptr_t)parent(node) | is);
}

/* Put @new in @old's place below its parent. */
static void change_child(struct rb_root *root, struct rb_node *old,
			 struct rb_node *new)
{
	struct rb_node *up = parent(old);

	if (!up)
		root->rb_node = new;
	else if (up->rb_left == old)
		up->rb_left = new;
	else
		up->rb_right = new;
	if (new)
		set_parent(new, up);
}

static void rotate(struct rb_root *root, struct rb_node *node, bool left)
{
	struct rb_node *up = left ? node->rb_right : node->rb_left;
	struct rb_node *inner = left ? up->rb_left : up->rb_right;

	change_child(root, node, up);
	if (left) {
		node->rb_right = inner;
		up->rb_left = node;
	} else {
		node->rb_left = inner;
		up->rb_right = node;
	}
	if (inner)
		set_parent(inner, node);
	set_parent(node, up);
}

void rb_insert_color(struct rb_node *node, struct rb_root *root)
{
	struct rb_node *up, *grand, *uncle;
	bool left;

	set_black(node, false);
	while ((up = parent(node)) && !black(up)) {
		grand = parent(up);
		left = up == grand->rb_left;
		uncle = left ? grand->rb_right : grand->rb_left;
		if (!black(uncle)) {
			set_black(up, true);
			set_black(uncle, true);
			set_black(grand, false);
			node = grand;
			continue;
		}
		if (node == (left ? up->rb_right : up->rb_left)) {
			rotate(root, up, left);
			up = node;
		}
		set_black(up, true);
		set_black(grand, false);
		rotate(root, grand, !left);
		return;
	}
	if (!up)
		set_black(node, true);
}

/* Repair the tree where a black node is missing on one side below @up. */
static void erase_color(struct rb_root *root, struct rb_node *node,
			struct rb_node *up)
{
	struct rb_node *sibling, *near, *far;
	bool left;

	while (up && black(node)) {
		left = node == up->rb_left;
		sibling = left ? up->rb_right : up->rb_left;
		if (!black(sibling)) {
			set_black(sibling, true);
			set_black(up, false);
			rotate(root, up, left);
			sibling = left ? up->rb_right : up->rb_left;
		}
		near = left ? sibling->rb_left : sibling->rb_right;
		far = left ? sibling->rb_right : sibling->rb_left;
		if (black(near) && black(far)) {
			set_black(sibling, false);
			node = up;
			up = parent(node);
			continue;
		}
		if (black(far)) {
			set_black(near, true);
			set_black(sibling, false);
			rotate(root, sibling, !left);
			far = sibling;
			sibling = near;
		}
		set_black(sibling, black(up));
		set_black(up, true);
		set_black(far, true);
		rotate(root, up, left);
		return;
	}
	if (node)
		set_black(node, true);
}

void rb_replace_node(struct rb_node *old, struct rb_node *new,
		     struct rb_root *root)
{
	*new = *old;
	change_child(root, old, new);
	if (new->rb_left)
		set_parent(new->rb_left, new);
	if (new->rb_right)
		set_parent(new->rb_right, new);
}

void rb_erase(struct rb_node *node, struct rb_root *root)
{
	struct rb_node *child, *up, *next;
	bool was_black;

	if (node->rb_left && node->rb_right) {
		for (next = node->rb_right; next->rb_left;)
			next = next->rb_left;
		child = next->rb_right;
		up = parent(next);
		was_black = black(next);
		change_child(root, next, child);
		if (up == node)
			up = next;
		rb_replace_node(node, next, root);
	} else {
		child = node->rb_left ?: node->rb_right;
		up = parent(node);
		was_black = black(node);
		change_child(root, node, child);
	}
	if (was_black)
		erase_color(root, child, up);
}

struct rb_node *rb_prev(const struct rb_node *node)
{
	struct rb_node *prev = node->rb_left;

	if (prev) {
		while (prev->rb_right)
			prev = prev->rb_right;
		return prev;
	}
	while ((prev = parent(node)) && node == prev->rb_left)
		node = prev;
	return prev;
}

struct rb_node *rb_next(const struct rb_node *node)
{
	struct rb_node *next = node->rb_right;

	if (next) {
		while (next->rb_left)
			next = next->rb_left;
		return next;
	}
	while ((next = parent(node)) && node == next->rb_right)
		node = next;
	return next;
}
