/* The main thread waits half a second late for a lock or a descriptor, if it means to wait for longer than
 * ten: as if it were not scheduled between the last look at Python's signals and the wait. With LATE_SPAWN
 * it hears half a second late that a command was started. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <semaphore.h>
#include <spawn.h>
#include <stdlib.h>
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

int posix_spawn(pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions,
                const posix_spawnattr_t *attributes, char *const words[], char *const variables[])
{
    int failed = ((int (*)(pid_t *, const char *, const posix_spawn_file_actions_t *, const posix_spawnattr_t *,
                           char *const[], char *const[]))dlsym(RTLD_NEXT, "posix_spawn"))(
        pid, path, actions, attributes, words, variables);

    if (getenv("LATE_SPAWN"))
        late(11);
    return failed;
}
