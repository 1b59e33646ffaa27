/* Every way to call the interface wrongly must return at once and leave the program running. */
#define _POSIX_C_SOURCE 199309L
#include <discnice.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <time.h>

static int failures;

static void expect(const char *what, int got, int wanted)
{
    if (got != wanted) {
        printf("%s: got %d, wanted %d\n", what, got, wanted);
        failures++;
    }
}

/* Until a testpoint is not too soon after the last one. */
static void later(void)
{
    struct timespec time = {0, 150000000};
    nanosleep(&time, NULL);
}

int main(void)
{
    double metrics[17] = {1.0};
    double bad[1] = {NAN};

    expect("negative count", discnice_testpoint(0, -1, metrics), DISCNICE_INVALID);
    expect("no metrics", discnice_testpoint(0, 0, metrics), DISCNICE_INVALID);
    expect("too many", discnice_testpoint(0, 17, metrics), DISCNICE_INVALID);
    expect("negative index", discnice_testpoint(-3, 1, metrics), DISCNICE_INVALID);
    expect("null", discnice_testpoint(0, 1, NULL), DISCNICE_INVALID);
    expect("null name", discnice_set_job_name(NULL), DISCNICE_INVALID);
    expect("name not UTF-8", discnice_set_job_name("\xff"), DISCNICE_INVALID);
    expect("name", discnice_set_job_name("bad arguments"), 0);
    expect("null settings", discnice_configure(NULL), DISCNICE_INVALID);
    expect("unknown", discnice_configure("gamma=1"), DISCNICE_INVALID);
    expect("no number", discnice_configure("alpha=much"), DISCNICE_INVALID);
    expect("unstable", discnice_configure("alpha=0.3 beta=0.2"), DISCNICE_INVALID);
    expect("settings", discnice_configure("hung=1, probation=0"), 0);
    expect("again", discnice_configure("hung=2"), DISCNICE_TOO_LATE);
    discnice_set_priority(-5);
    discnice_set_resources(0);
    discnice_set_critical(true);
    expect("not a number", discnice_testpoint(0, 1, bad), DISCNICE_SKIPPED);
    expect("too soon", discnice_testpoint(0, 1, metrics), DISCNICE_TOO_SOON);
    later();
    expect("two sizes", discnice_testpoint(0, 2, metrics), DISCNICE_SKIPPED);
    later();
    expect("the first one", discnice_testpoint(0, 1, metrics), DISCNICE_SKIPPED);
    later();
    metrics[0] = 0.5;
    expect("backwards", discnice_testpoint(0, 1, metrics), DISCNICE_SKIPPED);
    later();
    metrics[0] = 1.0;
    expect("progress", discnice_testpoint(0, 1, metrics), DISCNICE_WENT);
    /* Without the setting, 10 s would be needed to be taken for hung. */
    for (int i = 0; i < 8; i++)
        later();
    metrics[0] = 2.0;
    expect("hung", discnice_testpoint(0, 1, metrics), DISCNICE_SKIPPED);
    expect("after a testpoint", discnice_configure("hung=2"), DISCNICE_TOO_LATE);
    discnice_flush();
    return failures != 0;
}
