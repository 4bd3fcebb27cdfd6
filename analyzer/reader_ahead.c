/* SPDX-License-Identifier: Apache-2.0 */
#include "reader_parts.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <unistd.h>

#define GUESS_MIN 65536u

/*
 * One job at a time. Between `asked` and `done` everything here is the thread's, else the reader's. A frame that is
 * longer than was guessed looks cut off and is left to the reader.
 */
struct ahead {
	int fd;
	pthread_t thread;
	sem_t asked, done;
	bool busy, stop; /* busy: the reader's note that a job was given and not waited for */

	uint64_t offset;
	size_t bytes; /* of the file, from there on */
	struct look look;
	uint64_t *words;
	unsigned char *packed; /* FRAME_MAX bytes */
	ZSTD_DCtx *zstd;
};

static void work(struct ahead *ahead)
{
	ssize_t got = pread(ahead->fd, ahead->packed, ahead->bytes, (off_t)ahead->offset);

	if (got > 0)
		look_at_frame(ahead->zstd, ahead->words, ahead->packed, (size_t)got, &ahead->look);
	else
		ahead->look = (struct look){.refusal = "not read"};
}

static void wait_for(sem_t *semaphore)
{
	while (sem_wait(semaphore))
		continue; /* a signal came between */
}

static void *work_always(void *argument)
{
	struct ahead *ahead = argument;

	for (;;) {
		wait_for(&ahead->asked);
		if (ahead->stop)
			return NULL;
		work(ahead);
		sem_post(&ahead->done);
	}
}

static void release(struct ahead *ahead)
{
	sem_destroy(&ahead->asked);
	sem_destroy(&ahead->done);
	ZSTD_freeDCtx(ahead->zstd);
	free(ahead->packed);
	free(ahead->words);
	free(ahead);
}

struct ahead *ahead_new(int fd)
{
	struct ahead *ahead = calloc(1, sizeof(*ahead));

	if (!ahead)
		return NULL;
	ahead->fd = fd;
	sem_init(&ahead->asked, 0, 0);
	sem_init(&ahead->done, 0, 0);
	ahead->words = malloc(ST_BLOCK_MAX);
	ahead->packed = malloc(FRAME_MAX);
	ahead->zstd = ZSTD_createDCtx();
	if (ahead->words && ahead->packed && ahead->zstd &&
	    !pthread_create(&ahead->thread, NULL, work_always, ahead))
		return ahead;
	release(ahead);
	return NULL;
}

/* A job that the thread has not come to (the machine is busy) is taken back rather than waited for. */
static void finish_job(struct ahead *ahead)
{
	if (!ahead->busy)
		return;
	ahead->busy = false;
	if (sem_trywait(&ahead->asked))
		wait_for(&ahead->done);
	else
		ahead->look = (struct look){.refusal = "not begun"};
}

void ahead_free(struct ahead *ahead)
{
	if (!ahead)
		return;
	finish_job(ahead);
	ahead->stop = true;
	sem_post(&ahead->asked);
	pthread_join(ahead->thread, NULL);
	release(ahead);
}

void ahead_ask(struct ahead *ahead, uint64_t offset, uint64_t size, size_t guess)
{
	if (!ahead || offset >= size)
		return;
	finish_job(ahead);
	guess = guess < GUESS_MIN ? GUESS_MIN : guess > FRAME_MAX ? FRAME_MAX : guess;
	ahead->offset = offset;
	ahead->bytes = guess < size - offset ? guess : (size_t)(size - offset);
	ahead->busy = true;
	sem_post(&ahead->asked);
}

bool ahead_take(struct ahead *ahead, uint64_t offset, uint64_t **words, struct look *ret_look)
{
	uint64_t *other = *words;

	if (!ahead || !ahead->busy)
		return false;
	finish_job(ahead);
	if (ahead->offset != offset || ahead->look.refusal)
		return false;
	*words = ahead->words;
	ahead->words = other;
	*ret_look = ahead->look;
	return true;
}
