/* SPDX-License-Identifier: GPL-2.0-only */
/* The program's own part: which step is whose, and what it does. */
static const struct step steps[] = {
/* TABLE */
};

static long run(void)
{
	long returned = 0;

	switch (line) {
/* CASES */
	}
	return returned;
}

#define NR_STEPS ((int)(sizeof(steps) / sizeof(*steps)))

static void perform(int step)
{
	line = steps[step].line;
	shared->returned = run();
}

/* A process performs the steps whose numbers it reads. */
static void serve(int me)
{
	struct sigaction action = { .sa_handler = on_fault };
	int step;

	/* The pipes end when the process that commands does. */
	for (int i = 0; i < NR_PROCESSES && commands[i][1] >= 0; i++) {
		close(commands[i][1]);
		commands[i][1] = -1;
	}
	sigaction(SIGSEGV, &action, NULL);
	sigaction(SIGBUS, &action, NULL);
	while (read(commands[me][0], &step, sizeof(step)) == sizeof(step)) {
		int is_last;

		perform(step);
		is_last = shared->is_over;	/* read before others go on */
		if (write(replies[1], &step, sizeof(step)) != sizeof(step))
			break;
		if (is_last)
			break;
	}
	_exit(0);
}

static void stop(const struct step *step, const char *what)
{
	printf("{\"line\": %d, \"%s\": %d}\n", step->line, what, step->process);
	exit(1);
}

static void perform_elsewhere(int number)
{
	const struct step *step = &steps[number];
	struct pollfd reply = { .fd = replies[0], .events = POLLIN };
	int done = 0;

	if (write(commands[step->process][1], &number, sizeof(number)) < 0)
		stop(step, "died");
	for (int waited = 0; !poll(&reply, 1, 1000); waited++) {
		if (!is_there(step->process))
			stop(step, "died");
		if (waited == HANGS_AFTER_S)
			stop(step, "hangs");
	}
	if (read(replies[0], &done, sizeof(done)) < 0 || done != number)
		stop(step, "died");
	if (!shared->is_over)
		return;
	for (int waited = 0; is_there(step->process); waited++) {
		if (waited == HANGS_AFTER_S * 1000)
			stop(step, "hangs");
		usleep(1000);
	}
	shared->is_over = 0;
}

static int report(const struct step *step)
{
	static int was_sure = 1;

	if (was_sure && !shared->is_sure)
		fprintf(stderr, "line %d: not as predicted; contents are not checked any more\n",
			step->line);
	was_sure = shared->is_sure;
	printf("{\"line\": %d, \"returned\": %ld", step->line,
	       shared->returned);
	if (shared->timed_ns)
		printf(", \"timed_ns\": %llu",
		       (unsigned long long)shared->timed_ns);
	shared->timed_ns = 0;
	if (shared->wrong_page < 0)
		return !printf("}\n");
	printf(", \"wrong_page\": %ld, \"found\": %llu, \"expected\": %llu}\n",
	       shared->wrong_page, (unsigned long long)shared->found,
	       (unsigned long long)shared->expected);
	shared->wrong_page = -1;
	return 1;
}

static void prepare(void)
{
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED || pipe(replies))
		exit(3);
	for (int i = 0; i < NR_PROCESSES; i++)
		if (pipe(commands[i]))
			exit(3);
	shared->is_sure = 1;
	shared->wrong_page = -1;
	setvbuf(stdout, NULL, _IOLBF, 0);
	signal(SIGCHLD, SIG_IGN);	/* none of them stays as a zombie */
	signal(SIGPIPE, SIG_IGN);
	prctl(PR_SET_CHILD_SUBREAPER, 1);
}

int main(void)
{
	int is_wrong = 0;

	prepare();
	for (int i = 0; i < NR_STEPS; i++) {
		const struct step *step = &steps[i];

		line = step->line;
		if (step->skipped) {
			printf("{\"line\": %d, \"skipped\": \"%s\"}\n", line,
			       step->skipped);
			continue;
		}
		if (step->process == NO_PROCESS) {
			perform(i);
		} else {
			if (!shared->pids[0] && do_fork(0))
				exit(3);
			perform_elsewhere(i);
		}
		is_wrong |= report(step);
/* SHOW */
	}
	return is_wrong ? 5 : 0;
}
