// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Files by number, and their names as the process sees them; see file_name.bpf.h. */
#include "process/file_name.bpf.h"

#include "core/compat.bpf.h"
#include "process/mapper.bpf.h"

struct told_files_map {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, struct pk_file_key);
	__type(value, __u64);
};

struct told_files_map told_files SEC(".maps");

static __u64 last_file = PK_FILE_FIRST;

static long pk_take_name(__u32 i, struct pk_mapper **of)
{
	struct pk_mapper *m = *of;
	struct dentry *dentry = (void *)m->dentry;
	struct vfsmount *mnt = (void *)m->mnt;
	__u64 parent = (__u64)BPF_CORE_READ(dentry, d_parent);
	__u64 at = m->at;
	long length;

	if (m->dentry == m->file.root && m->mnt == m->file.root_mnt)
		return 1;
	if (m->dentry == (__u64)BPF_CORE_READ(mnt, mnt_root)) {
		struct mount *mount = (void *)(m->mnt - bpf_core_field_offset(struct mount, mnt));
		__u64 up = (__u64)BPF_CORE_READ(mount, mnt_parent);

		if (up && up != (__u64)mount) {
			m->dentry = (__u64)BPF_CORE_READ(mount, mnt_mountpoint);
			m->mnt = up + bpf_core_field_offset(struct mount, mnt);
			return 0;
		}
		if (i) /* that has no name; a file that is its own root has */
			return 1;
	}
	if (at > PK_PATH_LEN) {
		m->flags |= PK_PATH_CUT;
		return 1;
	}
	length = bpf_probe_read_kernel_str(m->name.names + at, PK_PATH_NAME,
					   BPF_CORE_READ(dentry, d_name.name));
	if (length <= 0)
		return 1;
	m->at = at + length;
	if (!parent || parent == m->dentry)
		return 1;
	m->dentry = parent;
	return 0;
}

/* Returns whether there was room. */
static __always_inline bool pk_tell_name(struct pk_mapper *m, __u64 number)
{
	struct dentry *dentry = (void *)m->file.dentry;
	__u64 length;

	m->dentry = m->file.dentry;
	m->mnt = m->file.mnt;
	m->at = 0;
	/* Not in its directory any more, or never in any. */
	m->flags = BPF_CORE_READ(dentry, d_hash.pprev) ? 0 : PK_PATH_DELETED;
	if (bpf_loop(PK_PATH_STEPS, pk_take_name, &m, 0) >= PK_PATH_STEPS)
		m->flags |= PK_PATH_CUT;
	length = m->at;
	forget_value(length);
	if (length > sizeof(m->name.names))
		length = sizeof(m->name.names);
	m->name.kind = PK_FILE_NAME;
	m->name.flags = m->flags;
	m->name.file = number;
	m->name.inode = m->file.inode;
	m->name.device = m->file.device;
	m->name.length = length;
	return !bpf_ringbuf_output(&mapped, &m->name,
				   __builtin_offsetof(struct pk_file_name, names) + length,
				   pk_ring_flags());
}

__u64 pk_file_number(__u32 level, __u64 filep)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct pk_mapper *m;
	struct dentry *dentry;
	struct inode *inode;
	__u64 *known, number;

	if (!config.mappings || !filep)
		return PK_FILE_NONE;
	m = pk_mapper_of(level);
	if (!m)
		return PK_FILE_NONE;
	dentry = pk_file_path(filep, &m->file.mnt);
	m->file.root = (__u64)BPF_CORE_READ(task, fs, root.dentry);
	m->file.root_mnt = (__u64)BPF_CORE_READ(task, fs, root.mnt);
	m->file.dentry = (__u64)dentry;
	inode = BPF_CORE_READ(dentry, d_inode);
	m->file.inode = BPF_CORE_READ(inode, i_ino);
	m->file.generation = BPF_CORE_READ(inode, i_generation);
	m->file.device = BPF_CORE_READ(inode, i_sb, s_dev);
	known = bpf_map_lookup_elem(&told_files, &m->file);
	if (likely(known))
		return *known;
	number = __sync_fetch_and_add(&last_file, 1);
	if (!pk_tell_name(m, number))
		return PK_FILE_NONE;
	m->name.file = number;
	bpf_map_update_elem(&told_files, &m->file, &m->name.file, BPF_ANY);
	return number;
}

__u64 pk_current_program(void)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct pk_cpu *c = this_cpu();
	struct pk_mapper *m;
	__u64 number;

	if (!config.mappings || task->flags & PF_KTHREAD)
		return PK_FILE_NONE;
	m = pk_take_mapper(c);
	if (!m) {
		c->stats.mappings_lost++;
		return PK_FILE_NONE;
	}
	number = pk_file_number(m->level, (__u64)BPF_CORE_READ(task, mm, exe_file));
	pk_give_back(m);
	return number;
}
