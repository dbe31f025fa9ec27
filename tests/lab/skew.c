// Preloaded into a program under test: its wall clock is wrong by SKEW_SECONDS, as on a machine whose clock was set by
// hand. Clocks that count from some start are left alone. Nothing in the product knows of it.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>

static long skew(void) {
  const char* seconds = getenv("SKEW_SECONDS");
  return seconds ? atol(seconds) : 0;
}

int clock_gettime(clockid_t clock, struct timespec* now) {
  static int (*real)(clockid_t, struct timespec*);
  if (!real) *(void**)(&real) = dlsym(RTLD_NEXT, "clock_gettime");
  const int result = real(clock, now);
  if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) now->tv_sec += skew();
  return result;
}

int gettimeofday(struct timeval* restrict now, void* restrict zone) {
  static int (*real)(struct timeval*, void*);
  if (!real) *(void**)(&real) = dlsym(RTLD_NEXT, "gettimeofday");
  const int result = real(now, zone);
  if (result == 0) now->tv_sec += skew();
  return result;
}

time_t time(time_t* at) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (at) *at = now.tv_sec;
  return now.tv_sec;
}
