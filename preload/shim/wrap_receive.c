/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Receiving: the kernel writes where SPARKTRACE_RELIEF may have taken the permission. Otherwise only passed on. For
 * other calls that write into memory (getrandom, process_vm_readv, ioctl) a relieved page is what it is: read-only.
 */
#include "export.h"
#include "peek.h"
#include "real.h"
#include "relief.h"

#include <sys/socket.h>

#include "banned.h"

EXPORT ssize_t recv(int fd, void *to, size_t size, int flags)
{
	return real()->recv(fd, relief_target(to, size), size, flags);
}

EXPORT ssize_t recvfrom(int fd, void *to, size_t size, int flags, __SOCKADDR_ARG address, socklen_t *length)
{
	return real()->recvfrom(fd, relief_target(to, size), size, flags, address.__sockaddr__, length);
}

EXPORT ssize_t recvmsg(int fd, struct msghdr *message, int flags)
{
	if (relief_any() && sys_readable_bytes(message, sizeof(*message)))
		relief_vector(message->msg_iov, message->msg_iovlen);
	return real()->recvmsg(fd, message, flags);
}

ssize_t __recv_chk(int fd, void *to, size_t size, size_t room, int flags);
ssize_t __recvfrom_chk(int fd, void *to, size_t size, size_t room, int flags, __SOCKADDR_ARG address,
                       socklen_t *length);

EXPORT ssize_t __recv_chk(int fd, void *to, size_t size, size_t room, int flags)
{
	return real()->__recv_chk(fd, relief_target(to, size), size, room, flags);
}

EXPORT ssize_t __recvfrom_chk(int fd, void *to, size_t size, size_t room, int flags, __SOCKADDR_ARG address,
                              socklen_t *length)
{
	return real()->__recvfrom_chk(fd, relief_target(to, size), size, room, flags, address.__sockaddr__,
	                              length);
}
