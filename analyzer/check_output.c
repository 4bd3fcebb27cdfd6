/* SPDX-License-Identifier: Apache-2.0 */
#include <analyzer/check_output.h>
#include <analyzer/commands.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Closes it, whatever happened before; the first error counts. */
static int close_whole(FILE *out, int error)
{
	errno = 0;
	if (!error && (fflush(out) || ferror(out)))
		error = errno ? -errno : -EIO;
	errno = 0;
	if (fclose(out) && !error)
		error = errno ? -errno : -EIO;
	return error;
}

static int write_straight(const char *path, output_writer *write, const void *content)
{
	FILE *out = fopen(path, "we");

	return out ? close_whole(out, write(out, content)) : -errno;
}

/* As a new file would get it, or as the old one has it. */
static mode_t mode_for(const struct stat *old)
{
	mode_t mask;

	if (old)
		return old->st_mode & 07777;
	mask = umask(0);
	umask(mask);
	return 0666 & ~mask;
}

static int write_beside(const char *path, mode_t mode, output_writer *write, const void *content)
{
	char *part = NULL;
	int fd, error;
	FILE *out;

	if (asprintf(&part, "%s.XXXXXX", path) < 0)
		return -ENOMEM;
	fd = mkostemp(part, O_CLOEXEC);
	out = fd < 0 ? NULL : fdopen(fd, "w");
	if (!out) {
		error = -errno;
	} else {
		error = write(out, content);
		if (!error && (fchmod(fd, mode) || fflush(out) || fsync(fd)))
			error = -errno;
		error = close_whole(out, error);
	}
	if (!error && rename(part, path))
		error = -errno;
	if (error && fd >= 0)
		unlink(part);
	free(part);
	return error;
}

int output_replace(const char *path, output_writer *write, const void *content)
{
	struct stat st;
	bool there = !stat(path, &st);
	char *target;
	int error;

	if (there && !S_ISREG(st.st_mode))
		return write_straight(path, write, content);
	target = there ? realpath(path, NULL) : strdup(path);
	if (!target)
		return -errno;
	error = write_beside(target, mode_for(there ? &st : NULL), write, content);
	free(target);
	return error;
}

typedef int result_writer(FILE *out, const struct check_result *result);

/* The text in memory, to be freed. */
static int write_to_memory(result_writer *write, const struct check_result *result, char **ret_text)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);
	int error = out ? close_whole(out, write(out, result)) : -ENOMEM;

	if (error)
		free(text);
	else
		*ret_text = text;
	return error;
}

bool github_runs(void)
{
	const char *word = getenv("GITHUB_ACTIONS");

	return word && !strcmp(word, "true");
}

static int print_result(const struct check_result *result, bool json)
{
	result_writer *write = json ? check_write_json : check_write_text;
	char *text;
	int error;

	if (!github_runs())
		return write(stdout, result);
	error = write_to_memory(write, result, &text);
	if (error)
		return error;
	github_guard(stdout, text, json);
	free(text);
	/* With --json standard output is one document; the runner reads both. */
	fflush(stdout);
	return check_write_annotations(json ? stderr : stdout, result);
}

/* What does not fit any more is left out: GitHub would refuse all of it. */
static int append(const char *path, const char *text)
{
	static const char left_out[] = "sparktrace-analyze: the job summary is full, ours is left out";
	FILE *out = fopen(path, "ae");
	struct stat st;

	if (!out)
		return -errno;
	if (fstat(fileno(out), &st))
		return close_whole(out, -errno);
	if ((uint64_t)st.st_size + strlen(text) + 1 > OUTPUT_SUMMARY_MAX)
		fprintf(stderr, "%s\n", left_out);
	else
		fprintf(out, "%s%s", st.st_size ? "\n" : "", text);
	return close_whole(out, 0);
}

static int append_summary(const struct check_result *result, const char *path)
{
	char *text;
	int error = write_to_memory(check_write_summary, result, &text);

	if (error)
		return error;
	error = append(path, text);
	free(text);
	return error;
}

static int write_junit(FILE *out, const void *result)
{
	return check_write_junit(out, result);
}

static int write_benchmark(FILE *out, const void *result)
{
	return check_write_benchmark(out, result);
}

/* The first error counts, and keeps nothing else from being written. */
static void replace(const char *path, output_writer *write, const struct check_result *result, int *error)
{
	int failed = path ? output_replace(path, write, result) : 0;

	if (failed)
		complain(path, strerror(-failed));
	*error = *error ? *error : failed;
}

int check_output(const struct check_result *result, const struct check_options *options)
{
	const char *summary = github_runs() ? getenv("GITHUB_STEP_SUMMARY") : NULL;
	int error = print_result(result, options->json);
	int failed;

	errno = 0;
	if (!error && (fflush(stdout) || ferror(stdout)))
		error = errno ? -errno : -EIO;
	if (error)
		complain("standard output", strerror(-error));
	if (summary && *summary) {
		failed = append_summary(result, summary);
		if (failed)
			complain(summary, strerror(-failed));
		error = error ? error : failed;
	}
	replace(options->junit, write_junit, result, &error);
	replace(options->benchmark, write_benchmark, result, &error);
	return error;
}
