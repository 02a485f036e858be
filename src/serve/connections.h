// SPDX-License-Identifier: Apache-2.0
// Connections to a server by libevent, kept from being too many. Anyone who can reach it can
// connect, so a connection that has not shown what it may ask for has some seconds, and a place
// that it loses to who comes later.
#pragma once

#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/http.h>
#include <sys/types.h>

#include <cstdint>
#include <list>
#include <memory>
#include <vector>

namespace pkprof {

template <auto Free>
struct Freed {
  template <typename T>
  void operator()(T* what) const {
    Free(what);
  }
};
using EventBase = std::unique_ptr<event_base, Freed<event_base_free>>;
using HttpServer = std::unique_ptr<evhttp, Freed<evhttp_free>>;
using Event = std::unique_ptr<event, Freed<event_free>>;

class Connections {
 public:
  // Those of `http` from here on; both outlive this.
  Connections(event_base* base, evhttp* http);
  Connections(const Connections&) = delete;
  Connections& operator=(const Connections&) = delete;

  // From here on it has the time that its answer takes.
  void allow(evhttp_request* request);

 private:
  struct Connection {
    int fd;
    ino_t inode;
    uint64_t since;  // in ticks
    bool allowed = false;
  };

  bufferevent* begin();
  void note_begun();
  static bool is_gone(const Connection& c);
  static void end(const Connection& c);
  void make_room();
  void tick();

  event_base* base_;
  const size_t room_;
  uint64_t ticks_ = 0;                 // seconds
  std::vector<bufferevent*> begun_;    // in this turn of the loop
  std::list<Connection> connections_;  // the oldest first
  Event have_begun_;
  Event second_;
};

}  // namespace pkprof
