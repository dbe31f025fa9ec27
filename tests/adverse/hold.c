// Preloaded into a gateway under test: kills or stops the whole process at a chosen system call, as a power cut or a
// suspended machine would. Nothing in the product knows of it.
//
// Calls that leave a trace outside are events. Their kinds: journal.write, journal.sync, audit.write, audit.sync,
// tallyd.send (a unix socket), upstream.connect, upstream.send (a pipe, or TCP to elsewhere), agent.send (TCP from the
// port in HOLD_DIR/port). Once HOLD_DIR/order is there, with "kill|stop before|after KIND N" in it, events are counted
// and written to HOLD_DIR/trace, and the Nth of the kind is obeyed.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int loaded, obeyed, count, wanted, port;
static char act[16], when[16], kind_wanted[32], folder[512];

static int read_file(const char* name, char* text, size_t size) {
  char path[600];
  snprintf(path, sizeof(path), "%s/%s", folder, name);
  const int fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  const long got = syscall(SYS_read, fd, text, size - 1);
  syscall(SYS_close, fd);
  text[got > 0 ? got : 0] = 0;
  return got > 0;
}

static int load(void) {
  if (loaded) return 1;
  char text[128];
  const char* where = getenv("HOLD_DIR");
  if (!where) return 0;
  snprintf(folder, sizeof(folder), "%s", where);
  if (!read_file("order", text, sizeof(text))) return 0;
  if (sscanf(text, "%15s %15s %31s %d", act, when, kind_wanted, &wanted) != 4) return 0;
  if (read_file("port", text, sizeof(text))) port = atoi(text);
  return loaded = 1;
}

static const char* last_part(const char* path) {
  const char* slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}

// Null: no event.
static const char* kind_of(int fd, const char* what, const struct sockaddr* to) {
  struct stat info;
  if (fstat(fd, &info) != 0) return NULL;
  const int sends = strcmp(what, "write") == 0 || strcmp(what, "send") == 0;
  if (S_ISREG(info.st_mode)) {
    char link[64], path[512];
    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    const ssize_t got = readlink(link, path, sizeof(path) - 1);
    path[got > 0 ? got : 0] = 0;
    const int sync = strcmp(what, "sync") == 0;
    if (strcmp(last_part(path), "journal") == 0) return sync ? "journal.sync" : "journal.write";
    if (strcmp(last_part(path), "audit.jsonl") == 0) return sync ? "audit.sync" : "audit.write";
    return NULL;
  }
  if (S_ISFIFO(info.st_mode)) return sends && fd > 2 ? "upstream.send" : NULL;
  if (!S_ISSOCK(info.st_mode)) return NULL;
  struct sockaddr_in name;
  socklen_t size = sizeof(name);
  if (to) return to->sa_family == AF_INET ? "upstream.connect" : NULL;
  if (getsockname(fd, (struct sockaddr*)&name, &size) != 0) return NULL;
  if (name.sin_family == AF_UNIX) return "tallyd.send";
  if (name.sin_family != AF_INET) return NULL;
  return ntohs(name.sin_port) == port ? "agent.send" : "upstream.send";
}

static void end_all(const char* kind) {
  char line[64];
  char path[600];
  snprintf(path, sizeof(path), "%s/obeyed", folder);
  const int fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  snprintf(line, sizeof(line), "%s\n", kind);
  syscall(SYS_write, fd, line, strlen(line));
  syscall(SYS_close, fd);
  // Of the whole process, all threads.
  syscall(SYS_kill, getpid(), strcmp(act, "kill") == 0 ? SIGKILL : SIGSTOP);
}

static void note(const char* kind) {
  char path[600], line[64];
  snprintf(path, sizeof(path), "%s/trace", folder);
  const int fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  snprintf(line, sizeof(line), "%s\n", kind);
  syscall(SYS_write, fd, line, strlen(line));
  syscall(SYS_close, fd);
}

// True: this one is to be obeyed after the call.
static int before(int fd, const char* what, const struct sockaddr* to) {
  const int saved = errno;
  int after = 0;
  pthread_mutex_lock(&lock);
  const char* kind = load() && !obeyed ? kind_of(fd, what, to) : NULL;
  if (kind) {
    note(kind);
    if (strcmp(kind, kind_wanted) == 0 && ++count == wanted) {
      obeyed = 1;
      if (strcmp(when, "before") == 0) {
        end_all(kind);
      } else {
        after = 1;
      }
    }
  }
  pthread_mutex_unlock(&lock);
  errno = saved;
  return after;
}

static void done(int after) {
  const int saved = errno;
  if (after) end_all(kind_wanted);
  errno = saved;
}

#define REAL(name, result, ...)                            \
  static result (*real)(__VA_ARGS__);                      \
  if (!real) *(void**)(&real) = dlsym(RTLD_NEXT, name)

ssize_t write(int fd, const void* data, size_t size) {
  REAL("write", ssize_t, int, const void*, size_t);
  const int after = before(fd, "write", NULL);
  const ssize_t result = real(fd, data, size);
  done(after);
  return result;
}

ssize_t writev(int fd, const struct iovec* parts, int count_of) {
  REAL("writev", ssize_t, int, const struct iovec*, int);
  const int after = before(fd, "write", NULL);
  const ssize_t result = real(fd, parts, count_of);
  done(after);
  return result;
}

ssize_t pwrite(int fd, const void* data, size_t size, off_t at) {
  REAL("pwrite", ssize_t, int, const void*, size_t, off_t);
  const int after = before(fd, "write", NULL);
  const ssize_t result = real(fd, data, size, at);
  done(after);
  return result;
}

ssize_t sendmsg(int fd, const struct msghdr* message, int flags) {
  REAL("sendmsg", ssize_t, int, const struct msghdr*, int);
  const int after = before(fd, "send", NULL);
  const ssize_t result = real(fd, message, flags);
  done(after);
  return result;
}

ssize_t send(int fd, const void* data, size_t size, int flags) {
  REAL("send", ssize_t, int, const void*, size_t, int);
  const int after = before(fd, "send", NULL);
  const ssize_t result = real(fd, data, size, flags);
  done(after);
  return result;
}

int connect(int fd, const struct sockaddr* to, socklen_t size) {
  REAL("connect", int, int, const struct sockaddr*, socklen_t);
  const int after = before(fd, "connect", to);
  const int result = real(fd, to, size);
  done(after);
  return result;
}

int fdatasync(int fd) {
  REAL("fdatasync", int, int);
  const int after = before(fd, "sync", NULL);
  const int result = real(fd);
  done(after);
  return result;
}

int fsync(int fd) {
  REAL("fsync", int, int);
  const int after = before(fd, "sync", NULL);
  const int result = real(fd);
  done(after);
  return result;
}

ssize_t pwrite64(int fd, const void* data, size_t size, off64_t at) { return pwrite(fd, data, size, at); }
