// SPDX-License-Identifier: GPL-2.0-only
/*
 * Run an untrusted program with only the rights that it needs:
 * confine [--read PATH]... [--write PATH]... [--make PATH]...
 * [--memory BYTES] [--seconds S] [--builds yes] -- PROGRAM [ARGUMENT]...
 *
 * The program has no privileges except to count events, no network, and no
 * processes besides its own threads. It cannot signal, trace or mount. Landlock
 * limits file access to the named paths. A forbidden system call raises SIGSYS,
 * which the runner reports with the calling function. A program that builds may
 * have processes, and may make and remove files below the paths of --make. Its
 * forbidden system calls fail with EPERM. confine --probe exits with 0 if this
 * kernel can confine files, and with CANNOT_CONFINE otherwise.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define CANNOT_CONFINE 3
#define X32_BIT 0x40000000
#define MOST_CAPABILITIES 63
#define MOST_PATHS 64
#define MOST_CALLS 128

#define READ_FILES (LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE)
#define READ (READ_FILES | LANDLOCK_ACCESS_FS_READ_DIR)
/* All access rights of the first Landlock ABI. Those of later ABIs are below. */
#define EVERYTHING ((LANDLOCK_ACCESS_FS_MAKE_SYM << 1) - 1)
#define WRITE (READ | LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_MAKE_REG)

#ifdef LANDLOCK_ACCESS_FS_TRUNCATE
#define FILE_ALONE (READ_FILES | LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_TRUNCATE)
#else
#define FILE_ALONE (READ_FILES | LANDLOCK_ACCESS_FS_WRITE_FILE)
#endif

struct rule {
	const char *path;
	uint64_t access;
};

/* System calls that neither hosted kernel code nor a build needs. */
static const int never[] = {
	/* the network and local sockets */
	SYS_socket, SYS_socketpair, SYS_connect, SYS_bind, SYS_listen, SYS_accept, SYS_accept4,
	SYS_sendto, SYS_sendmsg, SYS_sendmmsg, SYS_recvfrom, SYS_recvmsg, SYS_recvmmsg,
	SYS_shmget, SYS_shmat, SYS_shmctl, SYS_semget, SYS_semop, SYS_semctl, SYS_semtimedop,
	SYS_msgget, SYS_msgsnd, SYS_msgrcv, SYS_msgctl, SYS_mq_open, SYS_mq_unlink,
	/* other processes */
	SYS_ptrace, SYS_process_vm_writev, SYS_pidfd_getfd, SYS_kcmp, SYS_process_madvise,
	/* the machine */
	SYS_mount, SYS_umount2, SYS_pivot_root, SYS_chroot, SYS_unshare, SYS_setns,
	SYS_open_tree, SYS_move_mount, SYS_fsopen, SYS_fsmount, SYS_fspick, SYS_fsconfig,
	SYS_swapon, SYS_swapoff, SYS_reboot, SYS_kexec_load, SYS_kexec_file_load,
	SYS_init_module, SYS_finit_module, SYS_delete_module, SYS_iopl, SYS_ioperm,
	SYS_sethostname, SYS_setdomainname, SYS_settimeofday, SYS_clock_settime,
	SYS_adjtimex, SYS_clock_adjtime, SYS_acct, SYS_quotactl, SYS_syslog, SYS_vhangup,
	SYS_bpf, SYS_add_key, SYS_request_key, SYS_keyctl, SYS_fanotify_init,
	SYS_open_by_handle_at, SYS_name_to_handle_at, SYS_io_uring_setup,
};

/*
 * Hosted code must not reach other processes. One that a build leaves behind is in the group
 * that is killed with it. A signal could go to any process of the user, so none may be sent.
 */
static const int to_others[] = {
	SYS_kill, SYS_tkill, SYS_pidfd_open, SYS_pidfd_send_signal, SYS_rt_sigqueueinfo,
	SYS_rt_tgsigqueueinfo, SYS_setsid, SYS_setpgid,
	SYS_setpriority, SYS_ioprio_set,
	SYS_sched_setscheduler, SYS_sched_setattr, SYS_sched_setparam,
};

/* System calls that a build needs, but hosted code does not. */
static const int builds_alone[] = {
	SYS_fork, SYS_vfork,
	/* privileges, and ownership of files */
	SYS_setuid, SYS_setgid, SYS_setreuid, SYS_setregid, SYS_setresuid, SYS_setresgid,
	SYS_setgroups, SYS_setfsuid, SYS_setfsgid, SYS_capset, SYS_chmod, SYS_fchmod,
	SYS_fchmodat, SYS_chown, SYS_fchown, SYS_lchown, SYS_fchownat, SYS_setxattr,
	SYS_lsetxattr, SYS_fsetxattr, SYS_utimensat, SYS_utime, SYS_utimes, SYS_futimesat,
};

/* The first argument of these calls is a process, which must be the program itself. */
static const int to_itself[] = { SYS_tgkill, SYS_process_vm_readv };

/* In these calls it must be 0, which means the caller. */
static const int to_caller[] = { SYS_move_pages, SYS_migrate_pages };

#define LENGTH(array) (sizeof(array) / sizeof(*(array)))
_Static_assert(LENGTH(never) + LENGTH(to_others) + LENGTH(builds_alone) <= MOST_CALLS,
	       "more than the filter holds");

_Noreturn __attribute__((format(printf, 1, 2)))
static void fail(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	fprintf(stderr, ": %s\n", strerror(errno));
	exit(CANNOT_CONFINE);
}

static int landlock_version(void)
{
	return (int)syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
}

static uint64_t handled(int version)
{
	uint64_t access = EVERYTHING;

#ifdef LANDLOCK_ACCESS_FS_REFER
	access |= version >= 2 ? LANDLOCK_ACCESS_FS_REFER : 0;
#endif
#ifdef LANDLOCK_ACCESS_FS_TRUNCATE
	access |= version >= 3 ? LANDLOCK_ACCESS_FS_TRUNCATE : 0;
#endif
	return access;
}

/* Paths that do not exist on this machine need no rule. */
static void allow(int ruleset, const struct rule *rule, uint64_t known)
{
	struct landlock_path_beneath_attr attr = { .allowed_access = rule->access & known };
	struct stat status;

	attr.parent_fd = open(rule->path, O_PATH | O_CLOEXEC);
	if (attr.parent_fd < 0)
		return;
	if (fstat(attr.parent_fd, &status))
		fail("%s", rule->path);
	if (!S_ISDIR(status.st_mode))
		attr.allowed_access &= FILE_ALONE;
	if (syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &attr, 0))
		fail("%s: cannot be allowed", rule->path);
	close(attr.parent_fd);
}

static void confine_files(const struct rule *rules, size_t nr_rules)
{
	int version = landlock_version();
	struct landlock_ruleset_attr attr = { .handled_access_fs = handled(version) };
	int ruleset;

	if (version < 1)	/* the caller of this program has reported that */
		return;
	ruleset = (int)syscall(SYS_landlock_create_ruleset, &attr, sizeof(attr), 0);
	if (ruleset < 0)
		fail("Landlock");
	for (size_t i = 0; i < nr_rules; i++)
		allow(ruleset, &rules[i], attr.handled_access_fs);
	if (syscall(SYS_landlock_restrict_self, ruleset, 0))
		fail("Landlock");
	close(ruleset);
}

static void limit(int resource, rlim_t most)
{
	struct rlimit now;

	if (getrlimit(resource, &now))
		fail("rlimit %d", resource);
	now.rlim_max = now.rlim_max < most ? now.rlim_max : most;
	now.rlim_cur = now.rlim_max;
	if (setrlimit(resource, &now))
		fail("rlimit %d", resource);
}

/* Drop all capabilities but CAP_PERFMON from the bounding set. execve() then applies it. */
static void drop_capabilities(void)
{
	for (int one = 0; one <= MOST_CAPABILITIES; one++)
		if (one != CAP_PERFMON)
			prctl(PR_CAPBSET_DROP, one, 0, 0, 0);	/* fails if we have none to drop */
}

#define LOAD(member) \
	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, member))
#define IF_EQUAL(value, then) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, then)
#define END(how) BPF_STMT(BPF_RET | BPF_K, how)

static size_t begin_filter(struct sock_filter *filter)
{
	const struct sock_filter begin[] = {
		LOAD(arch),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 1, 0),
		END(SECCOMP_RET_KILL_PROCESS),
		LOAD(nr),
		BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, X32_BIT, 0, 1),
		END(SECCOMP_RET_KILL_PROCESS),
	};

	memcpy(filter, begin, sizeof(begin));
	return LENGTH(begin);
}

static size_t add_threads_alone(struct sock_filter *filter)
{
	const struct sock_filter its[] = {
		/* glibc then makes threads by clone(), whose flags can be read */
		IF_EQUAL(SYS_clone3, 1),
		END(SECCOMP_RET_ERRNO | ENOSYS),
		IF_EQUAL(SYS_clone, 4),
		LOAD(args[0]),
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, CLONE_THREAD, 0, 1),
		END(SECCOMP_RET_ALLOW),
		END(SECCOMP_RET_TRAP),
	};

	memcpy(filter, its, sizeof(its));
	return LENGTH(its);
}

/* Allow a system call only if its first argument names one process. */
static size_t add_for(struct sock_filter *filter, int call, pid_t process, uint32_t how)
{
	const struct sock_filter its[] = {
		IF_EQUAL((uint32_t)call, 4),
		LOAD(args[0]),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)process, 0, 1),
		END(SECCOMP_RET_ALLOW),
		END(how),
	};

	memcpy(filter, its, sizeof(its));
	return LENGTH(its);
}

static size_t add_refused(struct sock_filter *filter, const int *calls, size_t nr_calls,
			  uint32_t how)
{
	size_t nr = 0;

	for (size_t i = 0; i < nr_calls; i++) {
		filter[nr++] = (struct sock_filter)IF_EQUAL((uint32_t)calls[i], 1);
		filter[nr++] = (struct sock_filter)END(how);
	}
	return nr;
}

static void confine_calls(bool builds)
{
	struct sock_filter filter[2 * MOST_CALLS + 64];
	size_t nr = begin_filter(filter);
	struct sock_fprog program = { .filter = filter };

	for (size_t i = 0; i < LENGTH(to_caller); i++)
		nr += add_for(filter + nr, to_caller[i], 0,
			      builds ? SECCOMP_RET_ERRNO | EPERM : SECCOMP_RET_TRAP);
	if (builds) {
		nr += add_refused(filter + nr, never, LENGTH(never), SECCOMP_RET_ERRNO | EPERM);
		nr += add_refused(filter + nr, to_others, LENGTH(to_others),
				  SECCOMP_RET_ERRNO | EPERM);
		/* Not even to itself. abort() still ends the program, in another way. */
		nr += add_refused(filter + nr, to_itself, LENGTH(to_itself),
				  SECCOMP_RET_ERRNO | EPERM);
	} else {
		nr += add_threads_alone(filter + nr);
		for (size_t i = 0; i < LENGTH(to_itself); i++)
			nr += add_for(filter + nr, to_itself[i], getpid(), SECCOMP_RET_TRAP);
		nr += add_refused(filter + nr, never, LENGTH(never), SECCOMP_RET_TRAP);
		nr += add_refused(filter + nr, to_others, LENGTH(to_others), SECCOMP_RET_TRAP);
		nr += add_refused(filter + nr, builds_alone, LENGTH(builds_alone),
				  SECCOMP_RET_TRAP);
	}
	filter[nr++] = (struct sock_filter)END(SECCOMP_RET_ALLOW);
	program.len = (unsigned short)nr;
	/* Without the flag, kernels before 5.16 enable SSBD for seccomp tasks, which is slow. */
	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_SPEC_ALLOW,
		    &program))
		fail("seccomp");
}

static rlim_t number(const char *text)
{
	char *end;
	rlim_t value = strtoull(text, &end, 10);

	if (*end || end == text) {
		errno = EINVAL;
		fail("%s", text);
	}
	return value;
}

static uint64_t access_of(const char *word)
{
	if (!strcmp(word, "--make"))
		return ~0ULL;
	return strcmp(word, "--write") ? READ : WRITE;
}

int main(int argc, char **argv)
{
	struct rule rules[MOST_PATHS];
	size_t nr_rules = 0;
	bool builds = false;
	int at = 1;

	if (argc == 2 && !strcmp(argv[1], "--probe"))
		return landlock_version() < 1 ? CANNOT_CONFINE : EXIT_SUCCESS;
	for (; at + 1 < argc && strcmp(argv[at], "--"); at += 2) {
		if (!strcmp(argv[at], "--memory"))
			limit(RLIMIT_DATA, number(argv[at + 1]));
		else if (!strcmp(argv[at], "--seconds"))
			limit(RLIMIT_CPU, number(argv[at + 1]));
		else if (!strcmp(argv[at], "--builds"))
			builds = true;
		else if (nr_rules < MOST_PATHS)
			rules[nr_rules++] = (struct rule) {
				argv[at + 1], access_of(argv[at]),
			};
	}
	if (at + 1 >= argc) {
		errno = EINVAL;
		fail("no program");
	}
	limit(RLIMIT_CORE, 0);
	drop_capabilities();
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		fail("no new privileges");
	confine_files(rules, nr_rules);
	confine_calls(builds);
	execvp(argv[at + 1], argv + at + 1);
	fail("%s", argv[at + 1]);
}
