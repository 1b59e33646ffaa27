/* DiscNice: testpoints for polite jobs, and what the kernel hides of its cache, disk and memory.
   Generated from crates/capi/src; do not edit. */

#ifndef DISCNICE_H
#define DISCNICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 The job goes on at once.
 */
#define DISCNICE_WENT 0

/*
 Too soon after the last testpoint: nothing was looked at.
 */
#define DISCNICE_TOO_SOON 1

/*
 The job lagged behind its target and was suspended; it may go on now.
 */
#define DISCNICE_SUSPENDED 2

/*
 The job is on probation and waited for its share of time; it may go on now.
 */
#define DISCNICE_HELD 3

/*
 The report taught nothing (first of its set, no progress, a counter that went backwards or is not a
 number, a set with another number of metrics than before); the job goes on.
 */
#define DISCNICE_SKIPPED 4

/*
 Settings were made after the first testpoint, or a second time; they change nothing.
 */
#define DISCNICE_TOO_LATE -2

/*
 An argument was refused (a negative index or count, a null pointer); the job goes on.
 */
#define DISCNICE_INVALID -1

/*
 Exact, by cachestat(2).
 */
#define DISCNICE_CACHESTAT 0

/*
 Exact, by mincore(2).
 */
#define DISCNICE_MINCORE 1

/*
 By timed accesses to one byte in every 4 MB.
 */
#define DISCNICE_PROBE 2

/*
 Not found out: another user's file, too small to probe.
 */
#define DISCNICE_UNKNOWN 3

/*
 Most cached files first.
 */
#define DISCNICE_BY_CACHED 0

/*
 As the files lie on the disk.
 */
#define DISCNICE_BY_LAYOUT 1

/*
 The cached files, then the others, each as they lie on the disk.
 */
#define DISCNICE_BY_COMPOSE 2

/*
 Only says what would be done.
 */
#define DISCNICE_REFRESH_DRY_RUN 1

/*
 Also separates files with one name inside from their hard links outside, and takes files of which it cannot be
 told whether they are in use.
 */
#define DISCNICE_REFRESH_FORCE 2

/*
 A part of a file, and how many of its bytes are cached.
 */
typedef struct DiscniceRegion {
  /*
   First byte.
   */
  uint64_t offset;
  /*
   Bytes; never 0.
   */
  uint64_t length;
  /*
   Bytes that are cached, at most `length`.
   */
  uint64_t cached_bytes;
} DiscniceRegion;

/*
 A part of one of several files.
 */
typedef struct DiscnicePiece {
  /*
   Index of its file among the paths.
   */
  size_t file;
  /*
   First byte.
   */
  uint64_t offset;
  /*
   Bytes; never 0.
   */
  uint64_t length;
  /*
   Bytes that are cached, at most `length`.
   */
  uint64_t cached_bytes;
} DiscnicePiece;

/*
 Statistics of values that come one at a time, in constant space. All zero before the first.
 */
typedef struct DiscniceStats {
  /*
   How many values there were.
   */
  uint64_t count;
  /*
   Their mean.
   */
  double mean;
  /*
   Sum of the squares of their differences from the mean.
   */
  double squares;
  /*
   The least.
   */
  double least;
  /*
   The greatest.
   */
  double greatest;
} DiscniceStats;

/*
 Two clusters of values.
 */
typedef struct DiscniceSplit {
  /*
   How many values are in the low one; neither is empty.
   */
  size_t low_count;
  /*
   Values at or below this are in the low one.
   */
  double cut;
  /*
   Mean of the low one.
   */
  double low_mean;
  /*
   Mean of the high one.
   */
  double high_mean;
  /*
   Share of the variance that the split explains. Noise of a single cluster explains about two thirds.
   */
  double explained_frac;
} DiscniceSplit;

/*
 What a refresh did, or would do.
 */
typedef struct DiscniceRefreshed {
  /*
   Files rewritten.
   */
  uint64_t files;
  /*
   Bytes that they take on the disk.
   */
  uint64_t bytes;
  /*
   Members that were left as they are.
   */
  uint64_t left;
  /*
   Something that another program changed meanwhile is kept beside the directory.
   */
  bool kept;
} DiscniceRefreshed;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/*
 Reports progress and returns when it is fine to go on.

 `index` names the set of metrics, such as a phase of the job; `count` is the number of metrics of
 this set, 1 to 16, always the same for an index; `metrics` holds cumulative counters.

 Returns one of the `DISCNICE_` outcomes. The caller may ignore it.

 # Safety
 `metrics` is null or points to `count` readable doubles.
 */
int discnice_testpoint(int index, int count, const double *metrics);

/*
 Sets the calling thread's priority relative to other polite threads of the user: one with 200 gets
 twice the time of one with 100, which is the default. Below 1 counts as 1.
 */
void discnice_set_priority(int priority);

/*
 Declares the resources that the calling thread uses, one bit each, by a convention among the
 user's jobs. Polite threads without a common bit may run side by side. 0, the default, is everything.
 */
void discnice_set_resources(uint64_t bits);

/*
 With true, the calling thread's testpoints never wait, until set to false again.
 */
void discnice_set_critical(bool critical);

/*
 Sets parameters of the regulation for this process, once and before its first testpoint; all of them or
 none.

 `settings` is a text such as `"alpha=0.02 beta=0.2 hung=60"`. The parameters are `alpha`, the probability
 of suspending a job that is not disturbed (0.05); `beta`, that of letting a job that is disturbed go on
 (0.2), above alpha and below 0.5; `false-stop-hours`, the hours between two suspensions of a job that
 nothing disturbs, at least, on average, or 0 for the paper's sign test alone (1); `average-over`, the testpoints over which targets are averaged (10000);
 `hung`, the seconds after which a thread that makes no testpoint no longer keeps its turn, and is not judged
 (10); `probation`, the seconds for which a job without known targets runs only part of the time (3600).

 Returns 0, `DISCNICE_INVALID` for a null pointer or settings that cannot be used, or `DISCNICE_TOO_LATE`.

 # Safety
 `settings` is null or points to a text that ends in a zero byte.
 */
int discnice_configure(const char *settings);

/*
 Names the job, where one executable runs many. Targets are kept for each name. Returns 0, or
 `DISCNICE_INVALID` for a null pointer or a text that is not UTF-8.

 # Safety
 `name` is null or points to a text that ends in a zero byte.
 */
int discnice_set_job_name(const char *name);

/*
 Saves the targets now. Needed only by a program that ends without exit(3).
 */
void discnice_flush(void);

/*
 Finds out which parts of the regular file open at `fd` are in the page cache.

 Writes up to `capacity` regions to `regions`, in file order and without overlap, and to `*count` how
 many there are in all: if that is more, call again with room for them. Pass a null pointer and 0
 to learn only the number. If probes are needed, the descriptor's open file loses its
 read-ahead: open one for this.

 Returns how it was found out (`DISCNICE_CACHESTAT` …; `DISCNICE_UNKNOWN` gives no regions), or the
 negative of an errno(3) number, and then writes nothing.

 # Safety
 `regions` is null or has room for `capacity` regions; `count` is null or points to a number.
 */
int discnice_residency(int fd,
                       struct DiscniceRegion *regions,
                       size_t capacity,
                       size_t *count);

/*
 Puts files into the order in which reading them costs the least disk.

 `paths` holds `count` file names, `by` is one of the `DISCNICE_BY_` numbers. Writes to `order` the
 indices of `paths`, best first, and to `*ordered` how many they are: files that cannot be looked
 at are left out. Returns 0 or the negative of an errno(3) number, and then writes nothing.

 # Safety
 `paths` points to `count` texts that end in a zero byte, `order` to room for `count` numbers,
 `ordered` to a number.
 */
int discnice_order(const char *const *paths, size_t count, int by, size_t *order, size_t *ordered);

/*
 Lists the parts of files in the order in which reading them costs the least disk: those in the cache
 first, then the others as the files lie on the disk. Each byte of each file is in one part.

 `paths` holds `count` file names. A part has about `unit` bytes; 0 chooses what the disk of the file needs
 to make up for a seek, as `discnice calibrate` has measured it, else 1 MiB. Parts begin and end at multiples of
 `align` bytes, the length of a record (0 counts as 1); what is left of a record at the end of a file comes
 last. Files that cannot be looked at are left out.

 Writes to `*pieces` an array that the caller gives back by `free(3)`, null if there are none, and to
 `*planned` how many there are. Returns 0 or the negative of an errno(3) number, and then writes nothing.

 # Safety
 `paths` points to `count` texts that end in a zero byte, `pieces` to a pointer's room and `planned` to a
 number's.
 */
int discnice_plan(const char *const *paths,
                  size_t count,
                  uint64_t unit,
                  uint64_t align,
                  struct DiscnicePiece **pieces,
                  size_t *planned);

/*
 Orders parts that the caller has cut, as `discnice_plan` does: those in the cache first.

 `paths` holds `count` file names; `file`, `offset` and `length` of the `*planned` pieces are given, `cached_bytes`
 is found out. What lies beyond the end of its file is cut off. Parts of which nothing remains, and those
 of files that cannot be looked at, are left out: `*planned` says how many there are then. Returns 0 or the negative of
 an errno(3) number, and then writes nothing.

 # Safety
 `paths` points to `count` texts that end in a zero byte, `planned` to a number, `pieces` to as many pieces.
 */
int discnice_order_pieces(const char *const *paths,
                          size_t count,
                          struct DiscnicePiece *pieces,
                          size_t *planned);

/*
 Allocates between `min` and `max` bytes, in multiples of `multiple`, as many as fit into memory without
 paging, and writes their number to `*bytes`. The memory is zero and starts on a page.

 Returns null, and sets errno(3), if less than `min` is there now (`EAGAIN`: ask again after a
 pause), for a senseless demand (`EINVAL`), or where the promises of this user cannot be kept.

 # Safety
 `bytes` is null or points to a number.
 */
void *discnice_gb_alloc(size_t min,
                        size_t max,
                        size_t multiple,
                        size_t *bytes);

/*
 Gives memory from `discnice_gb_alloc` back. Null, and anything else that did not come from there,
 is let be.

 # Safety
 The memory is no longer in use.
 */
void discnice_gb_free(void *start);

/*
 Nanoseconds since some moment of this process, by the cheapest clock that is fine enough: the processor's
 time stamp counter where the kernel trusts it. Only differences mean something.
 */
uint64_t discnice_timer_nanos(void);

/*
 Takes in one more value. Nothing happens for a null pointer.

 # Safety
 `stats` is null or points to statistics.
 */
void discnice_stats_push(struct DiscniceStats *stats, double value);

/*
 The sample standard deviation; 0 of fewer than two values and of a null pointer.

 # Safety
 `stats` is null or points to statistics.
 */
double discnice_stats_deviation(const struct DiscniceStats *stats);

/*
 The median of `count` values; not a number of none.

 # Safety
 `values` points to `count` readable doubles.
 */
double discnice_median(const double *values, size_t count);

/*
 Pearson's correlation of `count` pairs, from -1 to 1; not a number if one side never varies.

 # Safety
 `x` and `y` point to `count` readable doubles each.
 */
double discnice_correlation(const double *x, const double *y, size_t count);

/*
 Leaves in `values` those within `limit` scaled median absolute deviations of the median, in their order, and
 returns how many they are. With normal noise, 3 keeps 99.7 %.

 # Safety
 `values` points to `count` doubles.
 */
size_t discnice_discard_outliers(double *values,
                                 size_t count,
                                 double limit);

/*
 Splits `count` values into two clusters with the least variance within. Returns true and writes the
 split if there are two different values.

 # Safety
 `values` points to `count` readable doubles, `found` to a split's room.
 */
bool discnice_cluster(const double *values, size_t count, struct DiscniceSplit *found);

/*
 Rewrites the files of a directory and all below it in layout order, as `discnice refresh` does. The directory
 is complete at every moment. `flags` are `DISCNICE_REFRESH_DRY_RUN` and `DISCNICE_REFRESH_FORCE`.

 Returns 0, and writes to `*report` unless that is null, or the negative of an errno(3) number: `EPERM` if the
 directory must not be refreshed (`discnice refresh --dry-run` says why), `EIO` if a copy differed.

 # Safety
 `path` is null or points to a text that ends in a zero byte; `report` is null or points to a report's room.
 */
int discnice_refresh(const char *path,
                     int flags,
                     struct DiscniceRefreshed *report);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* DISCNICE_H */
