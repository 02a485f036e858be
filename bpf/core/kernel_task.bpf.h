/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Of the kernel's types: tasks, and what they have: memory, files, work that waits, time. */
#ifndef PKPROF_KERNEL_TASK_BPF_H
#define PKPROF_KERNEL_TASK_BPF_H

#include <linux/bpf.h>
#include <linux/types.h>

#include <stdbool.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>


#define TASK_DEAD 0x80 /* task_struct.__state */
#define PF_EXITING 0x00000004
#define PF_WQ_WORKER 0x00000020
#define PF_KTHREAD 0x00200000
#define CSD_FLAG_TYPE_MASK 0xf0 /* of a call between CPUs: what kind it is */
#define CSD_TYPE_TTWU 0x30
#define SOFTIRQ_OFFSET 0x100 /* in preempt_count: serving a softirq */
#define HARDIRQ_MASK 0x000f0000
#define NMI_MASK 0x00f00000
#define VM_EXEC 0x4
#define TS_COMPAT 2          /* thread_info.status: a 32-bit system call */
#define ORC_REG_SP 5

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct orc_entry {
	short sp_offset;
	unsigned int sp_reg : 4;
	unsigned int type : 3; /* 2 bits up to 6.3 */
};

struct task_struct;

struct super_block {
	__u32 s_dev;
};

struct inode {
	struct super_block *i_sb;
	unsigned long i_ino;
	__u32 i_generation;
	__u16 i_mode;
};

struct hlist_bl_node {
	struct hlist_bl_node **pprev;
};

struct qstr {
	const unsigned char *name;
};

struct dentry {
	struct hlist_bl_node d_hash;
	struct dentry *d_parent;
	struct qstr d_name;
	struct inode *d_inode;
};

struct vfsmount {
	struct dentry *mnt_root;
};

struct mount {
	struct mount *mnt_parent;
	struct dentry *mnt_mountpoint;
	struct vfsmount mnt;
};

struct path {
	struct vfsmount *mnt;
	struct dentry *dentry;
};

struct list_head {
	struct list_head *next;
};

struct timer_list {
	unsigned long expires;
	void *function;
};

struct hrtimer {
	__s64 _softexpires;
	unsigned char state;
	unsigned char is_soft;
};

struct __call_single_data {
	void *func;
};

struct irqaction {
	void *handler;
};

struct hrtimer_sleeper {
	struct hrtimer timer;
	struct task_struct *task;
};

struct rq {
	__u64 clock;
	__u64 nr_switches;
};

struct cfs_rq {
	struct rq *rq;
};

struct sched_entity {
	struct cfs_rq *cfs_rq;
};

struct sched_info {
	unsigned long long run_delay;
	unsigned long long last_arrival;
};

struct kernfs_node {
	__u64 id;
};

struct cgroup {
	struct kernfs_node *kn;
};

struct css_set {
	struct cgroup *dfl_cgrp;
};

struct thread_info {
	__u32 status;
};

typedef struct {
	unsigned int val;
} kuid_t;

struct cred {
	kuid_t uid;
};

struct file {
	unsigned int f_mode;
	struct path f_path;
	void *private_data;
	struct inode *f_inode;
};

/* The owner's task, with flags in the low bits. */
struct mutex {
	struct {
		long counter;
	} owner;
};

struct rw_semaphore {
	struct {
		long counter;
	} owner;
};

struct pipe_buffer {
	unsigned int offset;
	unsigned int len;
};

struct pipe_inode_info {
	unsigned int head; /* pages that were begun, and */
	unsigned int tail; /* read to their end */
	unsigned int ring_size;
	unsigned int writers; /* files that are open for it */
	struct pipe_buffer *bufs;
};

struct fdtable {
	unsigned int max_fds;
	struct file **fd;
};

struct files_struct {
	struct fdtable *fdt;
};

struct fs_struct {
	struct path root;
};

struct maple_tree {
	void *ma_root;
};

enum maple_type { maple_leaf_64 = 1, maple_range_64 = 2, maple_arange_64 = 3 };

struct maple_range_64 {
	unsigned long pivot[15];
	void *slot[16];
};

struct maple_arange_64 {
	unsigned long pivot[9];
	void *slot[10];
};

struct mm_struct;

struct vm_area_struct {
	unsigned long vm_start;
	unsigned long vm_end;
	struct mm_struct *vm_mm;
	unsigned long vm_flags;
	unsigned long vm_pgoff;
	struct file *vm_file;
};

typedef struct {
	__s64 counter;
} atomic64_t;

typedef struct {
	atomic64_t tlb_gen;
	void *vdso;
} mm_context_t;

struct mm_struct {
	struct maple_tree mm_mt;
	unsigned long exec_vm;
	struct rw_semaphore mmap_lock;
	struct file *exe_file;
	mm_context_t context;
	struct task_struct *owner;
};

struct llist_node {};

struct __call_single_node {
	struct llist_node llist;
	unsigned int u_flags;
};

struct ns_common {
	unsigned int inum;
};

struct pid_namespace {
	struct ns_common ns;
};

struct upid {
	int nr;
	struct pid_namespace *ns;
};

struct pid {
	unsigned int level;
	struct upid numbers[1];
};

struct task_struct {
	struct thread_info thread_info;
	struct __call_single_node wake_entry;
	unsigned int flags;
	struct sched_entity se;
	struct sched_info sched_info;
	int nr_cpus_allowed;
	int on_cpu;
	int exit_state; /* it has ended, if not 0 */
	int pid;
	int tgid;
	struct mm_struct *mm;
	struct fs_struct *fs;
	struct files_struct *files;
	struct task_struct *real_parent;
	struct task_struct *group_leader;
	struct pid *thread_pid;
	__u64 start_time;
	__u64 start_boottime;
	const struct cred *cred;
	struct css_set *cgroups;
	__u32 self_exec_id;
	void *worker_private; /* of a kernel thread: its struct kthread */
	void *stack;
	unsigned long min_flt;
	unsigned long maj_flt;
	unsigned in_iowait : 1;
	unsigned in_execve : 1;
	void *io_uring; /* NULL: the thread never had a ring */
	char comm[16];
};

/* As the kernel names the registers; <asm/ptrace.h> has user space's names. */
struct pt_regs___kernel {
	unsigned long bp, r10, r9, r8, ax, dx, si, di, orig_ax, ip, cs, sp;
};

enum cpu_usage_stat { CPUTIME_IDLE = 5, CPUTIME_IOWAIT = 6, CPUTIME_STEAL = 7 };

enum cpuhp_state { CPUHP_AP_PERF_ONLINE = 1 };

enum { KERNEL_CS = 0x10 }; /* arch/x86/include/asm/segment.h */

struct kernel_stat {
	unsigned long irqs_sum;
	unsigned int softirqs[10];
};

/* What the kernel measures of the idleness of each CPU, in ns. */
struct tick_sched {
	__s64 idle_entrytime; /* since when the CPU is idle, or up to when it was */
	__s64 idle_sleeptime;
	__s64 iowait_sleeptime;
};

struct kthread {
	int (*threadfn)(void *);
	void *data;
};

typedef void (*work_func_t)(void *);

struct work_struct {
	work_func_t func;
};

struct delayed_work {
	struct work_struct work;
	struct timer_list timer;
};

struct wq_barrier {
	struct work_struct work;
	struct task_struct *task;
};

struct worker {
	struct work_struct *current_work;
	work_func_t current_func;
};

struct kthread_work {
	void (*func)(void *);
};

struct kthread_worker {
	struct kthread_work *current_work;
};

struct process_timer {
	struct timer_list timer;
	struct task_struct *task;
};

struct folio;

struct pglist_data {
	int node_id;
};

struct rcu_data {
	int cpu;
};

#pragma clang attribute pop

#endif
