/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What must not be called inside somebody else's process. Included last by every file of the shim.
 *
 * No stdio (it buffers, locks, allocates), no end of the program, no environment outside settings.c
 * (a later setenv moves it), no allocation (we may be inside one). The functions that the shim wraps
 * are called through real()-> only, and its own mappings and files through sys.h; a file that wraps a
 * banned name says so before it includes this.
 */
#ifndef SPARKTRACE_SHIM_BANNED_H
#define SPARKTRACE_SHIM_BANNED_H

#pragma GCC poison printf fprintf vfprintf sprintf snprintf vsnprintf dprintf puts fputs perror
#pragma GCC poison exit abort quick_exit raise assert
#pragma GCC poison strdup strndup asprintf getline opendir
#pragma GCC poison pthread_create pthread_mutex_lock pthread_once pthread_key_create

#ifndef SHIM_WRAPS_HEAP
#pragma GCC poison malloc calloc realloc free reallocarray posix_memalign aligned_alloc memalign valloc \
	pvalloc
#endif
#ifndef SHIM_READS_ENVIRONMENT
#pragma GCC poison getenv secure_getenv setenv putenv environ
#endif

#endif
