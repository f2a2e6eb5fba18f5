/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the plugin uses of QEMU's interface for TCG plugins, version 1, which
 * distributions build into their emulators without packaging its header. QEMU
 * resolves these functions when it loads the plugin.
 *
 * Source: docs/devel/tcg-plugins.rst of QEMU 7.2.
 */
#ifndef REAM_QEMU_PLUGIN_H
#define REAM_QEMU_PLUGIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define QEMU_PLUGIN_VERSION 1
#define QEMU_PLUGIN_EXPORT __attribute__((visibility("default")))

typedef uint64_t qemu_plugin_id_t;
typedef uint32_t qemu_plugin_meminfo_t;

/* A block as it is translated, and an instruction of it; valid in that call only. */
struct qemu_plugin_tb;
struct qemu_plugin_insn;

/* How the emulator was built; only what precedes the first use of ours is declared. */
struct qemu_info {
	const char *target_name;
};

enum qemu_plugin_cb_flags {
	QEMU_PLUGIN_CB_NO_REGS,		/* the callback looks at no register */
	QEMU_PLUGIN_CB_R_REGS,
	QEMU_PLUGIN_CB_RW_REGS,
};

enum qemu_plugin_mem_rw {
	QEMU_PLUGIN_MEM_R = 1,
	QEMU_PLUGIN_MEM_W,
	QEMU_PLUGIN_MEM_RW,
};

typedef void (*qemu_plugin_vcpu_tb_trans_cb_t)(qemu_plugin_id_t id,
					       struct qemu_plugin_tb *tb);
typedef void (*qemu_plugin_vcpu_udata_cb_t)(unsigned int vcpu, void *context);
typedef void (*qemu_plugin_vcpu_mem_cb_t)(unsigned int vcpu,
					  qemu_plugin_meminfo_t info,
					  uint64_t address, void *context);

void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t id,
					   qemu_plugin_vcpu_tb_trans_cb_t callback);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *tb,
						 size_t index);
const void *qemu_plugin_insn_data(const struct qemu_plugin_insn *insn);
size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *insn);
uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *insn);

/* Before the instruction runs, every time. */
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *insn,
					    qemu_plugin_vcpu_udata_cb_t callback,
					    enum qemu_plugin_cb_flags flags,
					    void *context);
/* At every access of the instruction's to memory. */
void qemu_plugin_register_vcpu_mem_cb(struct qemu_plugin_insn *insn,
				      qemu_plugin_vcpu_mem_cb_t callback,
				      enum qemu_plugin_cb_flags flags,
				      enum qemu_plugin_mem_rw rw, void *context);
/* The logarithm of the access's bytes, to the base of 2. */
unsigned int qemu_plugin_mem_size_shift(qemu_plugin_meminfo_t info);
/* Of an access that reads and writes at once, too. */
bool qemu_plugin_mem_is_store(qemu_plugin_meminfo_t info);

#endif
