/* SPDX-License-Identifier: Apache-2.0 */
#include <analyzer/loader.h>

#include <ctype.h>
#include <string.h>

/* clang-format off */
static const struct known_loader loaders[] = {
	/* name                  distribution            module         folder     base */
	{"vllm",                 "vllm",                 NULL,          NULL,      false},
	{"sglang",               "sglang",               NULL,          NULL,      false},
	{"tensorrt_llm",         "tensorrt_llm",         NULL,          NULL,      false},
	{"nemo_automodel",       "nemo_automodel",       NULL,          NULL,      false},
	{"unsloth",              "unsloth",              NULL,          NULL,      false},
	{"unsloth",              "unsloth_zoo",          NULL,          NULL,      false},
	{"ComfyUI",              "comfyui",              NULL,          "/comfy/", false},
	{"comfy-aimdo",          "comfy_aimdo",          NULL,          NULL,      false},
	{"diffusers",            "diffusers",            NULL,          NULL,      false},
	{"peft",                 "peft",                 NULL,          NULL,      false},
	{"transformers",         "transformers",         NULL,          NULL,      false},
	{"accelerate",           "accelerate",           NULL,          NULL,      false},
	{"huggingface_hub",      "huggingface_hub",      NULL,          NULL,      false},
	{"fastsafetensors",      "fastsafetensors",      NULL,          NULL,      false},
	{"runai_model_streamer", "runai_model_streamer", "libstreamer", NULL,      false},
	{"instanttensor",        "instanttensor",        NULL,          NULL,      false},
	{"modelexpress",         "modelexpress",         NULL,          NULL,      false},
	{"safetensors",          "safetensors",          NULL,          NULL,      false},
	{"gguf",                 "gguf",                 NULL,          NULL,      false},
	{"llama_cpp_python",     "llama_cpp_python",     NULL,          NULL,      false},
	{"ollama",               NULL,                   "ollama",      NULL,      false},
	{"llama.cpp",            NULL,                   "llama-",      NULL,      false},
	{"llama.cpp",            NULL,                   "libllama",    NULL,      false},
	{"llama.cpp",            NULL,                   "libggml",     NULL,      false},
	{"kvikio",               "kvikio_cu13",          "libkvikio",   NULL,      false},
	{"numpy",                "numpy",                NULL,          NULL,      true},
	{"torch",                "torch",                NULL,          NULL,      true},
};
/* clang-format on */

/* Names of distributions: case, '-', '_' and '.' are all one. */
static bool same_package(const char *name, const char *wanted)
{
	for (; *name && *wanted; name++, wanted++) {
		char a = *name == '-' || *name == '.' ? '_' : (char)tolower((unsigned char)*name);

		if (a != *wanted)
			return false;
	}
	return !*name && !*wanted;
}

static bool begins(const char *text, const char *beginning)
{
	return !strncmp(text, beginning, strlen(beginning));
}

/* The loader that a file belongs to, NULL for none. */
static const struct known_loader *loader_of_file(const char *path, const struct package *package, bool native)
{
	const char *name = names_base(path);

	for (size_t i = 0; path && i < sizeof(loaders) / sizeof(loaders[0]); i++) {
		const struct known_loader *known = &loaders[i];

		if (package  ? known->package && same_package(package->name, known->package)
		    : native ? known->module && begins(name, known->module)
		             : known->folder && strstr(path, known->folder))
			return known;
	}
	return NULL;
}

/* Frames come outermost first, so the last one of a loader is its innermost. */
static void chain_add(struct loader_chain *chain, const struct known_loader *known,
                      const struct package *package, const struct python_frame *frame)
{
	struct loader_seen *seen = NULL;

	for (unsigned i = 0; i < chain->count && !seen; i++)
		if (!strcmp(chain->seen[i].known->name, known->name))
			seen = &chain->seen[i];
	if (!seen && chain->count == CHAIN_MAX)
		return;
	if (!seen) {
		seen = &chain->seen[chain->count++];
		*seen = (struct loader_seen){.known = known, .entry = frame->function};
	}
	seen->package = seen->package ? seen->package : package;
	/* A native frame below Python ones tells less of the way than the line that called it. */
	if (frame->line || !seen->line) {
		seen->function = frame->function;
		seen->file = frame->file;
		seen->line = frame->line;
	}
}

static void chain_python(struct loader_chain *chain, const struct names *names, uint32_t stack)
{
	for (size_t i = names_python_depth(names, stack); i-- > 0;) {
		struct python_frame frame = names_python_frame(names, stack, i);
		const struct package *package = frame.package;
		const struct known_loader *known = loader_of_file(frame.file, package, false);

		if (known) {
			chain_add(chain, known, package, &frame);
		} else if (!package && !names_is_standard(frame.file)) {
			chain->caller = frame.function;
			chain->caller_file = frame.file;
			chain->caller_line = frame.line;
		}
	}
}

/* What stands between a program and the system is nobody's own code. */
static bool is_system(const char *module)
{
	static const char *const names[] = {"libc.so",   "libc-",      "ld-",          "libpthread",
	                                    "libstdc++", "libcuda.so", "libcudart.so", "libsparktrace",
	                                    "libpython", "python"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (begins(module, names[i]))
			return true;
	return false;
}

static void chain_native(struct loader_chain *chain, const struct names *names, uint32_t stack)
{
	bool python = chain->caller || chain->count;

	for (size_t i = names_depth(names, stack); i-- > 0;) {
		struct frame native = names_frame(names, stack, i);
		struct python_frame frame = {.function = native.function, .file = native.module};
		const struct package *package = native.package;
		const struct known_loader *known = loader_of_file(native.module, package, true);
		const char *module = names_base(native.module);

		chain->slice |= native.function && strstr(native.function, "PySafeSlice");
		if (known) {
			chain_add(chain, known, package, &frame);
		} else if (!python && !package && native.function && module && !is_system(module)) {
			chain->caller = native.function;
			chain->caller_file = native.module;
		}
	}
}

void loader_chain_find(const struct names *names, uint32_t stack, struct loader_chain *ret_chain)
{
	*ret_chain = (struct loader_chain){0};
	chain_python(ret_chain, names, stack);
	chain_native(ret_chain, names, stack);
}
