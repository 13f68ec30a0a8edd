// SPDX-License-Identifier: GPL-2.0
/*
 * apic_parport: a parallel port that records the TSC right before each write to its control
 * register, which has the strobe, as samples/pps_gen does for its own port.
 *
 *	/sys/kernel/debug/apic_parport	a line for each write: TSC, value
 */
#include <linux/debugfs.h>
#include <linux/fs.h>
#include <linux/io.h>
#include <linux/minmax.h>
#include <linux/module.h>
#include <linux/parport.h>
#include <linux/seq_file.h>
#include <asm/msr.h>

#define IO		0x378
#define CONTROL		(IO + 2)
#define WRITES		1024

static struct write {
	u64 tsc;
	unsigned char value;
} writes[WRITES];

static unsigned int count;
static struct parport *port;
static struct dentry *file;

static void write_control(struct parport *of, unsigned char value)
{
	u64 tsc = rdtsc_ordered();

	outb(value, CONTROL);
	if (count < WRITES)
		writes[count++] = (struct write) { .tsc = tsc, .value = value };
}

static void write_data(struct parport *of, unsigned char value)
{
}

static unsigned char read_nothing(struct parport *of)
{
	return 0;
}

static unsigned char frob_control(struct parport *of, unsigned char mask, unsigned char value)
{
	return 0;
}

static void no_irq(struct parport *of)
{
}

static void init_state(struct pardevice *device, struct parport_state *state)
{
}

static void keep_state(struct parport *of, struct parport_state *state)
{
}

static struct parport_operations operations = {
	.write_data = write_data,
	.read_data = read_nothing,
	.write_control = write_control,
	.read_control = read_nothing,
	.frob_control = frob_control,
	.read_status = read_nothing,
	.enable_irq = no_irq,
	.disable_irq = no_irq,
	.data_forward = no_irq,
	.data_reverse = no_irq,
	.init_state = init_state,
	.save_state = keep_state,
	.restore_state = keep_state,
	.owner = THIS_MODULE,
};

static int writes_show(struct seq_file *seq, void *unused)
{
	unsigned int i;

	for (i = 0; i < READ_ONCE(count); i++)
		seq_printf(seq, "%llu %u\n", writes[i].tsc, writes[i].value);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(writes);

static int __init probe_init(void)
{
	port = parport_register_port(IO, PARPORT_IRQ_NONE, PARPORT_DMA_NONE, &operations);
	if (!port)
		return -ENOMEM;
	parport_announce_port(port);
	file = debugfs_create_file("apic_parport", 0400, NULL, NULL, &writes_fops);
	return 0;
}

static void __exit probe_exit(void)
{
	debugfs_remove(file);
	parport_remove_port(port);
	parport_del_port(port);
}

module_init(probe_init);
module_exit(probe_exit);

MODULE_DESCRIPTION("A parallel port that notes when its strobe is written");
MODULE_AUTHOR("The apic-timer authors");
MODULE_LICENSE("GPL");
