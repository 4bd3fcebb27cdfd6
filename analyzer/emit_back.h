/* SPDX-License-Identifier: Apache-2.0 */
/* What the emitter's own files share; reports include emit.h. */
#ifndef SPARKTRACE_EMIT_BACK_H
#define SPARKTRACE_EMIT_BACK_H

#include "emit.h"

/* Length of the valid UTF-8 sequence at `s`, 0: none. `s` ends with NUL. */
size_t emit_utf8_length(const unsigned char *s);

/* `text` with everything that is no printable UTF-8 as \xNN; `backslash` is how a backslash is written. */
void emit_clean(FILE *out, const char *text, const char *backslash);

bool emit_value_known(const struct emit_field *field);
void emit_value_print(FILE *out, const struct emit_field *field);

/* Text: a sentence, wrapped, with `indent` blanks before it and `hang` before its further lines. */
void emit_text_heading(struct emitter *e, const char *title);
void emit_text_sentence(struct emitter *e, const char *sentence, const struct emit_field *fields,
                        size_t count);
void emit_text_command(struct emitter *e, const char *command);
void emit_text_row(struct emitter *e, const struct emit_field *fields);
void emit_text_table(struct emitter *e);

/* JSON. */
void emit_json_open(struct emitter *e, const char *key, bool array);
void emit_json_close(struct emitter *e);
void emit_json_fields(struct emitter *e, const struct emit_field *fields, size_t count);
void emit_json_row(struct emitter *e, const struct emit_field *fields, size_t count);

#endif
