/* A wall clock that a test sets: the seconds in the file that FALSE_CLOCK names are added to it, and to
 * no other clock. libfaketime 0.9.10 cannot be used: with it every clock_nanosleep() to a moment of the
 * monotonic clock, which is how Python 3.11 and later sleep, fails with EINVAL. */

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static long offset(void)
{
    char text[32] = "";
    const char *path = getenv("FALSE_CLOCK");
    int before = errno, file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;

    if (file >= 0) {
        if (read(file, text, sizeof(text) - 1) < 0)
            text[0] = '\0';
        close(file);
    }
    errno = before;
    return atol(text);
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
    int failed = (int)syscall(SYS_clock_gettime, clock, now);

    if (!failed && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
        now->tv_sec += offset();
    return failed;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone)
{
    struct timespec exact;

    (void)zone;
    clock_gettime(CLOCK_REALTIME, &exact);
    now->tv_sec = exact.tv_sec;
    now->tv_usec = exact.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *now)
{
    struct timespec exact;

    clock_gettime(CLOCK_REALTIME, &exact);
    if (now)
        *now = exact.tv_sec;
    return exact.tv_sec;
}
