/* SPDX-License-Identifier: Apache-2.0 */
#include "commands.h"
#include "diff.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static int print_help(void)
{
	puts("usage: sparktrace-analyze diff [options] before.zst|FOLDER after.zst|FOLDER\n\n"
	     "Two runs side by side: peaks, the pool's layers at them, and which files, tensors and call "
	     "stacks\n"
	     "they differ in. Parts are matched by their names, not by address or process. Of a folder, the\n"
	     "newest run counts, all its processes together.\n");
	diff_options_print(stdout);
	puts("\n--fail-on METRIC alone: by more than the metric's tolerance, as `check` has it.\n"
	     "Noise, which is never a difference: 1 MiB, or 0.1 %; where several threads load, also what "
	     "only their\n"
	     "scheduling moves; of what is sampled 64 MiB, or 5 %.");
	puts("Exit status: 0; 1 --fail-on: it grew; 2 usage or unreadable input; 3 --fail-on: cannot "
	     "tell.");
	return COMMAND_OK;
}

static int compare(const struct measure *before, const struct measure *after,
                   const struct diff_options *options)
{
	struct diff diff;
	int status, error = diff_compare(before, after, options, &diff);

	if (error)
		return complain("diff", strerror(-error));
	status = diff.status;
	error = diff_write(stdout, &diff, options->json ? EMIT_JSON : EMIT_TEXT);
	diff_release(&diff);
	return error ? complain("standard output", strerror(-error)) : status;
}

/* A folder may hold a run of several machines, which are never added up. */
static int compare_sets(char *const *operands, const struct measures *before, const struct measures *after,
                        const struct diff_options *options)
{
	const char *several = before->count != 1 ? operands[0] : after->count != 1 ? operands[1] : NULL;

	if (several)
		return complain(several, "a run of several machines: name the traces of one");
	return compare(&before->runs[0], &after->runs[0], options);
}

int cmd_diff(int argc, char **argv)
{
	struct diff_options options;
	struct measures before, after;
	int first, status;

	if (diff_options_parse(argc, argv, &options, &first))
		return COMMAND_BAD;
	if (options.help)
		return print_help();
	if (argc - first != 2)
		return complain("diff", "name two traces, the one from before first; --help says more");
	if (measures_read(argv + first, 1, &before))
		return COMMAND_BAD;
	if (measures_read(argv + first + 1, 1, &after)) {
		measures_release(&before);
		return COMMAND_BAD;
	}
	status = compare_sets(argv + first, &before, &after, &options);
	measures_release(&after);
	measures_release(&before);
	return status;
}
