/* SPDX-License-Identifier: Apache-2.0 */
/* What the processor told about a fault. */
#ifndef SPARKTRACE_SHIM_FAULT_H
#define SPARKTRACE_SHIM_FAULT_H

#if defined(__x86_64__)
#include "x86_64/fault.h"
#elif defined(__aarch64__)
#include "aarch64/fault.h"
#endif

#endif
