/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The simulated runtime, libcudart.so.13. Like the real one it knows the driver only through
 * dlopen("libcuda.so.1"), one dlsym of cuGetProcAddress_v2, and what that answers, twice: for the legacy
 * default stream and for the calling thread's own.
 *
 *	entry.c		loading, the current context, last error
 *	device.c	devices and their properties
 *	memory.c	allocation, pools, pointers
 *	copy.c		copies and sets
 *	stream.c	streams and events
 *	kernel.c	registration and launches, which do nothing
 */
#ifndef SIMCUDA_RT_H
#define SIMCUDA_RT_H

#define __CUDA_API_VERSION_INTERNAL /* declares every version of every entry under its own name */
#include <cuda.h>
#include <cuda_runtime_api.h>

#define RT_VERSION 13000

/* What the runtime asks the driver for: field, base name, CUDA version, the export whose type it has. */
#define RT_DRIVER(D)                                                                                 \
	D(init, cuInit, 2000, cuInit)                                                                \
	D(driver_version, cuDriverGetVersion, 2020, cuDriverGetVersion)                              \
	D(device_count, cuDeviceGetCount, 2000, cuDeviceGetCount)                                    \
	D(device_name, cuDeviceGetName, 2000, cuDeviceGetName)                                       \
	D(device_uuid, cuDeviceGetUuid, 11040, cuDeviceGetUuid_v2)                                   \
	D(device_total, cuDeviceTotalMem, 3020, cuDeviceTotalMem_v2)                                 \
	D(device_attribute, cuDeviceGetAttribute, 2000, cuDeviceGetAttribute)                        \
	D(device_pci, cuDeviceGetPCIBusId, 4010, cuDeviceGetPCIBusId)                                \
	D(device_by_pci, cuDeviceGetByPCIBusId, 4010, cuDeviceGetByPCIBusId)                         \
	D(device_peer, cuDeviceCanAccessPeer, 4000, cuDeviceCanAccessPeer)                           \
	D(primary_retain, cuDevicePrimaryCtxRetain, 7000, cuDevicePrimaryCtxRetain)                  \
	D(primary_reset, cuDevicePrimaryCtxReset, 11000, cuDevicePrimaryCtxReset_v2)                 \
	D(primary_flags, cuDevicePrimaryCtxSetFlags, 11000, cuDevicePrimaryCtxSetFlags_v2)           \
	D(context_get, cuCtxGetCurrent, 4000, cuCtxGetCurrent)                                       \
	D(context_set, cuCtxSetCurrent, 4000, cuCtxSetCurrent)                                       \
	D(context_sync, cuCtxSynchronize, 2000, cuCtxSynchronize)                                    \
	D(context_priorities, cuCtxGetStreamPriorityRange, 5050, cuCtxGetStreamPriorityRange)        \
	D(limit_set, cuCtxSetLimit, 3010, cuCtxSetLimit)                                             \
	D(limit_get, cuCtxGetLimit, 3010, cuCtxGetLimit)                                             \
	D(resolve_v1, cuGetProcAddress, 11030, cuGetProcAddress)                                     \
	D(resolve, cuGetProcAddress, 12000, cuGetProcAddress_v2)                                     \
	D(mem_info, cuMemGetInfo, 3020, cuMemGetInfo_v2)                                             \
	D(mem_alloc, cuMemAlloc, 3020, cuMemAlloc_v2)                                                \
	D(mem_alloc_pitch, cuMemAllocPitch, 3020, cuMemAllocPitch_v2)                                \
	D(mem_alloc_managed, cuMemAllocManaged, 6000, cuMemAllocManaged)                             \
	D(mem_free, cuMemFree, 3020, cuMemFree_v2)                                                   \
	D(host_alloc, cuMemHostAlloc, 2020, cuMemHostAlloc)                                          \
	D(host_free, cuMemFreeHost, 2000, cuMemFreeHost)                                             \
	D(host_register, cuMemHostRegister, 6050, cuMemHostRegister_v2)                              \
	D(host_unregister, cuMemHostUnregister, 4000, cuMemHostUnregister)                           \
	D(host_pointer, cuMemHostGetDevicePointer, 3020, cuMemHostGetDevicePointer_v2)               \
	D(host_flags, cuMemHostGetFlags, 2030, cuMemHostGetFlags)                                    \
	D(alloc_async, cuMemAllocAsync, 11020, cuMemAllocAsync)                                      \
	D(alloc_from_pool, cuMemAllocFromPoolAsync, 11020, cuMemAllocFromPoolAsync)                  \
	D(free_async, cuMemFreeAsync, 11020, cuMemFreeAsync)                                         \
	D(pool_create, cuMemPoolCreate, 11020, cuMemPoolCreate)                                      \
	D(pool_destroy, cuMemPoolDestroy, 11020, cuMemPoolDestroy)                                   \
	D(pool_trim, cuMemPoolTrimTo, 11020, cuMemPoolTrimTo)                                        \
	D(pool_set, cuMemPoolSetAttribute, 11020, cuMemPoolSetAttribute)                             \
	D(pool_get, cuMemPoolGetAttribute, 11020, cuMemPoolGetAttribute)                             \
	D(pool_access, cuMemPoolSetAccess, 11020, cuMemPoolSetAccess)                                \
	D(pool_default, cuDeviceGetDefaultMemPool, 11020, cuDeviceGetDefaultMemPool)                 \
	D(pool_current, cuDeviceGetMemPool, 11020, cuDeviceGetMemPool)                               \
	D(pool_choose, cuDeviceSetMemPool, 11020, cuDeviceSetMemPool)                                \
	D(graph_mem_get, cuDeviceGetGraphMemAttribute, 11040, cuDeviceGetGraphMemAttribute)          \
	D(graph_mem_set, cuDeviceSetGraphMemAttribute, 11040, cuDeviceSetGraphMemAttribute)          \
	D(graph_mem_trim, cuDeviceGraphMemTrim, 11040, cuDeviceGraphMemTrim)                         \
	D(array_create, cuArray3DCreate, 3020, cuArray3DCreate_v2)                                   \
	D(array_destroy, cuArrayDestroy, 2000, cuArrayDestroy)                                       \
	D(pointer_attributes, cuPointerGetAttributes, 7000, cuPointerGetAttributes)                  \
	D(prefetch, cuMemPrefetchAsync, 12020, cuMemPrefetchAsync_v2)                                \
	D(advise, cuMemAdvise, 12020, cuMemAdvise_v2)                                                \
	D(copy, cuMemcpy, 4000, cuMemcpy)                                                            \
	D(copy_async, cuMemcpyAsync, 4000, cuMemcpyAsync)                                            \
	D(copy_htod, cuMemcpyHtoD, 3020, cuMemcpyHtoD_v2)                                            \
	D(copy_dtoh, cuMemcpyDtoH, 3020, cuMemcpyDtoH_v2)                                            \
	D(copy_dtod, cuMemcpyDtoD, 3020, cuMemcpyDtoD_v2)                                            \
	D(copy_htod_async, cuMemcpyHtoDAsync, 3020, cuMemcpyHtoDAsync_v2)                            \
	D(copy_dtoh_async, cuMemcpyDtoHAsync, 3020, cuMemcpyDtoHAsync_v2)                            \
	D(copy_dtod_async, cuMemcpyDtoDAsync, 3020, cuMemcpyDtoDAsync_v2)                            \
	D(copy_2d, cuMemcpy2DUnaligned, 3020, cuMemcpy2DUnaligned_v2)                                \
	D(copy_2d_async, cuMemcpy2DAsync, 3020, cuMemcpy2DAsync_v2)                                  \
	D(copy_batch, cuMemcpyBatchAsync, 13000, cuMemcpyBatchAsync_v2)                              \
	D(copy_peer_async, cuMemcpyPeerAsync, 4000, cuMemcpyPeerAsync)                               \
	D(set, cuMemsetD8, 3020, cuMemsetD8_v2)                                                      \
	D(set_async, cuMemsetD8Async, 3020, cuMemsetD8Async)                                         \
	D(stream_create, cuStreamCreateWithPriority, 5050, cuStreamCreateWithPriority)               \
	D(stream_destroy, cuStreamDestroy, 4000, cuStreamDestroy_v2)                                 \
	D(stream_sync, cuStreamSynchronize, 2000, cuStreamSynchronize)                               \
	D(stream_query, cuStreamQuery, 2000, cuStreamQuery)                                          \
	D(stream_wait, cuStreamWaitEvent, 3020, cuStreamWaitEvent)                                   \
	D(stream_priority, cuStreamGetPriority, 5050, cuStreamGetPriority)                           \
	D(stream_flags, cuStreamGetFlags, 5050, cuStreamGetFlags)                                    \
	D(stream_capturing, cuStreamIsCapturing, 10000, cuStreamIsCapturing)                         \
	D(stream_capture, cuStreamGetCaptureInfo, 12030, cuStreamGetCaptureInfo_v3)                  \
	D(stream_callback, cuStreamAddCallback, 5000, cuStreamAddCallback)                           \
	D(capture_mode, cuThreadExchangeStreamCaptureMode, 10010, cuThreadExchangeStreamCaptureMode) \
	D(host_function, cuLaunchHostFunc, 10000, cuLaunchHostFunc)                                  \
	D(event_create, cuEventCreate, 2000, cuEventCreate)                                          \
	D(event_destroy, cuEventDestroy, 4000, cuEventDestroy_v2)                                    \
	D(event_record, cuEventRecord, 2000, cuEventRecord)                                          \
	D(event_record_flags, cuEventRecordWithFlags, 11010, cuEventRecordWithFlags)                 \
	D(event_query, cuEventQuery, 2000, cuEventQuery)                                             \
	D(event_sync, cuEventSynchronize, 2000, cuEventSynchronize)                                  \
	D(event_elapsed, cuEventElapsedTime, 2000, cuEventElapsedTime)                               \
	D(launch, cuLaunchKernel, 4000, cuLaunchKernel)                                              \
	D(launch_cooperative, cuLaunchCooperativeKernel, 9000, cuLaunchCooperativeKernel)            \
	D(profiler_start, cuProfilerStart, 4000, cuProfilerStart)                                    \
	D(profiler_stop, cuProfilerStop, 4000, cuProfilerStop)

/* Of profiler headers that the packages of PyPI do not have. */
CUresult cuProfilerStart(void);
CUresult cuProfilerStop(void);
cudaError_t cudaProfilerStart(void);
cudaError_t cudaProfilerStop(void);

struct rt_driver {
#define D(field, base, version, type) __typeof__(&type) field;
	RT_DRIVER(D)
#undef D
};

extern const struct rt_driver *const rt_legacy, *const rt_per_thread;
#define rt rt_legacy

/* Loads the driver, once. cudaErrorInsufficientDriver: there is none. */
cudaError_t rt_load(void);
/* Loads the driver and makes the primary context current where the thread has none. */
cudaError_t rt_enter(void);
/* Keeps a failure as the thread's last error, and returns it. Results have the same numbers in both. */
cudaError_t rt_done(int result);

#define RT_ENTER()                                   \
	do {                                         \
		cudaError_t rt_entered = rt_enter(); \
		if (rt_entered != cudaSuccess)       \
			return rt_entered;           \
	} while (0)

#endif
