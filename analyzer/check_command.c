/* SPDX-License-Identifier: Apache-2.0 */
/* The command `check`: reads what is to be compared, has it compared or written, and says so. */
#include <analyzer/baseline.h>
#include <analyzer/check_command.h>
#include <analyzer/check_output.h>
#include <analyzer/commands.h>
#include <errno.h>
#include <sparktrace/format.h>
#include <string.h>

static bool is_same(const char *a, const char *b)
{
	return a && b && !strcmp(a, b);
}

/* What to do is said with what is missing; 0: it can begin. */
static int need_options(const struct check_options *options, int operands)
{
	bool limits = options->limit_count || options->budget != ST_UNKNOWN || options->fit != ST_UNKNOWN;

	if (operands < 1)
		return complain("check",
		                "which trace? sparktrace-analyze check --baseline FILE run.zst; see --help");
	if (options->update && !options->baseline)
		return complain("check",
		                "--update writes the file that --baseline names: give --baseline FILE");
	if (!options->baseline && !limits)
		return complain(
			"check",
			"nothing to compare with: give --baseline FILE (with --update it is written), "
			"--budget SIZE, --fit SIZE or --metric NAME=LIMIT");
	if (is_same(options->junit, options->baseline) || is_same(options->benchmark, options->baseline))
		return complain(
			"check",
			"--junit and --benchmark must not name the baseline, it would be overwritten");
	return COMMAND_OK;
}

/* A baseline that is yet to be written is none. What --update would overwrite must be one. */
static int read_baseline(const struct check_options *options, char *const *operands, int count,
                         struct measures *ret_baseline)
{
	int error = options->baseline ? baseline_read(options->baseline, ret_baseline) : 0;

	if (error == -ENOENT && options->update)
		return COMMAND_OK;
	if (error == -ENOENT) {
		fprintf(stderr,
		        "sparktrace-analyze: %s: there is no such baseline; this writes it: "
		        "sparktrace-analyze check --baseline %s --update %s%s\n",
		        options->baseline, options->baseline, operands[0], count > 1 ? " ..." : "");
		return COMMAND_BAD;
	}
	if (!error && options->update && ret_baseline->count && !baseline_is_file(ret_baseline->runs)) {
		return complain(options->baseline, "a trace; --update does not overwrite it");
	}
	return error ? COMMAND_BAD : COMMAND_OK;
}

/* Writes the baseline where all is well, then says the result. */
static int finish(const struct check_result *result, const struct check_options *options)
{
	int error = options->update && result->status == COMMAND_OK
	                    ? check_update(options->baseline, result->measures)
	                    : 0;

	if (error)
		return complain(options->baseline, strerror(-error));
	return check_output(result, options) ? COMMAND_BAD : result->status;
}

static int compare(const struct measures *measures, const struct measures *baseline,
                   const struct check_options *options)
{
	struct check_result result;
	int error = check_compare(measures, baseline->count ? baseline->runs : NULL, options, &result),
	    status;

	if (error)
		return complain(measures->runs[0].path, strerror(-error));
	status = finish(&result, options);
	check_release(&result);
	return status;
}

static int check(char *const *operands, int count, const struct check_options *options)
{
	struct measures measures = {0}, baseline = {0};
	int status = read_baseline(options, operands, count, &baseline);

	if (!status && measures_read(operands, count, &measures))
		status = COMMAND_BAD;
	if (!status)
		status = compare(&measures, &baseline, options);
	measures_release(&measures);
	measures_release(&baseline);
	return status;
}

int cmd_check(int argc, char **argv)
{
	struct check_options options;
	int first, status;

	if (check_options_parse(argc, argv, &options, &first))
		return COMMAND_BAD;
	if (options.help) {
		check_options_print(stdout);
		return COMMAND_OK;
	}
	status = need_options(&options, argc - first);
	return status ? status : check(argv + first, argc - first, &options);
}
