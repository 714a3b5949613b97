// SPDX-License-Identifier: Apache-2.0
/*
 * qemu_plugin - the few functions of QEMU's TCG plugin interface (version 1) that the plugins
 * use.
 *
 * Debian ships no header for it. These are our own declarations of what the emulator exports
 * (`nm -D qemu-x86_64`), valid for QEMU 4.2 to 7.x.
 */
#ifndef MORPH_TESTS_QEMU_PLUGIN_H
#define MORPH_TESTS_QEMU_PLUGIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PLUGIN_EXPORT	   __attribute__((visibility("default")))
#define PLUGIN_API_VERSION 1

typedef uint64_t plugin_id; /* the emulator's id of this plugin */
struct qemu_plugin_tb;	    /* a translation block, valid during its translation */
struct qemu_plugin_insn;

struct plugin_info {
	const char *target_name;
	struct {
		int min, cur;
	} version;
	bool system_emulation;
};

enum plugin_cb_flags {
	PLUGIN_CB_NO_REGS
};

enum plugin_mem_rw {
	PLUGIN_MEM_R = 1,
	PLUGIN_MEM_W,
	PLUGIN_MEM_RW
};
typedef uint32_t plugin_mem_info;

typedef void (*plugin_udata_fn)(plugin_id id, void *udata);
typedef void (*plugin_vcpu_fn)(plugin_id id, unsigned int vcpu);
typedef void (*plugin_exec_fn)(unsigned int vcpu, void *udata);
typedef void (*plugin_mem_fn)(unsigned int vcpu, plugin_mem_info info, uint64_t vaddr, void *udata);
typedef void (*plugin_simple_fn)(plugin_id id);
typedef void (*plugin_trans_fn)(plugin_id id, struct qemu_plugin_tb *tb);
typedef void (*plugin_syscall_fn)(plugin_id id, unsigned int vcpu, int64_t nr, uint64_t a1,
				  uint64_t a2, uint64_t a3, uint64_t a4, uint64_t a5, uint64_t a6,
				  uint64_t a7, uint64_t a8);
typedef void (*plugin_syscall_ret_fn)(plugin_id id, unsigned int vcpu, int64_t nr, int64_t ret);

/* Symbols that the emulator looks for in the shared object. */
PLUGIN_EXPORT extern int qemu_plugin_version;
PLUGIN_EXPORT int qemu_plugin_install(plugin_id id, const struct plugin_info *info, int argc,
				      char **argv);

void qemu_plugin_register_vcpu_tb_trans_cb(plugin_id id, plugin_trans_fn fn);
void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *tb, plugin_exec_fn fn,
					  enum plugin_cb_flags flags, void *udata);
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *insn, plugin_exec_fn fn,
					    enum plugin_cb_flags flags, void *udata);
void qemu_plugin_register_vcpu_mem_cb(struct qemu_plugin_insn *insn, plugin_mem_fn fn,
				      enum plugin_cb_flags flags, enum plugin_mem_rw rw,
				      void *udata);
void qemu_plugin_register_vcpu_exit_cb(plugin_id id, plugin_vcpu_fn fn);
void qemu_plugin_register_vcpu_syscall_cb(plugin_id id, plugin_syscall_fn fn);
void qemu_plugin_register_vcpu_syscall_ret_cb(plugin_id id, plugin_syscall_ret_fn fn);
void qemu_plugin_register_atexit_cb(plugin_id id, plugin_udata_fn fn, void *udata);
void qemu_plugin_reset(plugin_id id, plugin_simple_fn fn);

size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb);
uint64_t qemu_plugin_tb_vaddr(const struct qemu_plugin_tb *tb);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *tb, size_t i);
const void *qemu_plugin_insn_data(const struct qemu_plugin_insn *insn);
size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *insn);
uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *insn);
void *qemu_plugin_insn_haddr(const struct qemu_plugin_insn *insn);
unsigned int qemu_plugin_mem_size_shift(plugin_mem_info info);
const char *qemu_plugin_path_to_binary(void);

#endif
