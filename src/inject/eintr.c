/* SPDX-License-Identifier: MIT */
/*
 * The system calls that return EINTR to a thread which a tracer stopped.
 *
 * Nearly all blocking calls end with one of the kernel's ERESTART codes when
 * they are woken without a signal for the program, and go on by themselves.
 * Those below say EINTR at once.  Each has had no effect when it does so
 * (a partial transfer returns its length instead), so executing it again is
 * right; a relative timeout then starts anew.  close() is absent on purpose:
 * its descriptor is gone when it says EINTR.  ioctl() too: drivers differ.
 */
#include "inject/internal.h"

#include <sys/syscall.h>

bool eintr_restartable(long nr)
{
	switch (nr) {
#ifdef SYS_epoll_wait
	case SYS_epoll_wait:
#endif
	case SYS_epoll_pwait:
#ifdef SYS_epoll_pwait2
	case SYS_epoll_pwait2:
#endif
	case SYS_semop:
	case SYS_semtimedop:
	case SYS_rt_sigtimedwait:
	case SYS_io_getevents:
#ifdef SYS_io_pgetevents
	case SYS_io_pgetevents:
#endif
#ifdef SYS_io_uring_enter
	case SYS_io_uring_enter: /* EINTR only if nothing was submitted */
#endif
	case SYS_fallocate: /* tmpfs */
	/* sockets with SO_RCVTIMEO or SO_SNDTIMEO, under all their names */
	case SYS_accept:
	case SYS_accept4:
	case SYS_connect: /* again: waits on for the same connection */
	case SYS_recvfrom:
	case SYS_recvmsg:
	case SYS_recvmmsg:
	case SYS_sendto:
	case SYS_sendmsg:
	case SYS_sendmmsg:
	case SYS_sendfile:
	case SYS_read:
	case SYS_write:
	case SYS_readv:
	case SYS_writev:
		return true;
	}
	return false;
}
