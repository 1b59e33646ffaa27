/* A child that is forked while another thread saves has no such thread, and must not wait for it. */
#define _POSIX_C_SOURCE 200809L
#include <discnice.h>
#include <glob.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Until a testpoint is not too soon after the last one. */
static void later(void)
{
    struct timespec time = {0, 300000000};
    nanosleep(&time, NULL);
}

static void *save(void *unused)
{
    discnice_flush();
    return unused;
}

int main(void)
{
    double done = 1.0;
    char pattern[4096];
    glob_t found;
    pthread_t thread;
    int status;

    discnice_testpoint(0, 1, &done);
    discnice_flush();
    snprintf(pattern, sizeof pattern, "%s/discnice/targets/*.targets", getenv("XDG_STATE_HOME"));
    if (glob(pattern, 0, NULL, &found) != 0 || found.gl_pathc != 1)
        return 2;
    /* To open a pipe for writing waits for a reader. */
    strcpy(strstr(found.gl_pathv[0], ".targets"), ".draft");
    if (mkfifo(found.gl_pathv[0], 0600) != 0 || pthread_create(&thread, NULL, save, NULL) != 0)
        return 3;
    later();
    if (fork() == 0) {
        alarm(20);
        done = 2.0;
        discnice_testpoint(0, 1, &done);
        discnice_set_job_name("child");
        discnice_flush();
        exit(0);
    }
    wait(&status);
    _exit(status == 0 ? 0 : 1);
}
