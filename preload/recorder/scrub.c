/* SPDX-License-Identifier: Apache-2.0 */
#include "scrub.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>
#include <strings.h>

#define STARS "***"

/* Last word of a name whose value is a secret: hf-token, API_KEY; not tokenizer, not max-tokens. */
static const char *const secret_words[] = {"token",    "key",        "apikey",      "secret",
                                           "password", "passwd",     "pwd",         "passphrase",
                                           "auth",     "credential", "credentials", "bearer"};

/* How tokens of well-known services begin. */
static const char *const secret_heads[] = {"hf_",         "sk-",    "ghp_",  "gho_",  "ghs_",
                                           "github_pat_", "glpat-", "xoxb-", "xoxp-", "AKIA",
                                           "ASIA",        "nvapi-", "eyJ"};
#define SECRET_LENGTH 16 /* with this many characters it is one */

struct line {
	char *text;
	size_t used, size;
};

static void put(struct line *line, const char *bytes, size_t count)
{
	size_t left = line->size - 1 - line->used;

	if (count > left)
		count = left;
	memcpy(line->text + line->used, bytes, count);
	line->used += count;
}

static bool is_word(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '-';
}

/* Whether the last word of a name, split at signs, is a secret's. */
static bool is_secret_name(const char *name, size_t length)
{
	size_t start = length, i;

	while (start && isalnum((unsigned char)name[start - 1]))
		start--;
	for (i = 0; i < sizeof(secret_words) / sizeof(secret_words[0]); i++) {
		size_t word = strlen(secret_words[i]);

		if (length - start == word && !strncasecmp(name + start, secret_words[i], word))
			return true;
	}
	return false;
}

/* Characters of a token of a known service at text, 0: none. */
static size_t token_at(const char *text, const char *end)
{
	size_t length = 0, i;

	while (text + length < end && (is_word(text[length]) || text[length] == '.'))
		length++;
	for (i = 0; i < sizeof(secret_heads) / sizeof(secret_heads[0]); i++)
		if (length >= SECRET_LENGTH && !strncmp(text, secret_heads[i], strlen(secret_heads[i])))
			return length;
	return 0;
}

/* Characters of user and password behind "://", 0: none there. */
static size_t login_at(const char *text, const char *end)
{
	size_t length = 0;

	while (text + length < end && !strchr("/?# \"'", text[length]) && text[length] != '@')
		length++;
	return length && text + length < end && text[length] == '@' ? length : 0;
}

static size_t value_at(const char *text, const char *end)
{
	size_t length = 0;
	char quote = text < end && (*text == '"' || *text == '\'') ? *text : 0;

	if (quote) {
		const char *closing = memchr(text + 1, quote, (size_t)(end - text - 1));

		return closing ? (size_t)(closing + 1 - text) : (size_t)(end - text);
	}
	while (text + length < end && !strchr("&;, )\t\n\"'", text[length]))
		length++;
	return length;
}

/*
 * What is secret behind the sign at `sign`, where a name goes before it. ret_taken: characters up to
 * there; 0: the secret begins at `sign` itself.
 */
static size_t secret_at(const char *argument, const char *name, const char *sign, const char *end,
                        size_t *ret_taken)
{
	const char *after = sign + 1;

	*ret_taken = 1;
	if (sign == name && token_at(sign, end)) {
		*ret_taken = 0;
		return token_at(sign, end);
	}
	if (end - sign > 3 && !strncmp(sign, "://", 3)) {
		*ret_taken = 3;
		return login_at(sign + 3, end);
	}
	if (*sign == ' ' && sign - name == 6 && !strncasecmp(name, "bearer", 6))
		return value_at(after, end);
	if ((*sign != '=' && *sign != ':') || !is_secret_name(name, (size_t)(sign - name)))
		return 0;
	if (name == argument && *sign == '=')
		return (size_t)(end - after); /* the argument is NAME=VALUE, whatever the value looks like */
	while (after < end && *after == ' ')
		after++;
	*ret_taken = (size_t)(after - sign);
	return value_at(after, end);
}

/* One argument; what is secret in it becomes stars. */
static void put_argument(struct line *line, const char *argument, const char *end)
{
	const char *text = argument, *name = argument;

	while (text < end) {
		size_t taken, secret = secret_at(argument, name, text, end, &taken);

		put(line, text, taken);
		text += taken;
		if (taken && !is_word(text[-1]))
			name = text;
		if (secret)
			put(line, STARS, sizeof(STARS) - 1);
		text += secret;
	}
}

static bool needs_quotes(const char *text, size_t length)
{
	size_t i;

	for (i = 0; i < length; i++)
		if (isspace((unsigned char)text[i]))
			return true;
	return !length;
}

void scrub_arguments(const char *arguments, size_t bytes, char *ret_line, size_t size)
{
	struct line line = {.text = ret_line, .size = size};
	const char *at = arguments, *end = arguments + bytes;
	bool hide = false;

	for (; at < end; at += strnlen(at, (size_t)(end - at)) + 1) {
		size_t length = strnlen(at, (size_t)(end - at));
		bool quotes = needs_quotes(at, length);

		if (at != arguments)
			put(&line, " ", 1);
		if (quotes)
			put(&line, "'", 1);
		if (hide && at[0] != '-')
			put(&line, STARS, sizeof(STARS) - 1);
		else
			put_argument(&line, at, at + length);
		if (quotes)
			put(&line, "'", 1);
		hide = at[0] == '-' && !memchr(at, '=', length) && is_secret_name(at, length);
	}
	ret_line[line.used] = '\0';
}
