/* SPDX-License-Identifier: Apache-2.0 */
/* A library that stands in front of another and asks for what is behind it: dlsym must see it as the caller. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>

double cos(double x);

/* Stands in front of libm's: a lookup that starts at somebody else's place would find this one again. */
double cos(double x)
{
	double (*real)(double) = (double (*)(double))dlsym(RTLD_NEXT, "cos");

	return real == cos ? -1 : real(x) / 2;
}

double half_cos(double x)
{
	return cos(x);
}

const char *next_of_missing(void)
{
	dlerror();
	if (dlsym(RTLD_NEXT, "no_such_name"))
		return "found";
	return dlerror() ? "not found" : "no error";
}
