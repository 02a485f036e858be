// SPDX-License-Identifier: Apache-2.0
#include "serve/connections.h"

#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>

namespace pkprof {
namespace {

constexpr timeval second{.tv_sec = 1, .tv_usec = 0};
constexpr uint64_t patience = 10;  // ticks, until it is allowed
constexpr rlim_t most_connections = 256;

// Half of the descriptors that there may be, at most: files are read, too.
size_t room_for_connections() {
  rlimit files{};
  if (getrlimit(RLIMIT_NOFILE, &files)) return most_connections;
  return std::clamp<rlim_t>(files.rlim_cur / 2, 1, most_connections);
}

}  // namespace

Connections::Connections(event_base* base, evhttp* http)
    : base_(base), room_(room_for_connections()) {
  have_begun_.reset(event_new(
      base_, -1, 0,
      [](evutil_socket_t, short, void* self) { static_cast<Connections*>(self)->note_begun(); },
      this));
  second_.reset(event_new(
      base_, -1, EV_PERSIST,
      [](evutil_socket_t, short, void* self) { static_cast<Connections*>(self)->tick(); }, this));
  event_add(second_.get(), &second);
  evhttp_set_bevcb(
      http, [](event_base*, void* self) { return static_cast<Connections*>(self)->begin(); }, this);
}

// For each connection, before it has a socket. It has when libevent comes back to its loop, and
// nothing of it has happened by then.
bufferevent* Connections::begin() {
  bufferevent* connection = bufferevent_socket_new(base_, -1, BEV_OPT_CLOSE_ON_FREE);
  if (!connection) return nullptr;
  begun_.push_back(connection);
  event_active(have_begun_.get(), EV_TIMEOUT, 0);
  return connection;
}

void Connections::note_begun() {
  for (bufferevent* connection : begun_) {
    make_room();
    struct stat about{};
    const int fd = bufferevent_getfd(connection);
    if (fd >= 0 && fstat(fd, &about) == 0)
      connections_.push_back({.fd = fd, .inode = about.st_ino, .since = ticks_});
  }
  begun_.clear();
}

// libevent tells nobody of the end of a connection that asked for nothing.
bool Connections::is_gone(const Connection& c) {
  struct stat about{};
  return fstat(c.fd, &about) != 0 || about.st_ino != c.inode;
}

// What is left is libevent's, which reads that there is no more.
void Connections::end(const Connection& c) {
  if (!is_gone(c)) shutdown(c.fd, SHUT_RDWR);
}

// Who has waited longest without the token goes.
void Connections::make_room() {
  if (connections_.size() < room_) return;
  connections_.remove_if(is_gone);
  if (connections_.size() < room_) return;
  const auto oldest = std::ranges::find(connections_, false, &Connection::allowed);
  if (oldest == connections_.end()) return;
  end(*oldest);
  connections_.erase(oldest);
}

// A request that comes byte by byte has no more time than another.
void Connections::tick() {
  ++ticks_;
  connections_.remove_if([this](const Connection& c) {
    const bool is_late = !c.allowed && ticks_ - c.since > patience;
    if (is_late) end(c);
    return is_late || is_gone(c);
  });
}

// From here on it has the time that its page takes.
void Connections::allow(evhttp_request* request) {
  const int fd =
      bufferevent_getfd(evhttp_connection_get_bufferevent(evhttp_request_get_connection(request)));
  for (Connection& c : connections_) c.allowed = c.allowed || c.fd == fd;
}

}  // namespace pkprof
