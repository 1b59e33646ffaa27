/* The gray toolbox as a C program uses it: FOLDER, one whose files may be rewritten. */
#include <discnice.h>

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stddef.h>

static void measured(void)
{
    uint64_t start = discnice_timer_nanos(), now;

    do
        now = discnice_timer_nanos();
    while (now == start);
    assert(now > start && now - start < 1000000000);
}

//= gray-box/5-statistics
static void counted(void)
{
    DiscniceStats stats = {0};
    double values[] = {2, 4, 4, 4, 5, 5, 7, 9}, x[] = {1, 2, 3}, y[] = {-2, -4, -6};
    double noisy[] = {10, 11, 1000, 9, 10, 11, 9};
    size_t at;

    for (at = 0; at < 8; at++)
        discnice_stats_push(&stats, values[at]);
    assert(stats.count == 8 && stats.mean == 5.0 && stats.least == 2 && stats.greatest == 9);
    assert(fabs(discnice_stats_deviation(&stats) - sqrt(32.0 / 7.0)) < 1e-12);
    assert(discnice_median(values, 8) == 4.5 && isnan(discnice_median(values, 0)));
    assert(fabs(discnice_correlation(x, y, 3) + 1.0) < 1e-12);
    assert(isnan(discnice_correlation(x, x, 1)));
    assert(discnice_discard_outliers(noisy, 7, 3.0) == 6 && noisy[2] == 9);
    discnice_stats_push(NULL, 1.0);
    assert(discnice_stats_deviation(NULL) == 0.0 && isnan(discnice_median(NULL, 3)));
    assert(discnice_discard_outliers(NULL, 3, 3.0) == 0);
}

//= gray-box/5-clusters
static void clustered(void)
{
    double times[] = {3, 5000, 4, 5200, 3, 4};
    DiscniceSplit split;

    assert(discnice_cluster(times, 6, &split) && split.low_count == 4);
    assert(split.low_mean == 3.5 && split.high_mean == 5100 && split.explained_frac > 0.99);
    assert(split.cut > 4 && split.cut < 5000);
    assert(!discnice_cluster(times, 1, &split) && !discnice_cluster(NULL, 6, &split));
    assert(!discnice_cluster(times, 6, NULL));
}

//= gray-box/5-refresh
static void refreshed(const char *folder)
{
    DiscniceRefreshed report = {0};

    assert(discnice_refresh(folder, DISCNICE_REFRESH_DRY_RUN, &report) == 0 && report.files == 3);
    assert(discnice_refresh(folder, 0, &report) == 0 && report.files == 3 && report.left == 0);
    assert(discnice_refresh(folder, 0, NULL) == 0);
    assert(discnice_refresh("/", 0, &report) == -EPERM);
    assert(discnice_refresh("/nowhere/at/all", 0, &report) == -ENOENT);
    assert(discnice_refresh(NULL, 0, &report) == -EINVAL && discnice_refresh(folder, 64, NULL) == -EINVAL);
    assert(report.files == 3);
}

int main(int count, char **words)
{
    assert(count == 2);
    measured();
    counted();
    clustered();
    refreshed(words[1]);
    return 0;
}
