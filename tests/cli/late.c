/* The main thread waits half a second late for a lock or a descriptor, if it means to wait for longer than
 * ten: as if it were not scheduled between the last look at Python's signals and the wait. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <semaphore.h>
#include <time.h>
#include <unistd.h>

static void late(long long seconds)
{
    struct timespec rest = {0, 500 * 1000 * 1000};
    int before = errno;

    if (gettid() == getpid() && seconds > 10)
        while (nanosleep(&rest, &rest))
            ;
    errno = before;
}

int sem_clockwait(sem_t *lock, clockid_t clock, const struct timespec *until)
{
    struct timespec now;

    clock_gettime(clock, &now);
    late(until->tv_sec - now.tv_sec);
    return ((int (*)(sem_t *, clockid_t, const struct timespec *))dlsym(RTLD_NEXT, "sem_clockwait"))(
        lock, clock, until);
}

int poll(struct pollfd *files, nfds_t count, int milliseconds)
{
    late(milliseconds / 1000);
    return ((int (*)(struct pollfd *, nfds_t, int))dlsym(RTLD_NEXT, "poll"))(files, count, milliseconds);
}
