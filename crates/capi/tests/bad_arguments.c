/* Every way to call the interface wrongly must return at once and leave the program running. */
#include <discnice.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>

static int failures;

static void expect(const char *what, int got, int wanted)
{
    if (got != wanted) {
        printf("%s: got %d, wanted %d\n", what, got, wanted);
        failures++;
    }
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
    discnice_set_priority(-5);
    discnice_set_resources(0);
    discnice_set_critical(true);
    expect("not a number", discnice_testpoint(0, 1, bad), DISCNICE_SKIPPED);
    expect("too soon", discnice_testpoint(0, 1, metrics), DISCNICE_TOO_SOON);
    discnice_flush();
    return failures != 0;
}
