/* SPDX-License-Identifier: Apache-2.0 */
/* On which line of a baseline a key stands: the parser of JSON does not keep that, and people need it. */
#include <analyzer/baseline_parts.h>
#include <string.h>

struct walk {
	const char *at, *end;
	unsigned line, depth;
};

/* Behind the string that begins at walk->at; strings have no line ends in them. */
static const char *string_end(const struct walk *walk)
{
	const char *at = walk->at + 1;

	while (at < walk->end && *at != '"')
		at += *at == '\\' ? 2 : 1;
	return at < walk->end ? at + 1 : walk->end;
}

/* Is the string at walk->at, up to `end`, a key, and `name`? */
static bool is_key(const struct walk *walk, const char *end, const char *name)
{
	json_t *string;
	bool same;

	while (end < walk->end && strchr(" \t\r\n", *end))
		end++;
	if (end == walk->end || *end != ':')
		return false;
	string = json_loadb(walk->at, (size_t)(string_end(walk) - walk->at), JSON_DECODE_ANY, NULL);
	same = string && !strcmp(json_string_value(string), name);
	json_decref(string);
	return same;
}

/* Goes on to the key of that name in the object at that depth; false: it has none. */
static bool find_key(struct walk *walk, unsigned depth, const char *name)
{
	while (walk->at < walk->end && walk->depth >= depth) {
		const char *end = *walk->at == '"' ? string_end(walk) : walk->at + 1;

		if (*walk->at == '"' && walk->depth == depth && is_key(walk, end, name))
			return true;
		walk->line += *walk->at == '\n';
		walk->depth += *walk->at == '{' || *walk->at == '[';
		walk->depth -= *walk->at == '}' || *walk->at == ']';
		walk->at = end;
	}
	return false;
}

/* From behind a key into the object that is its value; false: it is something else. */
static bool enter_object(struct walk *walk)
{
	while (walk->at < walk->end && strchr(" \t\r\n:", *walk->at))
		walk->line += *walk->at++ == '\n';
	if (walk->at == walk->end || *walk->at != '{')
		return false;
	walk->at++;
	walk->depth++;
	return true;
}

unsigned baseline_line(const struct baseline_text *text, const char *outer, const char *inner)
{
	struct walk walk = {.at = text->text, .end = text->text + text->size, .line = 1};
	unsigned line;

	while (walk.at < walk.end && *walk.at != '{')
		walk.line += *walk.at++ == '\n';
	if (walk.at == walk.end)
		return 1;
	line = walk.line;
	walk.at++;
	walk.depth = 1;
	if (!outer || !find_key(&walk, 1, outer))
		return line;
	line = walk.line;
	walk.at = string_end(&walk);
	return inner && enter_object(&walk) && find_key(&walk, 2, inner) ? walk.line : line;
}
