/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SPARKTRACE_DEMANGLE_H
#define SPARKTRACE_DEMANGLE_H

/*
 * A function's name for people: C++ names demangled, where a C++ runtime is installed, without their
 * arguments. To be freed; NULL when there is no memory.
 */
char *demangle_name(const char *name);

#endif
