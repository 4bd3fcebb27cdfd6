/* SPDX-License-Identifier: Apache-2.0 */
/* Versions of distributions, in the order in which Python packages count them (PEP 440). */
#ifndef SPARKTRACE_VERSION_H
#define SPARKTRACE_VERSION_H

/*
 * Below, equal, above 0 as `a` is older than, as old as, newer than `b`. 0.10 is newer than 0.9, 1.0 as old as 1.0.0,
 * 1.0.dev1 < 1.0a1 < 1.0b1 < 1.0rc1 < 1.0 < 1.0.post1; what follows a + (1.0+cu130) does not count.
 */
int version_compare(const char *a, const char *b);

#endif
