// SPDX-License-Identifier: GPL-2.0
/*
 * Operations across CPUs: arming, changing, and timers that travel.
 */
#include <linux/cpumask.h>
#include <linux/minmax.h>
#include <linux/slab.h>
#include <linux/smp.h>

#include "selftest.h"

static int next_cpu(int cpu)
{
	cpu = cpumask_next(cpu, cpu_online_mask);
	return cpu < nr_cpu_ids ? cpu : cpumask_first(cpu_online_mask);
}

/* Work for a CPU. */
struct remote {
	struct selftest *test;
	unsigned int us;
	u64 latest;
};

/* Add from this CPU to each other one in turn. */
static int add_to_each(void *data)
{
	struct remote *remote = data;
	struct selftest *test = remote->test;
	struct selftest_shot shot;
	int cpu;

	for_each_online_cpu(cpu) {
		selftest_shot_init(&shot, NULL);
		selftest_shot_due_us(&shot, remote->us);
		EXPECT_EQ(test, add_apic_timer_on(&shot.timer, cpu), 0);
		EXPECT_RUNS(test, &shot, 1);
		EXPECT_EQ(test, shot.cpu, cpu);
		remote->latest = max(remote->latest, shot.now - shot.due);
		EXPECT_EQ(test, del_apic_timer_sync(&shot.timer), 0);
	}
	return 0;
}

/* Both too near to notify the other CPU in time, and far enough. */
static void every_cpu_to_every_cpu(struct selftest *test)
{
	struct remote remote = { .test = test };
	int cpu;

	for_each_online_cpu(cpu)
		for (remote.us = 0; remote.us <= 1000; remote.us += 500)
			smp_call_on_cpu(cpu, add_to_each, &remote, false);
	selftest_note(test, "latest by %llu cycles\n", remote.latest);
}

static int add_here(void *data)
{
	struct remote *remote = data;
	struct selftest *test = remote->test;
	struct selftest_shot shot;

	selftest_shot_init(&shot, NULL);
	selftest_shot_due_us(&shot, 500);
	EXPECT_EQ(test, add_apic_timer(&shot.timer), 0);
	EXPECT_RUNS(test, &shot, 1);
	EXPECT_EQ(test, shot.cpu, smp_processor_id());

	/* An expired timer stays bound to its CPU. */
	shot.due = apic_timer_now() + apic_timer_us_to_tsc(500);
	EXPECT_EQ(test, mod_apic_timer(&shot.timer, shot.due), 0);
	EXPECT_RUNS(test, &shot, 2);
	EXPECT_EQ(test, shot.cpu, smp_processor_id());
	del_apic_timer_sync(&shot.timer);
	return 0;
}

static void add_on_this_cpu(struct selftest *test)
{
	struct remote remote = { .test = test };
	int cpu;

	for_each_online_cpu(cpu)
		smp_call_on_cpu(cpu, add_here, &remote, false);
}

/* Never passed to init_apic_timer(). */
static struct apic_timer_list static_timer;
static atomic_t armed, moved;

static void no_handler(unsigned long long now, unsigned long data)
{
}

static void make_static(void)
{
	static_timer = (struct apic_timer_list)APIC_TIMER_INITIALIZER(no_handler, 0);
}

static int use_first(void *data)
{
	struct selftest *test = data;

	make_static();
	EXPECT_EQ(test, del_apic_timer(&static_timer), -ENOENT);
	EXPECT_EQ(test, static_timer.cpu, smp_processor_id());
	make_static();
	static_timer.expires = apic_timer_now() + apic_timer_us_to_tsc(3600000000U);
	EXPECT_EQ(test, add_apic_timer(&static_timer), 0);
	EXPECT_EQ(test, static_timer.cpu, smp_processor_id());
	EXPECT_EQ(test, del_apic_timer_sync(&static_timer), 1);
	return 0;
}

/* Its lock is that of the CPU that used it first. */
static void a_static_timer_is_its_first_users(struct selftest *test)
{
	int cpu;

	for_each_online_cpu(cpu)
		smp_call_on_cpu(cpu, use_first, test, false);
}

static void use_at_once(void *unused)
{
	u64 expires = apic_timer_now() + apic_timer_us_to_tsc(3600000000U);

	switch (mod_apic_timer(&static_timer, expires)) {
	case 0:
		atomic_inc(&armed);
		break;
	case 1:
		atomic_inc(&moved);
		break;
	}
}

static void all_use_a_static_timer_at_once(struct selftest *test)
{
	unsigned int round, rounds = 200;

	atomic_set(&armed, 0);
	atomic_set(&moved, 0);
	for (round = 0; round < rounds; round++) {
		make_static();
		on_each_cpu(use_at_once, NULL, true);
		EXPECT_EQ(test, del_apic_timer_sync(&static_timer), 1);
	}
	EXPECT_EQ(test, atomic_read(&armed), rounds);
	EXPECT_EQ(test, atomic_read(&moved), rounds * (num_online_cpus() - 1));
}

/* Travel to the next CPU, @limit times in total. */
static void travel(struct selftest_shot *shot)
{
	if (atomic_read(&shot->runs) + 1 < shot->limit) {
		selftest_shot_due(shot, shot->now + (unsigned long)shot->context);
		shot->ret |= add_apic_timer_on(&shot->timer,
					       next_cpu(shot->cpu));
	}
}

static void ring(struct selftest *test)
{
	struct selftest_shot shots[4];
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(shots); i++) {
		selftest_shot_init(&shots[i], travel);
		shots[i].limit = 400;
		/* Some immediately: the next CPU may see it before this one ends. */
		shots[i].context =
			(void *)(unsigned long)apic_timer_us_to_tsc(i * 30);
		selftest_shot_due_us(&shots[i], 100);
		EXPECT_EQ(test, add_apic_timer(&shots[i].timer), 0);
	}
	for (i = 0; i < ARRAY_SIZE(shots); i++) {
		EXPECT_RUNS(test, &shots[i], 400);
		EXPECT_EQ(test, shots[i].ret, 0);
		del_apic_timer_sync(&shots[i].timer);
	}
}

/* It still runs long after it has armed itself on the next CPU, for now. */
static void travel_and_stay(struct selftest_shot *shot)
{
	travel(shot);
	selftest_spin_us(100);
}

static void never_two_at_a_time(struct selftest *test)
{
	struct selftest_shot shot;

	selftest_shot_init(&shot, travel_and_stay);
	shot.limit = 200;
	selftest_shot_due_us(&shot, 100);
	EXPECT_EQ(test, add_apic_timer(&shot.timer), 0);
	EXPECT_RUNS(test, &shot, 200);
	EXPECT_EQ(test, shot.ret, 0);
	del_apic_timer_sync(&shot.timer);
}

/* CPUs that the timer visits during its first run. */
struct about {
	struct selftest_shot shot;
	int cpus[3];
	u64 last;	/* armed for this moment on the third */
	bool went;
	bool go_on;
};

/* Whether its CPU has dequeued it: a run begins there. */
static bool taken(const struct apic_timer_list *timer)
{
	return selftest_spin_until(!apic_timer_pending(timer));
}

static int arm(struct apic_timer_list *timer, u64 expires, int cpu)
{
	timer->expires = expires;
	return add_apic_timer_on(timer, cpu);
}

/*
 * The first run makes a second one begin on another CPU, where it must wait, comes back, and
 * leaves for a third CPU.
 */
static void go_about(struct selftest_shot *shot)
{
	struct about *about = container_of(shot, struct about, shot);
	struct apic_timer_list *timer = &shot->timer;

	if (!atomic_read(&shot->runs)) {
		shot->ret |= arm(timer, 0, about->cpus[1]);
		shot->ret |= !taken(timer);
		shot->ret |= arm(timer, U64_MAX, about->cpus[0]);
		shot->ret |= del_apic_timer(timer) != 1;
		shot->ret |= arm(timer, about->last, about->cpus[2]);
		shot->ret |= !about->last && !taken(timer);
		WRITE_ONCE(about->went, true);
		shot->ret |= !selftest_spin_until(READ_ONCE(about->go_on));
	}
	/* Long enough to be seen. */
	selftest_spin_us(5000);
}

static void begin_about(struct selftest *test, struct about *about, u64 last)
{
	int cpu = next_cpu(smp_processor_id());
	unsigned int i;

	selftest_shot_init(&about->shot, go_about);
	about->last = last;
	about->went = false;
	about->go_on = false;
	for (i = 0; i < ARRAY_SIZE(about->cpus); i++) {
		about->cpus[i] = cpu;
		cpu = next_cpu(cpu);
	}
	EXPECT_EQ(test, arm(&about->shot.timer, 0, about->cpus[0]), 0);
	EXPECT(test, selftest_wait(READ_ONCE(about->went)));
	WRITE_ONCE(about->go_on, true);
}

/* The third run waits for the second, which waits for the first. */
static void runs_wait_in_a_row(struct selftest *test)
{
	struct about about;

	begin_about(test, &about, 0);
	EXPECT_RUNS(test, &about.shot, 3);
	EXPECT_EQ(test, about.shot.ret, 0);
	EXPECT_EQ(test, about.shot.cpu, about.cpus[2]);
	del_apic_timer_sync(&about.shot.timer);
}

/* A deletion before the third run waits too. */
static void delete_waits_for_two_runs(struct selftest *test)
{
	struct about about;

	begin_about(test, &about, U64_MAX);
	EXPECT_EQ(test, del_apic_timer_sync(&about.shot.timer), 1);
	EXPECT_EQ(test, atomic_read(&about.shot.runs), 2);
	EXPECT_EQ(test, about.shot.ret, 0);
	EXPECT_EQ(test, about.shot.cpu, about.cpus[1]);
	/* It would have run if the deletion had not waited. */
	EXPECT_RUNS(test, &about.shot, 2);
}

static void mod_on_another_cpu(struct selftest *test)
{
	int cpu = next_cpu(smp_processor_id());
	struct selftest_shot shot;
	u64 hour = apic_timer_us_to_tsc(3600000000U);

	selftest_shot_init(&shot, NULL);
	shot.timer.expires = apic_timer_now() + hour;
	EXPECT_EQ(test, add_apic_timer_on(&shot.timer, cpu), 0);

	/* Later, earlier, and to the past: it stays there. */
	shot.due = apic_timer_now() + 2 * hour;
	EXPECT_EQ(test, mod_apic_timer(&shot.timer, shot.due), 1);
	shot.due = apic_timer_now() + apic_timer_us_to_tsc(2000);
	EXPECT_EQ(test, mod_apic_timer(&shot.timer, shot.due), 1);
	EXPECT_RUNS(test, &shot, 1);
	EXPECT_EQ(test, shot.cpu, cpu);

	shot.due = 0;
	EXPECT_EQ(test, mod_apic_timer(&shot.timer, 0), 0);
	EXPECT_RUNS(test, &shot, 2);
	EXPECT_EQ(test, shot.cpu, cpu);

	shot.due = apic_timer_now() + 2 * hour;
	EXPECT_EQ(test, mod_apic_timer(&shot.timer, shot.due), 0);
	shot.due = 0;
	EXPECT_EQ(test, mod_apic_timer(&shot.timer, 0), 1);
	EXPECT_RUNS(test, &shot, 3);
	EXPECT_EQ(test, shot.cpu, cpu);

	/* And it is armed on this CPU when requested. */
	selftest_shot_due_us(&shot, 500);
	EXPECT_EQ(test, add_apic_timer(&shot.timer), 0);
	EXPECT_RUNS(test, &shot, 4);
	EXPECT_EQ(test, shot.cpu, smp_processor_id());
	del_apic_timer_sync(&shot.timer);
}

static void delete_on_another_cpu(struct selftest *test)
{
	int cpu = next_cpu(smp_processor_id());
	struct selftest_shot first, second;

	selftest_shot_init(&first, NULL);
	selftest_shot_init(&second, NULL);
	first.timer.expires = U64_MAX - 1;
	EXPECT_EQ(test, add_apic_timer_on(&first.timer, cpu), 0);
	selftest_shot_due_us(&second, 5000);
	EXPECT_EQ(test, add_apic_timer_on(&second.timer, cpu), 0);
	EXPECT_EQ(test, del_apic_timer(&first.timer), 1);
	EXPECT_RUNS(test, &second, 1);
	EXPECT_EQ(test, second.cpu, cpu);
	EXPECT_EQ(test, atomic_read(&first.runs), 0);
	del_apic_timer_sync(&second.timer);
}

/* A handler arms, changes and deletes timers on every CPU. */
struct reach {
	struct selftest_shot shots[8];
	int faults;
};

static void reach_out(struct selftest_shot *shot)
{
	struct reach *reach = shot->context;
	struct selftest_shot *other;
	int cpu = shot->cpu;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(reach->shots); i++) {
		other = &reach->shots[i];
		other->timer.expires = U64_MAX;
		cpu = next_cpu(cpu);
		other->limit = cpu;
		if (add_apic_timer_on(&other->timer, cpu))
			reach->faults++;
		if (i & 1 && mod_apic_timer(&other->timer, 0) != 1)
			reach->faults++;
		if (~i & 1 && del_apic_timer(&other->timer) != 1)
			reach->faults++;
	}
}

static void handler_reaches_every_cpu(struct selftest *test)
{
	struct reach *reach = kzalloc(sizeof(*reach), GFP_KERNEL);
	struct selftest_shot shot;
	unsigned int i;

	if (!EXPECT(test, reach))
		return;
	for (i = 0; i < ARRAY_SIZE(reach->shots); i++)
		selftest_shot_init(&reach->shots[i], NULL);
	selftest_shot_init(&shot, reach_out);
	shot.context = reach;
	selftest_shot_due_us(&shot, 500);
	EXPECT_EQ(test, add_apic_timer(&shot.timer), 0);
	EXPECT_RUNS(test, &shot, 1);
	EXPECT_EQ(test, reach->faults, 0);
	for (i = 0; i < ARRAY_SIZE(reach->shots); i++) {
		EXPECT_RUNS(test, &reach->shots[i], i & 1 ? 1 : 0);
		if (i & 1)
			EXPECT_EQ(test, reach->shots[i].cpu,
				  reach->shots[i].limit);
		del_apic_timer_sync(&reach->shots[i].timer);
	}
	del_apic_timer_sync(&shot.timer);
	kfree(reach);
}

const struct selftest_case selftest_cross_cases[] = {
	CASE_SMP(every_cpu_to_every_cpu),
	CASE_SMP(add_on_this_cpu),
	CASE_SMP(a_static_timer_is_its_first_users),
	CASE_SMP(all_use_a_static_timer_at_once),
	CASE_SMP(ring),
	CASE_SMP(never_two_at_a_time),
	CASE_CPUS(runs_wait_in_a_row, 3),
	CASE_CPUS(delete_waits_for_two_runs, 3),
	CASE_SMP(mod_on_another_cpu),
	CASE_SMP(delete_on_another_cpu),
	CASE_SMP(handler_reaches_every_cpu),
	{}
};
