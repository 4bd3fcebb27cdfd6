/* SPDX-License-Identifier: Apache-2.0 */
/* Globals that torch.save() writes, and what calling them would make. Nothing is called. */
#include "pickle_parts.h"

#include <string.h>

#define FORWARDS 4 /* calls that only hand on to another */

enum use { USE_OBJECT, USE_TENSOR, USE_INNER, USE_CALL, USE_STORAGE, USE_DTYPE };

/* Where which argument stands differs between the ways to rebuild a tensor: storage, offset, size, stride, dtype. */
static const struct global {
	const char *module, *name;
	enum use use;
	enum st_dtype dtype;
	unsigned bytes; /* of an element */
} globals[] = {
	{"collections", "OrderedDict", USE_OBJECT, 0, 0},
	{"torch._utils", "_rebuild_tensor", USE_TENSOR, 0, 0},
	{"torch._utils", "_rebuild_tensor_v2", USE_TENSOR, 0, 0},
	{"torch._utils", "_rebuild_tensor_v3", USE_TENSOR, 0, 0},
	{"torch._utils", "_rebuild_parameter", USE_INNER, 0, 0},
	{"torch._utils", "_rebuild_parameter_with_state", USE_INNER, 0, 0},
	{"torch._tensor", "_rebuild_from_type_v2", USE_CALL, 0, 0},
	{"torch", "DoubleStorage", USE_STORAGE, ST_DTYPE_F64, 8},
	{"torch", "FloatStorage", USE_STORAGE, ST_DTYPE_F32, 4},
	{"torch", "HalfStorage", USE_STORAGE, ST_DTYPE_F16, 2},
	{"torch", "BFloat16Storage", USE_STORAGE, ST_DTYPE_BF16, 2},
	{"torch", "LongStorage", USE_STORAGE, ST_DTYPE_I64, 8},
	{"torch", "IntStorage", USE_STORAGE, ST_DTYPE_I32, 4},
	{"torch", "ShortStorage", USE_STORAGE, ST_DTYPE_I16, 2},
	{"torch", "CharStorage", USE_STORAGE, ST_DTYPE_I8, 1},
	{"torch", "ByteStorage", USE_STORAGE, ST_DTYPE_U8, 1},
	{"torch", "BoolStorage", USE_STORAGE, ST_DTYPE_BOOL, 1},
	{"torch", "ComplexFloatStorage", USE_STORAGE, ST_DTYPE_OTHER, 8},
	{"torch", "ComplexDoubleStorage", USE_STORAGE, ST_DTYPE_OTHER, 16},
	{"torch.storage", "UntypedStorage", USE_STORAGE, ST_DTYPE_UNKNOWN, 0},
	{"torch", "float64", USE_DTYPE, ST_DTYPE_F64, 8},
	{"torch", "float32", USE_DTYPE, ST_DTYPE_F32, 4},
	{"torch", "float16", USE_DTYPE, ST_DTYPE_F16, 2},
	{"torch", "bfloat16", USE_DTYPE, ST_DTYPE_BF16, 2},
	{"torch", "float8_e4m3fn", USE_DTYPE, ST_DTYPE_F8_E4M3, 1},
	{"torch", "float8_e5m2", USE_DTYPE, ST_DTYPE_F8_E5M2, 1},
	{"torch", "float8_e4m3fnuz", USE_DTYPE, ST_DTYPE_OTHER, 1},
	{"torch", "float8_e5m2fnuz", USE_DTYPE, ST_DTYPE_OTHER, 1},
	{"torch", "float8_e8m0fnu", USE_DTYPE, ST_DTYPE_OTHER, 1},
	{"torch", "float4_e2m1fn_x2", USE_DTYPE, ST_DTYPE_OTHER, 1},
	{"torch", "uint64", USE_DTYPE, ST_DTYPE_U64, 8},
	{"torch", "uint32", USE_DTYPE, ST_DTYPE_U32, 4},
	{"torch", "uint16", USE_DTYPE, ST_DTYPE_U16, 2},
	{"torch", "uint8", USE_DTYPE, ST_DTYPE_U8, 1},
	{"torch", "int64", USE_DTYPE, ST_DTYPE_I64, 8},
	{"torch", "int32", USE_DTYPE, ST_DTYPE_I32, 4},
	{"torch", "int16", USE_DTYPE, ST_DTYPE_I16, 2},
	{"torch", "int8", USE_DTYPE, ST_DTYPE_I8, 1},
	{"torch", "bool", USE_DTYPE, ST_DTYPE_BOOL, 1},
	{"torch", "complex64", USE_DTYPE, ST_DTYPE_OTHER, 8},
	{"torch", "complex128", USE_DTYPE, ST_DTYPE_OTHER, 16},
};

#define GLOBALS (sizeof(globals) / sizeof(globals[0]))

uint64_t torch_global(const char *module, const char *name)
{
	size_t i;

	for (i = 0; i < GLOBALS; i++)
		if (!strcmp(globals[i].name, name) && !strcmp(globals[i].module, module))
			return value_make(VALUE_GLOBAL, i + 1);
	return value_make(VALUE_GLOBAL, 0);
}

static const struct global *global_of(uint64_t value)
{
	uint64_t number = value_number(value);

	return value_kind(value) == VALUE_GLOBAL && number && number <= GLOBALS ? &globals[number - 1] : NULL;
}

/* ('storage', class, key, location, elements) */
uint64_t torch_storage(const struct pickle *pickle, uint64_t tuple)
{
	uint64_t count, number = 0;
	const uint64_t *values = tuple_values(pickle, tuple, &count);
	const struct global *class = count == 5 ? global_of(values[1]) : NULL;
	char key[16], *digit = key;

	if (!class || class->use != USE_STORAGE || text_read(pickle, values[2], key, sizeof(key)) || !*key)
		return VALUE_OTHER;
	for (; *digit >= '0' && *digit <= '9'; digit++)
		number = number * 10 + (uint64_t)(*digit - '0');
	/* The storage's place in the table rather than its type: that also tells the size of an element. */
	if (*digit || number >> 40)
		return VALUE_OTHER;
	return value_make(VALUE_STORAGE, (uint64_t)(class - globals) << STORAGE_DTYPE | number);
}

/* Elements, and from the first to the last of them, both in elements. -1: that is no shape. */
static int measure(const struct pickle *pickle, uint64_t sizes, uint64_t strides, uint64_t *ret_elements,
                   uint64_t *ret_extent)
{
	uint64_t count, others, elements = 1, extent = 1, i, way;
	const uint64_t *size = tuple_values(pickle, sizes, &count);
	const uint64_t *stride = tuple_values(pickle, strides, &others);

	if (!size || !stride || count != others)
		return -1;
	for (i = 0; i < count; i++) {
		if (value_kind(size[i]) != VALUE_INT || value_kind(stride[i]) != VALUE_INT ||
		    value_int(size[i]) < 0 || value_int(stride[i]) < 0 ||
		    __builtin_mul_overflow(elements, value_number(size[i]), &elements))
			return -1;
		if (value_int(size[i]) &&
		    (__builtin_mul_overflow(value_number(size[i]) - 1, value_number(stride[i]), &way) ||
		     __builtin_add_overflow(extent, way, &extent)))
			return -1;
	}
	*ret_elements = elements;
	*ret_extent = elements ? extent : 0;
	return 0;
}

/* VALUE_OTHER where something is not as it should be: then the storage has no name, that is all. */
static int make_tensor(struct pickle *pickle, const uint64_t *values, uint64_t count, uint64_t *ret_value)
{
	const struct global *class, *dtype = count > 6 ? global_of(values[6]) : NULL;
	struct pickle_tensor tensor;
	int err;

	*ret_value = VALUE_OTHER;
	if (count < 4 || value_kind(values[0]) != VALUE_STORAGE || value_kind(values[1]) != VALUE_INT ||
	    value_int(values[1]) < 0 || measure(pickle, values[2], values[3], &tensor.elements, &tensor.size))
		return 0;
	class = &globals[value_number(values[0]) >> STORAGE_DTYPE];
	if (dtype && dtype->use == USE_DTYPE)
		class = dtype;
	if (!class->bytes || __builtin_mul_overflow(value_number(values[1]), class->bytes, &tensor.offset) ||
	    __builtin_mul_overflow(tensor.size, class->bytes, &tensor.size))
		return 0;
	tensor.storage = value_number(values[0]) & ((UINT64_C(1) << STORAGE_DTYPE) - 1);
	tensor.dtype = class->dtype;
	*ret_value = value_make(VALUE_TENSOR, pickle->tensors.count);
	err = array_add(pickle, &pickle->tensors, sizeof(tensor), &tensor);
	return err;
}

static int make_object(struct pickle *pickle, uint64_t arguments, uint64_t *ret_value)
{
	uint64_t count, node;
	int err = node_push(pickle);

	if (!err)
		err = value_pop(pickle, &node);
	if (err)
		return err;
	/* What an object was made from may be all there is of its tensors. */
	tuple_values(pickle, arguments, &count);
	if (count)
		err = node_put(pickle, node, value_make(VALUE_SILENT, 0), arguments, false);
	*ret_value = node;
	return err;
}

int torch_call(struct pickle *pickle, uint64_t function, uint64_t arguments, uint64_t *ret_value)
{
	const struct global *global = global_of(function);
	uint64_t count;
	const uint64_t *values = tuple_values(pickle, arguments, &count);
	int forwards = FORWARDS;

	/* (function, type, arguments, state) */
	while (global && global->use == USE_CALL && count >= 3 && forwards--) {
		global = global_of(values[0]);
		arguments = values[2];
		values = tuple_values(pickle, arguments, &count);
	}
	if (global && global->use == USE_TENSOR)
		return make_tensor(pickle, values, count, ret_value);
	if (global && global->use == USE_INNER && count && value_kind(values[0]) == VALUE_TENSOR) {
		*ret_value = values[0];
		return 0;
	}
	return make_object(pickle, arguments, ret_value);
}
