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

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* DISCNICE_H */
