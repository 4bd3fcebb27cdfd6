/* SPDX-License-Identifier: Apache-2.0 */
#include "python.h"

#include "event.h"
#include "peek.h"
#include "python_code.h"
#include "python_layout.h"
#include "python_thread.h"
#include "real.h"
#include "settings.h"
#include "text.h"
#include "unwind.h"

#include <stdatomic.h>

#include "banned.h"

#define STEPS_MOST 1024 /* frames looked at, those included that are not shown */
#define TAG_BITS   7    /* 3.14 marks references in bits that an aligned pointer has not */

enum python_state { PYTHON_ABSENT, PYTHON_READY, PYTHON_REFUSED };

/* Set once, before `state` leaves ABSENT. A fork child has the same interpreter. */
static struct interpreter {
	struct python_layout layout;
	uintptr_t runtime, code_type;
	uintptr_t start, end; /* of the object that holds it: the main program, or libpython */
	uint64_t version;     /* Py_Version, 0: older than that */
	const char *refused;
} interpreter;

static _Atomic uint32_t state; /* enum python_state */
static _Atomic bool told;      /* that frames are missing */
static struct peek seen;

static const char *const reasons[] = {
	[PYTHON_UNKNOWN_VERSION] = "no Python frames: the structures of this version of Python are not known",
	[PYTHON_FREE_THREADED] = "no Python frames: this Python runs without its global lock",
	[PYTHON_STRANGE] = "no Python frames: this Python is not built as its version says",
};

static void tell(const char *why)
{
	if (!atomic_exchange(&told, true))
		EVENT_TAIL(coverage, why, strlen(why));
}

static void refuse(const char *why)
{
	interpreter.refused = why;
	atomic_store_explicit(&state, PYTHON_REFUSED, memory_order_release);
}

/* python=3.11.2 */
static void tell_version(void)
{
	char buffer[40];
	struct text text = text_in(buffer, sizeof(buffer));

	text_add(&text, "python=");
	text_number(&text, interpreter.version >> 24);
	text_byte(&text, '.');
	text_number(&text, interpreter.version >> 16 & 0xFF);
	text_byte(&text, '.');
	text_number(&text, interpreter.version >> 8 & 0xFF);
	EVENT_TAIL(info, buffer, text_length(&text));
}

static void *object_find(const char *name)
{
	void *found = real()->dlsym(RTLD_DEFAULT, name);

	if (!found)
		dlerror();
	return found;
}

static void interpreter_find(void)
{
	uint64_t *runtime = object_find("_PyRuntime");
	struct dl_find_object object;
	enum python_support support;
	const unsigned long *version;

	if (!runtime || _dl_find_object(runtime, &object) < 0)
		return;
	interpreter.start = (uintptr_t)object.dlfo_map_start;
	interpreter.end = (uintptr_t)object.dlfo_map_end;
	version = object_find("Py_Version");
	interpreter.version = version ? *version : 0;
	interpreter.code_type = (uintptr_t)object_find("PyCode_Type");
	interpreter.runtime = (uintptr_t)runtime;
	support = python_layout_find(interpreter.version, runtime, &interpreter.layout);
	if (support == PYTHON_KNOWN)
		atomic_store_explicit(&state, PYTHON_READY, memory_order_release);
	else
		refuse(reasons[support]);
}

void python_prepare(void)
{
	if (!settings_get()->python_stacks)
		return;
	if (atomic_load(&state) == PYTHON_ABSENT)
		interpreter_find();
	if (interpreter.version)
		tell_version();
	if (atomic_load(&state) == PYTHON_REFUSED)
		tell(interpreter.refused);
}

/* What a walk is about. */
struct step {
	const struct python_layout *layout;
	uintptr_t frame, previous, code, instruction;
	unsigned char owner;
};

static bool step_read(struct step *step)
{
	const struct python_layout *layout = step->layout;
	const char *at = (const char *)step->frame;

	if (step->frame % sizeof(step->frame) ||
	    !peek_range(&seen, step->frame, layout->frame_owner + sizeof(step->owner)))
		return false;
	memcpy(&step->previous, at + layout->frame_previous, sizeof(step->previous));
	memcpy(&step->code, at + layout->frame_code, sizeof(step->code));
	memcpy(&step->instruction, at + layout->frame_instruction, sizeof(step->instruction));
	step->owner = *(const unsigned char *)(at + layout->frame_owner);
	step->code &= ~(uintptr_t)TAG_BITS;
	return true;
}

/*
 * The word of a frame; 0: it is none of Python code, or has not begun yet, and the interpreter itself would not show
 * it. False: it is not what it should be.
 */
static bool step_word(const struct step *step, uint64_t *ret_word)
{
	const struct python_layout *layout = step->layout;
	struct python_code code;
	int64_t unit;

	*ret_word = 0;
	if (step->owner >= layout->own_frames)
		return true;
	if (!python_code_read(&seen, layout, interpreter.code_type, step->code, &code))
		return false;
	unit = (int64_t)(step->instruction - step->code - layout->code_bytes) / 2;
	if (step->owner != PYTHON_GENERATOR && unit < (int64_t)code.traceable)
		return true;
	if (unit < -1 || unit >= (int64_t)code.units)
		return false;
	*ret_word = python_code_word(&seen, layout, &code, unit < 0 ? 0 : (uint32_t)unit);
	return true;
}

/* See the head of python.h. */
static bool step_is_there(const struct step *step, int i)
{
	return i > 0 || step->layout->code_version != PYTHON_NONE ||
	       peek_now(&seen, step->code, step->layout->code_bytes);
}

static void walk_frames(uintptr_t frame, struct python_walk *walk)
{
	struct step step = {.layout = &interpreter.layout, .frame = frame};

	for (int i = 0; step.frame; i++, step.frame = step.previous) {
		uint64_t word;

		walk->cut = true;
		if (i == STEPS_MOST || walk->count == PYTHON_FRAMES)
			return;
		if (!step_read(&step) || !step_is_there(&step, i) || !step_word(&step, &word)) {
			tell("some Python frames could not be read");
			return;
		}
		walk->cut = false;
		if (word)
			walk->frame[walk->count++] = word;
	}
}

/* Does the stack lead through the interpreter? One that was cut may do so farther out. */
static bool is_inside(const struct walk *native)
{
	for (unsigned i = native->count; i > 0; i--)
		if (native->frame[i - 1] >= interpreter.start && native->frame[i - 1] < interpreter.end)
			return true;
	return native->cut;
}

void python_take(const struct walk *native, struct python_walk *ret_walk)
{
	uintptr_t frame;
	int r;

	ret_walk->count = 0;
	ret_walk->cut = false;
	if (atomic_load_explicit(&state, memory_order_acquire) != PYTHON_READY || !is_inside(native))
		return;
	r = python_thread_frame(&seen, &interpreter.layout, interpreter.runtime, &frame);
	if (r == -EPERM || r == -ENOSYS) {
		refuse("no Python frames: the kernel refuses process_vm_readv");
		tell(interpreter.refused);
	} else if (r == 0) {
		walk_frames(frame, ret_walk);
	}
}

void python_reset(void)
{
	if (atomic_load(&state) == PYTHON_READY)
		peek_reset(&seen);
	atomic_store(&told, false);
	python_code_reset();
}
