// SPDX-License-Identifier: Apache-2.0
// See connection.h.
#define _GNU_SOURCE
#include "connection.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int server = -1;

// Who serves us must be root or ourselves: what it sends is believed.
static int is_trusted(int fd) {
  struct ucred peer;
  socklen_t size = sizeof peer;
  if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size)) return 0;
  return peer.uid == 0 || peer.uid == geteuid();
}

// `waits` says whether for a server that others ask, too.
static int connect_to(const char* name, int waits) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  const size_t length = strlen(name);
  if (length == 0 || length + 1 > sizeof address.sun_path) return -1;
  memcpy(address.sun_path + 1, name, length);
  const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | (waits ? 0 : SOCK_NONBLOCK), 0);
  if (fd < 0) return -1;
  const struct timeval patience = {.tv_sec = 5};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  const socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + length);
  if (!connect(fd, (struct sockaddr*)&address, size) && is_trusted(fd) && !fcntl(fd, F_SETFL, 0))
    return fd;
  close(fd);
  return -1;
}

static int find_server(void) {
  const char* given = secure_getenv(DEBOX_WIRE_ENVIRONMENT);
  char name[64];
  int fd = given ? connect_to(given, 1) : -1;
  if (fd >= 0) return fd;
  // Anybody may have this one, and let us wait.
  snprintf(name, sizeof name, DEBOX_WIRE_ATTACHED "%u", (unsigned)getpid());
  return connect_to(name, 0);
}

// With the lock held.
static int ask(const struct debox_wire_request* request, struct debox_wire_answer* answer,
               int* memory) {
  if (server < 0) server = find_server();
  if (server < 0) return ECONNREFUSED;
  char control[CMSG_SPACE(sizeof(int))];
  struct iovec part = {answer, sizeof *answer};
  struct msghdr message = {
      .msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
  *memory = -1;
  if (send(server, request, sizeof *request, MSG_NOSIGNAL) == sizeof *request) {
    ssize_t n;
    do n = recvmsg(server, &message, MSG_CMSG_CLOEXEC);
    while (n < 0 && errno == EINTR);
    const struct cmsghdr* c = n == sizeof *answer ? CMSG_FIRSTHDR(&message) : NULL;
    if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS)
      memcpy(memory, CMSG_DATA(c), sizeof *memory);
    if (n == sizeof *answer && answer->version == DEBOX_WIRE_VERSION) return answer->error;
    if (*memory >= 0) close(*memory);
  }
  close(server);
  server = -1;
  return ECONNREFUSED;
}

int ask_pkprof(const struct debox_wire_request* request, struct debox_wire_answer* answer,
               int* memory, int wait) {
  if (wait)
    pthread_mutex_lock(&lock);
  else if (pthread_mutex_trylock(&lock))
    return EAGAIN;
  const int error = ask(request, answer, memory);
  pthread_mutex_unlock(&lock);
  return error;
}

void forget_connection(void) {
  if (server >= 0) close(server);
  server = -1;
  pthread_mutex_init(&lock, NULL);
}
